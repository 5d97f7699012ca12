//! Clients that go away while a statement runs or waits. If the server ends the statements of such clients
//! (`client_connection_check_interval`), the gateway does too. Otherwise they are run to their end, as without the gateway.

use bytes::BytesMut;
use hotrow_core::limits;

use super::SessionTask;
use crate::net::ReadHalf;

impl SessionTask {
    /// Whether the work of a client that goes away now is ended.
    pub(super) fn ends_work(&self) -> bool {
        !self.is_gone && self.pool.context.ends_work_of_gone_clients()
    }

    /// The client has gone: its statement is cancelled, wherever it is. A connection that the session holds is closed, so the
    /// server runs no later statement of the client.
    pub(super) fn gone(&mut self) {
        let works = self.mailbox.pending() > 0 || self.session.held_state().0;
        if self.ends_work() && works {
            self.control.client_left();
        }
        self.is_gone = true;
    }
}

/// Returns when the client has closed the connection. To see that, it reads ahead, up to a bound: the end of a client that has
/// sent more than that is seen later.
pub(super) async fn hung_up(read: &mut ReadHalf, input: &mut BytesMut) {
    while input.len() < limits::SESSION_BUFFER_BYTES {
        if !matches!(read.fill(input).await, Ok(1..)) {
            return;
        }
    }
    std::future::pending().await
}
