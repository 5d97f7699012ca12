//! Handling of a lost connection. Batches that certainly left nothing behind run again. For a batch in doubt
//! the lane asks for the outcome and guesses nothing.

use super::{Action, Batch, ConnectionState, Doubt, Lane, LaneKind, Outcome, Refusal, Unit, Xid};
use crate::limits;

impl<P> Lane<P> {
    pub(super) fn lost(&mut self, actions: &mut Vec<Action<P>>) {
        self.hold.cancel();
        let is_idle = self.under_way.is_empty() && self.queue.is_empty() && self.again.is_empty();
        if is_idle || self.may_rest() {
            self.connection = ConnectionState::Down; // an idle connection was closed: the next unit opens another
        } else {
            self.connection = ConnectionState::Connecting;
            actions.push(Action::Connect);
        }
    }

    pub(super) fn connect_failed(&mut self, give_up: bool, actions: &mut Vec<Action<P>>) {
        if self.may_rest() {
            self.connection = ConnectionState::Down; // waiting units need no connection before the lane resumes
            return;
        }
        if !give_up {
            self.connection = ConnectionState::Connecting;
            actions.push(Action::Connect);
            return;
        }
        self.connection = ConnectionState::Down;
        while let Some(batch) = self.under_way.pop_front() {
            match self.after_loss(&batch) {
                AfterLoss::RunAgain => self.run_again(batch),
                AfterLoss::Answer => self.answer(batch, actions),
                AfterLoss::Ask(_) | AfterLoss::Unknown => self.refuse_unknown(batch, actions),
            }
        }
        let mut units = std::mem::take(&mut self.again);
        units.extend(self.queue.take(|_| true));
        units.extend(self.blocked.take_all());
        if !units.is_empty() {
            actions.push(Action::Refuse(units, Refusal::NotSent));
        }
    }

    /// Resolves, on a new connection, the batches that were under way. It works in order and stops at the
    /// first batch whose outcome has to be asked for.
    pub(super) fn resolve_next(&mut self, actions: &mut Vec<Action<P>>) {
        while let Some(batch) = self.under_way.pop_front() {
            match self.after_loss(&batch) {
                AfterLoss::RunAgain => self.run_again(batch),
                AfterLoss::Answer => self.answer(batch, actions),
                AfterLoss::Unknown => self.refuse_unknown(batch, actions),
                AfterLoss::Ask(doubt) => {
                    self.under_way.push_front(batch);
                    actions.push(Action::Resolve(doubt));
                    return;
                }
            }
        }
        self.connection = ConnectionState::Up;
        self.last_id = None;
        let again = std::mem::take(&mut self.again);
        self.requeue(again, actions);
        self.send(actions);
    }

    pub(super) fn resolved(&mut self, outcome: Outcome, actions: &mut Vec<Action<P>>) {
        if self.connection != ConnectionState::Resolving {
            return;
        }
        let Some(batch) = self.under_way.pop_front() else { return };
        match outcome {
            Outcome::Committed => {
                debug_assert!(
                    matches!(batch.xid, Xid::Known(_)),
                    "only a batch with a known ID is found committed"
                );
                debug_assert!(batch.is_complete(self.kind), "the ID arrives after all replies");
                self.answer(batch, actions);
            }
            Outcome::Aborted => self.run_again(batch),
            Outcome::Unknown => self.refuse_unknown(batch, actions),
        }
        self.resolve_next(actions);
    }

    fn after_loss(&self, batch: &Batch<P>) -> AfterLoss {
        if batch.may_be_committed_elsewhere() {
            return AfterLoss::Unknown;
        }
        if self.kind == LaneKind::Read || !batch.written || batch.failure.is_some() {
            // Reads change nothing. Without its Sync a batch cannot commit. After an error there is nothing
            // to commit.
            return AfterLoss::RunAgain;
        }
        match batch.xid {
            Xid::NothingWritten if batch.may_have_written_elsewhere() => AfterLoss::Unknown,
            Xid::NothingWritten => {
                debug_assert!(batch.is_complete(self.kind), "the ID arrives after all replies");
                AfterLoss::Answer
            }
            Xid::Known(xid) => AfterLoss::Ask(Doubt::Id(xid)),
            Xid::Missing => AfterLoss::Ask(Doubt::IdAfter(self.last_id)),
        }
    }

    /// Units that have failed by themselves have left nothing behind, whatever has become of the others.
    fn refuse_unknown(&mut self, mut batch: Batch<P>, actions: &mut Vec<Action<P>>) {
        self.part_with_leaving(&mut batch, actions);
        actions.push(Action::Refuse(batch.units, Refusal::OutcomeUnknown));
    }

    fn run_again(&mut self, batch: Batch<P>) {
        self.again.extend(batch.units.into_iter().map(|unit| Unit { losses: unit.losses + 1, ..unit }));
    }

    /// Puts units back at the front of the queue. Cancelled units are left out. Units that exceed the limits
    /// run alone, and later units of their sessions go back to wait for them.
    pub(super) fn requeue(&mut self, units: Vec<Unit<P>>, actions: &mut Vec<Action<P>>) {
        let mut kept: Vec<Unit<P>> = Vec::with_capacity(units.len());
        let mut left = Vec::new();
        for unit in self.refuse_cancelled(units, actions) {
            if left.contains(&unit.session) {
                actions.push(Action::Return(unit));
            } else if unit.losses > limits::UNIT_LOSSES_MAX || unit.reruns > limits::UNIT_RERUNS_MAX {
                left.push(unit.session);
                self.returned.insert(unit.session);
                actions.push(Action::Alone(unit, None));
            } else {
                kept.push(unit);
            }
        }
        self.queue.prepend(kept);
        for session in left {
            self.return_followers(session, actions);
        }
    }
}

enum AfterLoss {
    /// It left nothing behind and runs again.
    RunAgain,
    /// Its replies are complete and there was nothing to commit.
    Answer,
    /// The server may know the outcome.
    Ask(Doubt),
    /// No server that the lane can ask knows the outcome.
    Unknown,
}
