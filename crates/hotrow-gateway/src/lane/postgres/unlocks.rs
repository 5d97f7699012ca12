//! After a batch that was rolled back, a lane releases the advisory locks of its session. A rollback does not undo them. They
//! come from a trigger or a function that is newer than the check of the catalogue that the lane last passed.

use std::collections::VecDeque;

use bytes::{Buf, BytesMut};
use hotrow_core::limits;
use hotrow_wire::backend::tag;
use hotrow_wire::{Error, frontend, split};

use super::replies::Replies;

/// The queries whose replies have not arrived, each with the last batch that was put before it.
#[derive(Debug, Default)]
pub struct Unlocks {
    behind: VecDeque<u64>,
    has_failed: bool,
}

/// What the replies to a query show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unlock {
    /// More bytes have to arrive.
    Incomplete,
    Released,
    /// The role may not call the function. The locks end with the connection.
    Refused,
}

impl Unlocks {
    /// Puts a query behind this batch.
    pub fn put(&mut self, batch: u64, out: &mut BytesMut) {
        frontend::put_query(out, include_str!("../../../sql/unlock.sql"));
        self.behind.push_back(batch);
    }

    /// Whether the server's next replies are those to a query, and not to this batch.
    pub fn are_next(&self, batch: Option<u64>) -> bool {
        self.behind.front().is_some_and(|behind| batch.is_none_or(|batch| *behind < batch))
    }

    /// Reads the replies to the earliest query.
    pub fn read(&mut self, input: &mut BytesMut, replies: &mut Replies) -> Result<Unlock, Error> {
        while let Some(frame) = split(input, |_| limits::MESSAGE_BYTES_MAX)? {
            let (kind, length) = (frame.tag, frame.bytes.len());
            if kind == tag::PARAMETER_STATUS {
                replies.note_setting(frame.body())?;
            }
            input.advance(length);
            match kind {
                tag::ERROR => self.has_failed = true,
                tag::READY => {
                    self.behind.pop_front();
                    let has_failed = std::mem::take(&mut self.has_failed);
                    return Ok(if has_failed { Unlock::Refused } else { Unlock::Released });
                }
                _ => {}
            }
        }
        Ok(Unlock::Incomplete)
    }
}
