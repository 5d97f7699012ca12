//! Takes apart what a lane's connection brings: which bytes answer which unit, and what they say of the batch.

use bytes::{Buf, Bytes, BytesMut};
use hotrow_core::lane::{Batch, Failure, Kind};
use hotrow_core::limits;
use hotrow_wire::backend::{self, Report, tag};
use hotrow_wire::{Error, HEADER_BYTES, split};

use crate::unit::Packed;

/// What the bytes say.
#[derive(Debug)]
pub enum Note {
    /// A statement of the gateway's is prepared.
    Prepared,
    /// One more row is locked ahead.
    Locked,
    /// One more call is answered.
    Answered,
    /// The transaction's id.
    TransactionId(Option<u64>),
    /// The next unit, or the commit, has failed.
    Failed(Failure),
    /// The batch is over.
    Ready(Answers),
}

/// What came for the units of one batch.
#[derive(Debug, Default)]
pub struct Answers {
    /// The batch.
    pub number: u64,
    /// What came for the commit: notices.
    pub commit: Bytes,
    bytes: BytesMut,
    /// Where each call's answer ends; none where a row was too large to keep.
    ends: Vec<(usize, bool)>,
}

impl Answers {
    /// What came for the call at this index, unless it was too large.
    pub fn of(&self, index: usize) -> Option<&[u8]> {
        let start = index.checked_sub(1).map_or(0, |previous| self.ends.get(previous).map_or(0, |end| end.0));
        match self.ends.get(index) {
            Some((end, true)) => self.bytes.get(start..*end),
            _ => None,
        }
    }
}

/// The batch whose answers are coming.
#[derive(Debug, Default)]
pub struct Replies {
    current: Answers,
    commit: BytesMut,
    /// The unit that is being answered has lost a row.
    oversized: bool,
    /// Bytes of that row still to come.
    skip: usize,
    xid: Option<u64>,
}

impl Replies {
    /// A new connection.
    pub fn reset(&mut self) {
        *self = Replies::default();
    }

    /// The connection is gone: what came for the batch that was being answered.
    pub fn cut_off(&mut self, number: Option<u64>) -> Option<Answers> {
        let mut answers = std::mem::take(self).current;
        answers.number = number?;
        Some(answers)
    }

    /// What came for the call that was answered last.
    pub fn last(&self) -> &[u8] {
        self.current.ends.len().checked_sub(1).and_then(|index| self.current.of(index)).unwrap_or_default()
    }

    /// Looks at what the server says when it owes nothing.
    pub fn idle(&mut self, input: &mut BytesMut) {
        while let Ok(Some(frame)) = split(input, |_| limits::MESSAGE_BYTES_MAX) {
            if frame.tag == tag::ERROR
                && let Ok(report) = Report::read(frame.body())
            {
                tracing::warn!(message = %String::from_utf8_lossy(report.message), "the server ends a lane's connection");
            }
            let length = frame.bytes.len();
            input.advance(length);
        }
    }

    /// The next thing that the bytes say, or none until more of them come.
    pub fn next(
        &mut self,
        input: &mut BytesMut,
        batch: &Batch<Packed>,
        kind: Kind,
    ) -> Result<Option<Note>, Error> {
        loop {
            if self.skip > 0 {
                let count = self.skip.min(input.len());
                input.advance(count);
                self.skip -= count;
                if self.skip > 0 {
                    return Ok(None);
                }
            }
            let bytes_max = if kind == Kind::Read { limits::READ_ROW_BYTES_MAX } else { usize::MAX };
            if kind == Kind::Read
                && input.first() == Some(&tag::DATA_ROW)
                && self.begins_oversized(input, bytes_max)
            {
                continue;
            }
            let Some(frame) = split(input, |_| usize::MAX)? else { return Ok(None) };
            let length = frame.bytes.len();
            let note = self.take(frame.tag, frame.body(), frame.bytes, batch)?;
            input.advance(length);
            if let Some(mut note) = note {
                if let Note::Ready(answers) = &mut note {
                    answers.number = batch.number;
                }
                return Ok(Some(note));
            }
        }
    }

    /// Whether a row comes that is too large for a lane: then it is skipped, and its unit runs again elsewhere.
    fn begins_oversized(&mut self, input: &[u8], bytes_max: usize) -> bool {
        let Some((header, _)) = input.split_first_chunk::<HEADER_BYTES>() else { return false };
        let total = u32::from_be_bytes([header[1], header[2], header[3], header[4]]) as usize + 1;
        if total <= bytes_max {
            return false;
        }
        self.skip = total;
        self.oversized = true;
        true
    }

    fn take(
        &mut self,
        kind: u8,
        body: &[u8],
        bytes: &[u8],
        batch: &Batch<Packed>,
    ) -> Result<Option<Note>, Error> {
        let of_units = self.current.ends.len() < batch.call_count;
        let is_ahead = batch.locked < batch.ahead.len();
        match kind {
            tag::COMMAND_COMPLETE if is_ahead => return Ok(Some(Note::Locked)),
            tag::BIND_COMPLETE | tag::DATA_ROW if is_ahead => {}
            tag::PARSE_COMPLETE => return Ok(Some(Note::Prepared)),
            tag::CLOSE_COMPLETE | tag::PARAMETER_STATUS | tag::NOTIFICATION => {}
            tag::NOTICE if !of_units => self.commit.extend_from_slice(bytes),
            tag::COMMAND_COMPLETE | tag::EMPTY_QUERY if of_units => {
                self.current.bytes.extend_from_slice(bytes);
                self.current.ends.push((self.current.bytes.len(), !std::mem::take(&mut self.oversized)));
                return Ok(Some(Note::Answered));
            }
            tag::COMMAND_COMPLETE => return Ok(Some(Note::TransactionId(self.xid.take()))),
            tag::DATA_ROW if !of_units => self.xid = transaction_id(body)?,
            tag::ERROR => return self.failed(body),
            tag::READY => {
                backend::status(body)?;
                let mut answers = std::mem::take(&mut self.current);
                answers.commit = self.commit.split().freeze();
                self.xid = None;
                self.oversized = false;
                return Ok(Some(Note::Ready(answers)));
            }
            _ if of_units => self.current.bytes.extend_from_slice(bytes),
            _ => {}
        }
        Ok(None)
    }

    fn failed(&mut self, body: &[u8]) -> Result<Option<Note>, Error> {
        let report = Report::read(body)?;
        if !report.is_error() {
            // FATAL and PANIC say nothing about what became of the commit: the connection will be lost, and then asked.
            tracing::warn!(message = %String::from_utf8_lossy(report.message), "the server ends a lane's connection");
            return Ok(None);
        }
        let blocked = matches!(report.code, b"55P03" | b"40P01");
        Ok(Some(Note::Failed(if blocked { Failure::Blocked } else { Failure::Error })))
    }
}

fn transaction_id(body: &[u8]) -> Result<Option<u64>, Error> {
    match backend::data_row(body)?.first() {
        Some(Some(text)) => str::from_utf8(text)
            .ok()
            .and_then(|text| text.parse().ok())
            .map(Some)
            .ok_or(Error::Malformed("a transaction's id that is no number")),
        _ => Ok(None),
    }
}
