//! A unit: the work that one client must see as one transaction. `gather` determines its form, `builder`
//! writes the messages that a lane sends for it, and `framing` and `merged` build the client's reply from the
//! lane's. Whether a unit is packed is decided elsewhere.

mod builder;
mod framing;
pub mod gather;
pub mod merged;
mod refusal;
#[cfg(test)]
mod tests;

use std::ops::Range;
use std::sync::Arc;

use bytes::BytesMut;
use hotrow_lane::key::Key;
use hotrow_lane::lane::{Claimed, LaneKind, Merge};
use hotrow_wire::backend;
use hotrow_wire::frontend::{self, Bind};
use hotrow_wire::split;

pub(crate) use builder::param;
pub use builder::{Plan, Prepared, UnitBuilder};
use framing::ReplyFraming;
pub use framing::put_command_answer;
use gather::Describe;
use merged::Rows;
pub use refusal::{aborted, put_lost};

use crate::classify::{BlockCommand, LockStatement, Packing, Returns};
use crate::distribution::UnitNode;
use crate::key::{KeyName, Row};
use crate::traceparent::SpanContext;

/// A unit that a lane can run. `S` is the gateway's type for a statement.
#[derive(Debug)]
pub struct Packed<S> {
    /// What it contends for. While it is in a lane, the lane has it.
    pub claimed: Claimed,
    /// The nodes where it can run.
    pub node: UnitNode,
    /// The shards that it changes.
    pub shards: Box<[i64]>,
    /// The client's span that it is part of, if batches are traced.
    pub parent: Option<Box<SpanContext>>,
    /// The rows of one of its statements are too many or cannot be read.
    is_unreadable: bool,
    steps: Vec<Step<S>>,
    bytes: Box<[u8]>,
    /// The offset in `bytes` of the messages as the client sent them.
    raw: usize,
}

/// One statement of a unit.
#[derive(Debug)]
enum Step<S> {
    Run(Run<S>),
    BlockCommand(BlockCommand, ReplyFraming),
}

/// A statement that the lane runs.
#[derive(Debug)]
pub struct Run<S> {
    /// The statement, to be prepared on the lane.
    pub statement: S,
    /// The way it is packed.
    pub packing: Arc<Packing>,
    /// Its messages for the lane, as a range of the unit's bytes.
    frames: Range<usize>,
    framing: ReplyFraming,
}

impl<S> Packed<S> {
    /// The lanes that run it.
    pub fn kind(&self) -> LaneKind {
        let writes = |run: &Run<S>| run.packing.kind == LaneKind::Write;
        if self.runs().any(writes) { LaneKind::Write } else { LaneKind::Read }
    }

    /// Whether it only reads rows by their keys, outside of a transaction and of distributed tables, and a batch can check all
    /// tables that it relies on.
    pub fn is_plain_read(&self) -> bool {
        let is_plain = |step: &Step<S>| match step {
            Step::Run(run) => run.packing.is_plain_read(),
            Step::BlockCommand(..) => false,
        };
        !self.is_unreadable && self.steps.iter().all(is_plain)
    }

    /// Whether it advances a sequence whose value the session can read.
    pub fn touches_sequence(&self) -> bool {
        self.runs().any(|run| run.packing.touches_sequence)
    }

    /// All rows for which it is known to contend.
    pub fn keys(&self) -> impl Iterator<Item = Key> + Clone {
        self.claimed.keys()
    }

    /// The statements that the lane runs.
    pub fn runs(&self) -> impl Iterator<Item = &Run<S>> {
        runs(&self.steps)
    }

    /// Whether its rows are not known or on several nodes, or it can wait and cannot be sent as a call of the batch function. In a lane it
    /// would hold up all other units.
    pub fn must_run_alone(&self) -> bool {
        self.is_unreadable
            || self.node == UnitNode::Nowhere
            || self.claimed.may_wait && self.claimed.merge.is_none_or(|merge| merge == Merge::NEVER)
    }

    /// Whether its transaction would stay open after a failure, because its COMMIT is not a message of its
    /// own. A COMMIT of its own would end the transaction.
    pub fn may_stay_open(&self) -> bool {
        self.readies() == 1 && matches!(self.steps.first(), Some(Step::BlockCommand(..)))
    }

    /// Number of ReadyForQuery messages that its client expects.
    pub fn readies(&self) -> usize {
        let readies = self.steps.iter().filter(|step| match step {
            Step::Run(Run { framing, .. }) | Step::BlockCommand(_, framing) => framing.ready,
        });
        readies.count().max(1)
    }

    /// Its writes of which the client was told before they ran.
    pub fn told(&self) -> impl Iterator<Item = &Run<S>> {
        self.runs().filter(|run| run.framing.told)
    }

    /// A statement's messages for the lane, without Parse and Sync.
    pub fn frames(&self, run: &Run<S>) -> &[u8] {
        &self.bytes[run.frames.clone()]
    }

