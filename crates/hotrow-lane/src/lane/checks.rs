//! What holds after each event of a lane. Debug builds check it.

use super::{ConnectionState, Lane};
use crate::limits;

impl<P> Lane<P> {
    pub(super) fn check(&self) {
        debug_assert!(self.under_way.len() <= limits::BATCHES_UNDER_WAY_MAX);
        debug_assert!(self.connection != ConnectionState::Up || self.again.is_empty());
        debug_assert!(
            self.connection != ConnectionState::Down || self.under_way.is_empty() && self.again.is_empty()
        );
        // Each event would take as long as the lists are long.
        if cfg!(debug_assertions) && self.waiting() <= limits::CHECKED_MAX {
            self.check_units();
        }
    }

    fn check_units(&self) {
        self.queue.check();
        self.blocked.check();
        for (place, batch) in self.under_way.iter().enumerate() {
            let mut later = self.under_way.iter().skip(place + 1).flat_map(|batch| &batch.units);
            assert!(
                !later.any(|unit| batch.has_session(unit.session)),
                "a session's units can change their order"
            );
        }
        let is_before = |session| {
            self.queue.has_session(session) || self.under_way.iter().any(|batch| batch.has_session(session))
        };
        assert!(
            !self.blocked.iter().any(|(_, unit)| is_before(unit.session)),
            "a parked unit is overtaken by units of its session"
        );
    }
}
