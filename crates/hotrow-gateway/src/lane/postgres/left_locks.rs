//! After a batch that was rolled back, a lane asks the server for the advisory locks of its session. A rollback does not undo
//! what a trigger or a function has done to them that is newer than the check of the catalog that the lane last passed. The
//! connection is renewed unless its only lock is that of its mark.

use std::collections::VecDeque;

use bytes::{Buf, BytesMut};
use hotrow_core::limits;
use hotrow_core::witness::Mark;
use hotrow_wire::backend::tag;
use hotrow_wire::frontend::{self, Parse, Value};
use hotrow_wire::{Error, split};

use super::replies::Replies;

/// The questions whose answers have not arrived, each with the last batch that was put before it.
#[derive(Debug, Default)]
pub struct LeftLocks {
    behind: VecDeque<u64>,
    are_there: bool,
}

/// What the server has answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// More bytes have to arrive.
    Incomplete,
    None,
    /// The locks are others, or the question has failed.
    Some,
}

impl LeftLocks {
    /// Puts a question behind this batch.
    pub fn ask(&mut self, batch: u64, mark: Option<&Mark>, out: &mut BytesMut) {
        let text = include_str!("../../../sql/left_locks.sql");
        Parse { name: b"", text: text.as_bytes(), types: &[] }.put(out);
        let key = Value { binary: false, bytes: mark.map(|mark| mark.lock().as_bytes()) };
        frontend::put_bind_values(out, b"", &[key], &[]);
        out.extend_from_slice(frontend::EXECUTE);
        out.extend_from_slice(frontend::SYNC);
        self.behind.push_back(batch);
    }

    /// Whether the server's next replies answer a question, and not this batch.
    pub fn is_next(&self, batch: Option<u64>) -> bool {
        self.behind.front().is_some_and(|behind| batch.is_none_or(|batch| *behind < batch))
    }

    /// Reads the answer to the earliest question.
    pub fn read(&mut self, input: &mut BytesMut, replies: &mut Replies) -> Result<Answer, Error> {
        while let Some(frame) = split(input, |_| limits::MESSAGE_BYTES_MAX)? {
            let (kind, length) = (frame.tag, frame.bytes.len());
            if kind == tag::PARAMETER_STATUS {
                replies.note_setting(frame.body())?;
            }
            input.advance(length);
            match kind {
                tag::ERROR | tag::DATA_ROW => self.are_there = true,
                tag::READY => {
                    self.behind.pop_front();
                    let are_there = std::mem::take(&mut self.are_there);
                    return Ok(if are_there { Answer::Some } else { Answer::None });
                }
                _ => {}
            }
        }
        Ok(Answer::Incomplete)
    }
}
