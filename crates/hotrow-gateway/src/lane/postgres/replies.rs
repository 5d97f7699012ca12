//! Parses a lane's replies: which bytes answer which unit, and what they mean for the batch.

use std::ops::Range;

use bytes::{Buf, Bytes, BytesMut};
use hotrow_core::limits;
use hotrow_lane::lane::{Batch, Changes, Failure, LaneKind};
use hotrow_wire::backend::{self, Report, tag};
use hotrow_wire::{Error, HEADER_BYTES, split};

use super::catalog_check::{BatchEnd, NO_STATEMENT};
use super::citus;
use super::envelope::Envelope;
use super::left_state::StateCheck;
use super::target::Target;

/// The command tag of a COMMIT that has committed. The tag of one that has rolled back is ROLLBACK.
const COMMIT: &[u8] = b"COMMIT\0";

/// An event in the replies.
#[derive(Debug)]
pub enum ReplyEvent {
    /// A statement of the gateway is prepared.
    Prepared,
    /// One more row is locked before the batch's own statements.
    Locked,
    /// One more call is answered, with these changes.
    Answered(Changes),
    /// The row of a last statement that is not the very last one: nothing, and the time of the statement's analysis.
    Checked(Bytes),
    /// The row of the very last statement: the transaction's ID, and the time of the statement's analysis.
    End(Bytes),
    /// The next unit, or the commit, has failed.
    Failed(Failure),
    /// A statement is missing that the lane has prepared. Others may be missing too.
    Missing,
    /// The check at the batch's end has failed with this code.
    CheckFailed { code: [u8; 5], check: Check },
    /// The batch is over.
    Ready(BatchReplies),
}

/// A statement at the end of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Check {
    /// The comparison of the session's state.
    State(StateCheck),
    /// The comparison of a fingerprint.
    Fingerprint,
    /// A last statement.
    End,
}

/// The replies for the units of one batch.
#[derive(Debug, Default)]
pub struct BatchReplies {
    /// The batch's number.
    pub number: u64,
    /// The replies to the commit: notices.
    pub commit: Bytes,
    bytes: BytesMut,
    /// The end of each call's answer, and false if a row was too large to keep.
    ends: Vec<(usize, bool)>,
}

impl BatchReplies {
    /// Bytes of the calls answered so far.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Bytes of these calls.
    pub fn len_of(&self, calls: Range<usize>) -> usize {
        self.start_of(calls.end) - self.start_of(calls.start)
    }

    /// Drops the answers of the calls from this one on. They count as answered.
    pub fn forget_from(&mut self, call: usize) {
        let start = self.start_of(call);
        self.bytes.truncate(start);
        self.ends.iter_mut().skip(call).for_each(|end| *end = (start, true));
    }

    fn start_of(&self, index: usize) -> usize {
        index.checked_sub(1).map_or(0, |previous| self.ends.get(previous).map_or(0, |end| end.0))
    }

    /// The answer of the call with this index, unless it was too large.
    pub fn of(&self, index: usize) -> Option<&[u8]> {
        match self.ends.get(index) {
            Some((end, true)) => self.bytes.get(self.start_of(index)..*end),
            _ => None,
        }
    }
}

/// The replies to the batch that is being answered.
#[derive(Debug, Default)]
pub struct Replies {
    current: BatchReplies,
    commit: BytesMut,
    /// The unit that is being answered has lost a row that was too large.
    oversized: bool,
    /// Bytes of that row still to come.
    skip: usize,
    /// Number of answered statements before the batch's own.
    opened: usize,
    /// The server has answered what came before the batch's own COMMIT.
    is_at_commit: bool,
    /// Number of answered statements at the batch's end.
    ended: usize,
    /// Their last row.
    row: Bytes,
    /// The last value of each setting that the server has reported.
    settings: Vec<(String, String)>,
}

impl Replies {
    /// A new connection.
    pub fn reset(&mut self) {
        *self = Replies::default();
    }

    /// The connection is lost: returns the replies to the batch that was being answered.
    pub fn cut_off(&mut self, number: Option<u64>) -> Option<BatchReplies> {
        let mut answers = std::mem::take(self).current;
        answers.number = number?;
        Some(answers)
    }

    /// The replies to the batch that is being answered.
    pub fn current(&mut self) -> &mut BatchReplies {
        &mut self.current
    }

    /// The answer of the last call.
    pub fn last(&self) -> &[u8] {
        self.current.ends.len().checked_sub(1).and_then(|index| self.current.of(index)).unwrap_or_default()
    }

    /// The settings that the server has reported since the last call.
    pub fn take_settings(&mut self) -> Vec<(String, String)> {
        std::mem::take(&mut self.settings)
    }

