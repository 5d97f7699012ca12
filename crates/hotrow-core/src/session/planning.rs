//! The two halves of handling a message. While it is planned, the session can ask for what it needs: then the message is handled
//! again from its beginning, so nothing may have been sent for it. What asks gets a [`Planning`], what sends gets a
//! [`Performing`], and the first can become the second, but never the other way round.

use std::ops::ControlFlow;

/// Nothing was sent for the message, and more can be asked for.
pub(super) struct Planning(());

/// The message has all that it needs, and its effects may be sent: to the client, to a lane or to the server.
pub(super) struct Performing(());

/// Whether a message, or so much of it, is handled. If not, planning goes on.
pub(super) type Handled<T = ()> = ControlFlow<T, Planning>;

impl Planning {
    pub(super) fn of_message() -> Self {
        Planning(())
    }

    /// Everything that the message needs is there.
    pub(super) fn perform(self) -> Performing {
        Performing(())
    }
}

impl Performing {
    /// For what is sent between messages and not because of one. It must be right to send it once, however often the next message
    /// is handled.
    pub(super) fn between_messages() -> Self {
        Performing(())
    }
}
