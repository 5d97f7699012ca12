//! The answers to a merged call, and the calls among them that found nothing and wait.

use std::time::{Duration, Instant};

use bytes::BytesMut;
use hotrow_core::limits;
use hotrow_core::session::RunOutcome;
use hotrow_lane::lane::Batch;
use hotrow_wire::SqlState;
use hotrow_wire::backend::Problem;

use super::Postgres;
use super::envelope::{CallWait, Envelope, Returned};
use crate::lane::backend::BatchEvent;
use crate::metrics::METRICS;

impl Postgres {
    /// A merged call of the earliest batch is answered: notes the units that wait. This happens before the batch is
    /// over, so no later unit of their sessions is sent.
    pub(super) fn find_waiting_calls(&mut self, batch: &Batch<Envelope>) {
        let mut answers = 0;
        let call = batch.calls().find(|call| {
            answers += batch.answers_owed(call);
            answers > batch.answered
        });
        let Some(call) = call else { return };
        let units = &batch.units[call.clone()];
        let Some(first) = units.first().filter(|unit| unit.claimed.may_wait) else { return };
        let bytes = self.replies.last();
        // An error in the rows is reported when the answers are given out.
        let Some(Ok(rows)) = first.payload.unit.rows(bytes, units.len()) else { return };
        let now = Instant::now();
        let waits =
            rows.waits().iter().filter(|wait| deadline(&units[wait.call].payload, wait.at_most) > now);
        self.events.extend(waits.map(|wait| BatchEvent::Waits(call.start + wait.call)));
    }

    /// Gives each caller its rows of a merged call. The calls at the places in `waits` wait.
    pub(super) fn answer_merged(
        &mut self,
        units: Vec<Envelope>,
        waits: &[usize],
        bytes: &[u8],
        commit: &[u8],
    ) {
        let count = units.len();
        let Some(rows) = units.first().and_then(|first| first.unit.rows(bytes, count)) else { return };
        let rows = match rows {
            Ok(rows) => rows,
            Err(why) => return self.refuse_merged(&units, &why),
        };
        for (place, mut packed) in units.into_iter().enumerate() {
            if waits.contains(&place)
                && let Some(wait) = rows.waits().iter().find(|wait| wait.call == place)
            {
                let deadline = deadline(&packed, wait.at_most);
                packed.deadline = Some(deadline);
                let again = Duration::from_millis(wait.again_in.max(limits::WAITING_AGAIN_MS_MIN));
                let mut empty = BytesMut::new();
                packed.unit.put_merged_answer(&rows, place, &[], &mut empty);
                let wait = CallWait { retry_at: Instant::now() + again, deadline, empty };
                self.return_envelope(packed, |packed| Returned::Wait(packed, wait));
                continue;
            }
            METRICS.merged.inc();
            self.context.shared.traffic.merged.inc();
            let Some(run) = packed.unit.runs().next() else { continue };
            run.statement.record.succeeded_in_lane();
            run.statement.record.count(RunOutcome::Merged);
            let put = |out: &mut BytesMut| packed.unit.put_merged_answer(&rows, place, commit, out);
            if packed.mailbox.answer(packed.slot, put) {
                self.touched.push(packed.mailbox);
            }
        }
    }

    fn refuse_merged(&mut self, units: &[Envelope], why: &str) {
        for packed in units {
            let Some(run) = packed.unit.runs().next() else { continue };
            run.statement.record.exclude();
            if packed.refuse(&broken_batch_function(&run.packing.table, units.len(), why)) {
                self.touched.push(packed.mailbox.clone());
            }
        }
    }
}

/// The deadline of a call that may wait for this many milliseconds.
fn deadline(packed: &Envelope, at_most: u64) -> Instant {
    let longest = Duration::from_millis(at_most.min(limits::WAITING_CALL_MS_MAX));
    packed.deadline.unwrap_or(packed.came + longest)
}

/// The batch function of a merge rule breaks its contract. This shows only after the commit.
fn broken_batch_function(function: &str, calls: usize, why: &str) -> Problem {
    Problem::error(
        SqlState::ExternalRoutineInvocationException,
        format!("{calls} calls of {function} were merged, and its batch function {why}"),
        "The calls were committed. Fix the batch function: it must return one row for each call, in the order of the calls. \
         If the function returns a set, it may return any number of rows for each call, with the call's number in the \
         first column.",
    )
}
