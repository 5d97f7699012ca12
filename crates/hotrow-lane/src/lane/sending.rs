//! When a batch is cut and sent, and where units wait until then.

use super::{Action, Batch, ConnectionState, Lane, Unit, Xid};
use crate::limits;

impl<P> Lane<P> {
    /// Queues or parks a unit. All units in the queue or under way overtake a parked unit. It is therefore
    /// parked only if no unit of its session is before it in this lane, and only units of the same key are
    /// behind it.
    pub(super) fn place(&mut self, unit: Unit<P>, actions: &mut Vec<Action<P>>) {
        let session = unit.session;
        if self.returned.contains(&session) {
            actions.push(Action::Return(unit));
            return;
        }
        match (self.blocked.key_of(&unit), self.blocked.key_of_session(session)) {
            (None, None) => self.queue.push(unit),
            (Some(key), Some(same)) if key == same => self.blocked.park(key, unit),
            (Some(key), None) if unit.first || !self.has(session) => self.blocked.park(key, unit),
            _ => self.give_back(unit, actions),
        }
    }

    /// Whether units of this session are in the queue or under way.
    fn has(&self, session: u64) -> bool {
        self.under_way.iter().any(|batch| batch.has_session(session)) || self.queue.has_session(session)
    }

    /// Number of further units with which the lane would act immediately.
    pub fn wake_at(&self) -> usize {
        match self.under_way.len() {
            0 => self.hold.enough().unwrap_or(1).saturating_sub(self.queue.len()).max(1),
            1 => self.second_at().saturating_sub(self.queue.len()).max(1),
            _ => limits::BATCH_UNITS_MAX,
        }
    }

    /// Sends a batch if there is a reason to, or opens the connection that it needs.
    pub(super) fn send(&mut self, actions: &mut Vec<Action<P>>) {
        if self.paused {
            return self.rest(actions);
        }
        if self.queue.is_empty() {
            return;
        }
        if self.connection == ConnectionState::Down {
            self.connection = ConnectionState::Connecting;
            actions.push(Action::Connect);
        }
        if self.connection != ConnectionState::Up {
            return;
        }
        match self.under_way.len() {
            0 if self.hold.enough().is_some_and(|enough| self.queue.len() < enough) => {}
            0 => self.cut(actions),
            n if n < limits::BATCHES_UNDER_WAY_MAX && self.queue.len() >= self.second_at() => {
                self.look_again_at = self.queue.len() + self.least();
                self.cut(actions);
            }
            _ => {}
        }
    }

    /// Number of units that the next batch must have. A second batch follows the first one if many units
    /// wait. While the server commits the first batch, it also follows if at least as many units wait as the
    /// first batch has. The server then does not wait for the next batch, and batches do not become smaller.
    /// If commits take long, only a full batch follows.
    fn least(&self) -> usize {
        match self.under_way.front() {
            None => 1,
            Some(_) if self.hold.is_worth_it() => limits::BATCH_UNITS_MAX,
            Some(first) if first.xid == Xid::Missing => limits::SECOND_BATCH_UNITS_MIN,
            Some(first) => first.units.len().min(limits::SECOND_BATCH_UNITS_MIN),
        }
    }

    /// The length of the queue at which the lane tries a second batch.
    fn second_at(&self) -> usize {
        self.look_again_at.max(self.least())
    }

    fn cut(&mut self, actions: &mut Vec<Action<P>>) {
        let Some(units) = self.queue.cut(&self.under_way, self.least()) else { return };
        self.hold.sent(units.len());
        self.batches += 1;
        let mut batch = Batch::new(self.batches, units, !self.queue.is_empty());
        if self.lock_ahead > 0 {
            self.lock_ahead -= 1;
            batch.lock_ahead();
        }
        self.under_way.push_back(batch);
        actions.push(Action::Write(self.batches));
    }

    /// Whether nothing needs a connection while the lane pauses. A commit in doubt needs one.
    pub(super) fn may_rest(&self) -> bool {
        self.paused && self.under_way.is_empty() && self.again.is_empty()
    }

    /// Closes the connection when nothing is under way on it.
    pub(super) fn rest(&mut self, actions: &mut Vec<Action<P>>) {
        if self.connection == ConnectionState::Up && self.may_rest() {
            self.connection = ConnectionState::Down;
            actions.push(Action::Disconnect);
        }
    }
}