    /// The server has reported the value of a setting.
    pub fn note_setting(&mut self, body: &[u8]) -> Result<(), Error> {
        let (name, value) = backend::parameter_status(body)?;
        self.settings.retain(|(known, _)| known != name);
        self.settings.push((name.to_owned(), value.to_owned()));
        Ok(())
    }

    /// Handles replies that arrive while the server owes none.
    pub fn idle(&mut self, input: &mut BytesMut) {
        while let Ok(Some(frame)) = split(input, |_| limits::MESSAGE_BYTES_MAX) {
            if frame.tag == tag::ERROR
                && let Ok(report) = Report::read(frame.body())
            {
                tracing::warn!(message = %String::from_utf8_lossy(report.message), "the server closes a lane's connection");
            }
            if frame.tag == tag::PARAMETER_STATUS {
                let _ = self.note_setting(frame.body()); // an invalid one is ignored
            }
            let length = frame.bytes.len();
            input.advance(length);
        }
    }

    /// The next event, or none until more bytes arrive.
    pub fn next(
        &mut self,
        input: &mut BytesMut,
        batch: &Batch<Envelope>,
        end: BatchEnd,
        kind: LaneKind,
        target: &dyn Target,
    ) -> Result<Option<ReplyEvent>, Error> {
        loop {
            if self.skip > 0 {
                let count = self.skip.min(input.len());
                input.advance(count);
                self.skip -= count;
                if self.skip > 0 {
                    return Ok(None);
                }
            }
            if kind == LaneKind::Read && input.first() == Some(&tag::DATA_ROW) && self.begins_oversized(input)
            {
                continue;
            }
            let Some(frame) = split(input, |_| usize::MAX)? else { return Ok(None) };
            let length = frame.bytes.len();
            let event = self.take((frame.tag, frame.body(), frame.bytes), batch, end, target)?;
            input.advance(length);
            if let Some(mut event) = event {
                if let ReplyEvent::Ready(answers) = &mut event {
                    answers.number = batch.number;
                }
                return Ok(Some(event));
            }
        }
    }

    /// Whether a row begins that is too large for a lane, or makes its answer too large. Then it is skipped, and the
    /// session runs its unit.
    fn begins_oversized(&mut self, input: &[u8]) -> bool {
        let Some((header, _)) = input.split_first_chunk::<HEADER_BYTES>() else { return false };
        let total = u32::from_be_bytes([header[1], header[2], header[3], header[4]]) as usize + 1;
        let answer = self.current.len() - self.current.start_of(self.current.ends.len());
        if total <= limits::READ_ROW_BYTES_MAX && answer + total <= limits::ANSWER_BYTES_MAX {
            return false;
        }
        self.skip = total;
        self.oversized = true;
        true
    }

    fn take(
        &mut self,
        (kind, body, bytes): (u8, &[u8], &[u8]),
        batch: &Batch<Envelope>,
        end: BatchEnd,
        target: &dyn Target,
    ) -> Result<Option<ReplyEvent>, Error> {
        let of_units = self.current.ends.len() < batch.call_count;
        let is_ahead = batch.locked < batch.ahead.len();
        let is_opening = self.opened < end.openings;
        match kind {
            tag::COMMAND_COMPLETE if is_opening => self.opened += 1,
            tag::BIND_COMPLETE | tag::DATA_ROW if is_opening => {}
            // The server can end a transaction without an error to report.
            tag::COMMAND_COMPLETE if self.is_at_commit => {
                let is_undone = body != COMMIT && batch.failure.is_none();
                return Ok(is_undone.then_some(ReplyEvent::Failed(Failure::Error)));
            }
            tag::COMMAND_COMPLETE if is_ahead => return Ok(Some(ReplyEvent::Locked)),
            tag::BIND_COMPLETE | tag::DATA_ROW if is_ahead => {}
            tag::PARSE_COMPLETE => return Ok(Some(ReplyEvent::Prepared)),
            tag::PARAMETER_STATUS => self.note_setting(body)?,
            tag::CLOSE_COMPLETE | tag::NOTIFICATION => {}
            tag::NOTICE if !of_units => self.commit.extend_from_slice(bytes),
            tag::COMMAND_COMPLETE | tag::EMPTY_QUERY if of_units => {
                self.current.bytes.extend_from_slice(bytes);
                self.current.ends.push((self.current.bytes.len(), !std::mem::take(&mut self.oversized)));
                // Only a batch in a block has tables whose rows could be on another server.
                let changes = if end.in_block { citus::changes(body) } else { Changes::None };
                return Ok(Some(ReplyEvent::Answered(changes)));
            }
            tag::COMMAND_COMPLETE => {
                self.ended += 1;
                let row = std::mem::take(&mut self.row);
                return Ok(match self.ended {
                    ended if ended <= end.checks => None,
                    ended if ended < end.checks + end.tables => Some(ReplyEvent::Checked(row)),
                    _ => Some(ReplyEvent::End(row)),
                });
            }
            tag::DATA_ROW if !of_units => self.row = Bytes::copy_from_slice(body),
            tag::ERROR => {
                let is_end = !of_units && self.ended < end.checks + end.tables;
                return self.failed(body, is_end.then_some(end), (is_opening, is_ahead), target);
            }
            tag::READY if end.in_block && !self.is_at_commit => {
                self.is_at_commit = true;
            }
            tag::READY => {
                backend::status(body)?;
                (self.opened, self.is_at_commit) = (0, false);
                let mut answers = std::mem::take(&mut self.current);
                answers.commit = self.commit.split().freeze();
                self.ended = 0;
                self.row.clear();
                self.oversized = false;
                return Ok(Some(ReplyEvent::Ready(answers)));
            }
            _ if of_units => self.current.bytes.extend_from_slice(bytes),
            _ => {}
        }
        Ok(None)
    }