    /// The statement and the parameters of a call that can be merged.
    pub fn call(&self) -> Option<(&Run<S>, Bind<'_>)> {
        let run = self.runs().next()?;
        Some((run, bind_of(self.frames(run))?))
    }

    /// The reply to a merged call of `calls` calls, of which this is the first. Fails with a description of
    /// the problem.
    pub fn rows<'b>(&self, bytes: &'b [u8], calls: usize) -> Option<Result<Rows<'b>, String>> {
        let (run, bind) = self.call()?;
        let returns = run.packing.merging.as_ref()?.returns;
        Some(Rows::read(bytes, returns, merged::is_lead_binary(&bind), calls))
    }

    pub fn lock(&self, statement: u16, key: Key) -> Option<(&LockStatement, Row<'_>)> {
        let run = self.runs().nth(statement.into())?;
        let mut frames = self.frames(run);
        while let Ok(Some(frame)) = split(frames, |_| usize::MAX) {
            if frame.tag == frontend::tag::BIND {
                let bind = Bind::read(frame.body()).ok()?;
                let (part, spec) = run.packing.part_of(key)?;
                let rows = spec.rows(|index| param(&bind, index))?;
                let row = rows.into_iter().find(|row| row.key == key);
                return part.lock_statement.as_ref().zip(row);
            }
            frames = &frames[frame.bytes.len()..];
        }
        None
    }

    /// A row for which it contends, in words. Of a row that cannot be found, the name of the first table.
    pub fn name_of(&self, key: Key) -> Option<KeyName> {
        let found = self.runs().find_map(|run| {
            let (part, spec) = run.packing.part_of(key)?;
            let mut frames = self.frames(run);
            while let Ok(Some(frame)) = split(frames, |_| usize::MAX) {
                if frame.tag == frontend::tag::BIND {
                    let bind = Bind::read(frame.body()).ok()?;
                    let rows = spec.rows(|index| param(&bind, index))?;
                    let row = rows.into_iter().find(|row| row.key == key)?;
                    return Some(KeyName::new(&part.table, spec, &row));
                }
                frames = &frames[frame.bytes.len()..];
            }
            None
        });
        found.or_else(|| self.runs().next().map(|run| KeyName::of_table(&run.packing.table)))
    }

    /// Whether its client has requested the description of a statement, and not only of its result.
    pub fn describes_statement(&self) -> bool {
        self.runs().any(|run| matches!(run.framing.describe, Describe::StatementFirst | Describe::Statement))
    }

    /// The messages as the client sent them.
    pub fn raw(&self) -> &[u8] {
        &self.bytes[self.raw..]
    }

    /// Writes the client's reply from its row of a merged call.
    pub fn put_merged_answer(&self, rows: &Rows<'_>, place: usize, from_commit: &[u8], out: &mut BytesMut) {
        let Some(Run { framing, .. }) = self.runs().next() else { return };
        framing.put_before(out);
        if !framing.simple {
            out.extend_from_slice(backend::BIND_COMPLETE);
        }
        rows.put(place, framing.simple || framing.describe == Describe::Portal, out);
        out.extend_from_slice(from_commit);
        framing.put_behind(out);
        out.extend_from_slice(backend::READY_IDLE);
    }

    /// Writes the client's reply from the lane's replies to its statements and to the commit.
    pub fn put_answer<'a>(
        &self,
        mut from_lane: impl Iterator<Item = &'a [u8]>,
        from_commit: &[u8],
        out: &mut BytesMut,
    ) {
        for (place, step) in self.steps.iter().enumerate() {
            let framing = match step {
                Step::Run(run) => {
                    let from_lane = from_lane.next().unwrap_or_default();
                    if run.framing.told {
                        continue;
                    }
                    run.framing.put_before(out);
                    run.framing.put(from_lane, out);
                    run.framing
                }
                Step::BlockCommand(block_command, framing) => {
                    framing.put_before(out);
                    framing.put_command(block_command.tag(), out);
                    *framing
                }
            };
            let is_last = place + 1 == self.steps.len();
            if is_last {
                out.extend_from_slice(from_commit);
            }
            framing.put_behind(out);
            if framing.ready && !is_last {
                out.extend_from_slice(backend::READY_IN_TRANSACTION);
            }
        }
        out.extend_from_slice(backend::READY_IDLE);
    }
}

fn runs<S>(steps: &[Step<S>]) -> impl Iterator<Item = &Run<S>> {
    steps.iter().filter_map(|step| match step {
        Step::Run(run) => Some(run),
        Step::BlockCommand(..) => None,
    })
}

/// Whether a call can find nothing and wait. Only the batch function can report this.
fn may_wait(packing: &Packing) -> bool {
    packing.merging.as_ref().is_some_and(|merging| merging.returns == Returns::RowsOrWait)
}

fn bind_of(frames: &[u8]) -> Option<Bind<'_>> {
    let frame = split(frames, |_| usize::MAX).ok()??;
    if frame.tag == frontend::tag::BIND { Bind::read(frame.body()).ok() } else { None }
}
