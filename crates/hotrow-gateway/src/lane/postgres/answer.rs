//! Units that leave a lane: the answers of a committed batch, and units that go back to their sessions.

use bytes::BytesMut;
use hotrow_connect::upstream::Error;
use hotrow_core::session::RunOutcome;
use hotrow_lane::lane::{Batch, Leaving, Refusal, Unit};

use super::Postgres;
use super::envelope::{Envelope, Returned, Unblock};
use super::giving_back::taken_out;
use crate::metrics::METRICS;

impl Postgres {
    pub(super) fn answer_batch(&mut self, batch: Batch<Envelope>) {
        let index = self.answers.iter().position(|answers| answers.number == batch.number);
        let Some(answers) = index.and_then(|index| self.answers.remove(index)) else { return };
        self.context.target.answered((batch.units.len() - batch.waits.len()) as u64);
        let calls: Vec<_> =
            batch.calls().map(|call| (batch.answers_owed(&call), batch.is_merged(&call), call)).collect();
        let waits = batch.waits;
        let mut units = batch.units.into_iter().map(taken_out);
        let mut first = 0;
        for (owed, is_merged, call) in calls {
            let places = first..first + owed;
            first += owed;
            if is_merged {
                let bytes = answers.of(places.start).unwrap_or_default();
                let waits: Vec<_> = waits.iter().filter_map(|place| place.checked_sub(call.start)).collect();
                self.answer_merged(units.by_ref().take(call.len()).collect(), &waits, bytes, &answers.commit);
                continue;
            }
            let Some(packed) = units.next() else { return };
            if waits.contains(&call.start) {
                self.return_envelope(packed, Returned::Resubmit);
                continue;
            }
            if let Some(oversized) = places.clone().position(|place| answers.of(place).is_none()) {
                packed.unit.runs().skip(oversized).take(1).for_each(|run| run.statement.record.exclude());
                let mailbox = packed.mailbox.clone();
                mailbox.give_back(packed.slot, Returned::RunAlone(packed, None));
                continue;
            }
            self.record_success(&packed, batch.is_too_slow);
            let bytes = places.filter_map(|place| answers.of(place));
            let put = |out: &mut BytesMut| packed.unit.put_answer(bytes, &answers.commit, out);
            if packed.mailbox.answer(packed.slot, put) {
                self.touched.push(packed.mailbox);
            }
        }
    }

    fn record_success(&self, packed: &Envelope, is_too_slow: bool) {
        for run in packed.unit.runs() {
            match is_too_slow {
                true => self.context.target.avoid(&run.statement.record),
                false => self.context.target.succeeded(&run.statement.record),
            }
            run.statement.record.count(RunOutcome::Packed);
        }
    }

    pub(super) fn run_alone(&mut self, unit: Unit<Envelope>, unblock: Option<Unblock>) {
        if self.context.target.has_substitute() {
            unit.payload.unit.runs().for_each(|run| self.context.target.avoid(&run.statement.record));
            return self.return_unit(unit, Returned::Resubmit);
        }
        METRICS.rolled_back.inc();
        let (outcome, metric) = match unit.leaving {
            Leaving::Blocked => (RunOutcome::Blocked, &METRICS.blocked),
            Leaving::TooSlow => (RunOutcome::TooSlow, &METRICS.too_slow),
            Leaving::Failed => (RunOutcome::Failed, &METRICS.failed),
            Leaving::Changed => return self.return_unit(unit, |packed| Returned::RunAlone(packed, unblock)),
        };
        metric.inc();
        for run in unit.payload.unit.runs().skip(unit.at_fault.into()).take(1) {
            run.statement.record.count(outcome);
            match outcome {
                RunOutcome::TooSlow => run.statement.record.was_too_slow(),
                RunOutcome::Failed => run.statement.record.failed(),
                _ => {}
            }
        }
        self.return_unit(unit, |packed| Returned::RunAlone(packed, unblock));
    }

    /// Units that others can run are not refused.
    pub(super) fn refuse_units(&mut self, units: Vec<Unit<Envelope>>, refusal: Refusal) {
        let is_full = || self.connection.failure().is_some_and(Error::is_full);
        if self.context.target.has_substitute() && refusal != Refusal::Cancelled {
            units.into_iter().for_each(|unit| self.return_unit(unit, Returned::Resubmit));
        } else if refusal == Refusal::NotSent && is_full() {
            let alone = |packed| Returned::RunAlone(packed, None);
            units.into_iter().for_each(|unit| self.return_unit(unit, alone));
        } else {
            self.answer_refused(units, refusal);
        }
    }
}
