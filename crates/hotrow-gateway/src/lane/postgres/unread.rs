//! Clients that do not read their answers. A read whose answer has no room goes back to its session, which submits it
//! again when there is room. The session's other waiting units go back too. No unit is lost, and none overtakes
//! another.

use std::ops::Range;

use hotrow_core::limits;
use hotrow_lane::lane::{Batch, LaneKind};

use super::Postgres;
use super::envelope::Envelope;
use super::replies::BatchReplies;
use crate::lane::backend::BatchEvent;

impl Postgres {
    /// A call of the earliest batch was answered. If it completes a read whose answer has no room, the answer is
    /// dropped. The first read of a batch has room unless its client has too much to read, so a batch always makes
    /// progress.
    pub(super) fn look_at_size(&mut self, batch: &Batch<Envelope>) {
        if self.kind == LaneKind::Write {
            return self.exclude_large(batch);
        }
        if self.replies.current().len() <= limits::SESSION_BUFFER_BYTES {
            return;
        }
        let answers = self.replies.current();
        let calls = calls_of_units(batch);
        let Some(place) = calls.iter().position(|calls| calls.end == batch.answered + 1) else { return };
        let unit = &batch.units[place];
        let is_before = |other: &usize| batch.units[*other].session == unit.session;
        let went_back = batch.waits.iter().any(is_before);
        let before: usize =
            (0..place).filter(is_before).map(|place| answers.len_of(calls[place].clone())).sum();
        let batch_is_full = place > 0 && answers.len() > limits::BATCH_ANSWER_BYTES_MAX;
        if went_back || batch_is_full || unit.payload.mailbox.is_overfull(before) {
            answers.forget_from(calls[place].start);
            self.events.push_back(BatchEvent::Waits(place));
        }
    }

    /// A call that writes was answered. If its answer is too large to collect, its statement is not packed again, and
    /// the waiting units with this statement go back: their sessions run them on connections of their own.
    fn exclude_large(&mut self, batch: &Batch<Envelope>) {
        let answers = self.replies.current();
        if answers.len_of(batch.answered..batch.answered + 1) <= limits::ANSWER_BYTES_MAX {
            return;
        }
        let calls = calls_of_units(batch);
        let Some(place) = calls.iter().position(|calls| calls.contains(&batch.answered)) else { return };
        // A merged call's answer contains the answers of many calls.
        let unit = Some(&batch.units[place]).filter(|unit| unit.claimed.merge.is_none());
        let Some(run) =
            unit.and_then(|unit| unit.payload.unit.runs().nth(batch.answered - calls[place].start))
        else {
            return;
        };
        run.statement.record.exclude();
        self.events.push_back(BatchEvent::Excluded);
    }

    /// The earliest batch is done. Sessions whose clients then have too much to read get back their waiting units.
    pub(super) fn find_unread(&mut self, batch: &Batch<Envelope>, answers: &BatchReplies) {
        if answers.len() <= limits::SESSION_BUFFER_BYTES || batch.failure.is_some() {
            return;
        }
        let calls = calls_of_units(batch);
        for (place, unit) in batch.units.iter().enumerate() {
            let of_session = (0..=place).filter(|other| batch.units[*other].session == unit.session);
            let bytes = of_session.map(|place| answers.len_of(calls[place].clone())).sum();
            if unit.payload.mailbox.is_overfull(bytes) {
                self.events.push_back(BatchEvent::Unread(unit.session));
            }
        }
    }
}

/// The indexes of the answers of each unit of a batch. Those of a merged call count for the first of its units.
fn calls_of_units(batch: &Batch<Envelope>) -> Vec<Range<usize>> {
    let mut first = 0;
    let mut calls = Vec::with_capacity(batch.units.len());
    for units in batch.calls() {
        let next = first + batch.answers_owed(&units);
        calls.push(first..next);
        calls.extend(units.skip(1).map(|_| next..next));
        first = next;
    }
    calls
}