    /// `end` is the batch's end, if a statement there has failed.
    fn failed(
        &mut self,
        body: &[u8],
        end: Option<BatchEnd>,
        (is_opening, is_ahead): (bool, bool),
        target: &dyn Target,
    ) -> Result<Option<ReplyEvent>, Error> {
        let report = Report::read(body)?;
        if !report.is_error() {
            // FATAL and PANIC do not show the outcome of the commit. The connection will be lost, and the next one asks
            // for it.
            tracing::warn!(message = %String::from_utf8_lossy(report.message), "the server closes a lane's connection");
            return Ok(None);
        }
        tracing::trace!(message = %String::from_utf8_lossy(report.message), "a batch has failed");
        if target.is_behind((!is_opening).then_some(report.code)) {
            return Ok(Some(ReplyEvent::Failed(Failure::Behind)));
        }
        if let Some(end) = end
            && let Ok(code) = report.code.try_into()
        {
            let check = match end.state {
                Some(state) if self.ended == 0 => Check::State(state),
                _ if self.ended < end.checks => Check::Fingerprint,
                _ => Check::End,
            };
            return Ok(Some(ReplyEvent::CheckFailed { code, check }));
        }
        if report.code == NO_STATEMENT {
            return Ok(Some(ReplyEvent::Missing));
        }
        Ok(Some(ReplyEvent::Failed(match report.code {
            code if self.is_at_commit && citus::can_be_of_other_server(code) => Failure::Uncertain,
            // Other functions report it for NOWAIT, which does not wait for a lock. The gateway's own statements have it, too.
            b"55P03" if report.routine != b"ProcessInterrupts" && !is_ahead => Failure::Error,
            // The server says for which row a statement has waited, also if code of the statement has.
            b"55P03" if report.context.is_empty() => Failure::TableBlocked,
            b"55P03" | b"40P01" => Failure::Blocked,
            b"57014" => Failure::TooSlow,
            _ => Failure::Error,
        })))
    }
}

#[cfg(test)]
mod tests {
    use hotrow_core::session::put_ready;
    use hotrow_wire::backend::{Status, put_command_complete};
    use hotrow_wire::put_frame;

    use super::super::target::OwnServer;
    use super::*;

    /// The events in the replies to a batch of one call, with a BEGIN and a COMMIT of its own.
    fn events(tags: [&str; 4], failure: Option<Failure>) -> Vec<String> {
        let mut batch = Batch::new(1, Vec::new(), false);
        (batch.call_count, batch.failure, batch.written) = (1, failure, true);
        let mut end = BatchEnd::default();
        (end.tables, end.openings, end.in_block) = (1, 1, true);
        let mut input = BytesMut::new();
        for (place, command) in tags.into_iter().enumerate() {
            put_frame(&mut input, tag::BIND_COMPLETE, |_| {});
            put_command_complete(&mut input, command);
            if place >= 2 {
                put_ready(Status::Idle, &mut input);
            }
        }
        let (mut replies, mut events) = (Replies::default(), Vec::new());
        while let Some(event) = replies.next(&mut input, &batch, end, LaneKind::Write, &OwnServer).unwrap() {
            let event = format!("{event:?}");
            events.push(event.split(['(', ' ']).next().unwrap_or_default().to_owned());
        }
        events
    }

    #[test]
    fn a_commit_that_has_rolled_back_without_an_error_has_failed() {
        let tags = |commit| ["BEGIN", "UPDATE 1", "SELECT 1", commit];
        assert_eq!(events(tags("COMMIT"), None), ["Answered", "End", "Ready"]);
        assert_eq!(events(tags("ROLLBACK"), None), ["Answered", "End", "Failed", "Ready"]);
        let known = events(tags("ROLLBACK"), Some(Failure::Error));
        assert_eq!(known, ["Answered", "End", "Ready"], "the error was reported before");
    }
}
