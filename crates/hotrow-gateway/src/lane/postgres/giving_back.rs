//! Units that leave the lane unanswered, and go back to their sessions.

use hotrow_lane::lane::Unit;

use super::Postgres;
use super::envelope::{Envelope, Returned};

impl Postgres {
    pub(super) fn return_unit(&mut self, unit: Unit<Envelope>, returned: impl FnOnce(Envelope) -> Returned) {
        self.return_envelope(taken_out(unit), returned);
    }

    /// Gives a unit that has left the lane back to its session.
    pub(super) fn return_envelope(&mut self, packed: Envelope, returned: impl FnOnce(Envelope) -> Returned) {
        let mailbox = packed.mailbox.clone();
        let slot = packed.slot;
        if !mailbox.give_back(slot, returned(packed)) {
            self.gone.push(mailbox.session);
        }
    }
}

/// The unit without what the lane knows of it.
pub(super) fn taken_out(unit: Unit<Envelope>) -> Envelope {
    let Unit { claimed, mut payload, .. } = unit;
    payload.unit.claimed = claimed;
    payload
}
