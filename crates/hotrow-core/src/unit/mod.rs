//! A unit: what one client must see as one transaction. What it is (`gather`), the messages that a lane sends for it (`builder`),
//! and how its client's answer is put together from the lane's (`framing`, `merged`). Never decides what is packed.

mod builder;
mod framing;
pub mod gather;
pub mod merged;
#[cfg(test)]
mod tests;

use std::ops::Range;
use std::sync::Arc;

use bytes::BytesMut;
use hotrow_wire::backend::{self, Problem};
use hotrow_wire::frontend::{self, Bind};
use hotrow_wire::split;

pub use builder::{Plan, Prepared, UnitBuilder};
use framing::ReplyFraming;
use gather::Describe;
use merged::Rows;

use crate::classify::{Boundary, LockStatement, Packing, Returns};
use crate::key::Key;
use crate::lane::{Claim, LaneKind, Merge};

/// A unit that a lane can run; `S` is the statement as the gateway knows it.
#[derive(Debug)]
pub struct Packed<S> {
    /// The row it contends for; of a unit of several statements the least of them.
    pub key: Option<Key>,
    /// How many of its versions may share a commit.
    pub rows_per_commit: u16,
    /// For a call of a function with a merge rule: what it can become one call with.
    pub merge: Option<Merge>,
    /// The rows that a unit of several statements contends for.
    pub claims: Box<[Claim]>,
    steps: Vec<Step<S>>,
    bytes: Box<[u8]>,
    /// Where in `bytes` the messages begin as the client sent them.
    raw: usize,
}

/// One statement of a unit.
#[derive(Debug)]
enum Step<S> {
    Run(Run<S>),
    Boundary(Boundary, ReplyFraming),
}

/// A statement that the lane runs.
#[derive(Debug)]
pub struct Run<S> {
    /// The statement, to be prepared on the lane.
    pub statement: S,
    /// How it is packed.
    pub packing: Arc<Packing>,
    /// Its messages for the lane, within those of the unit.
    frames: Range<usize>,
    framing: ReplyFraming,
}

impl<S> Packed<S> {
    /// Which lanes run it.
    pub fn kind(&self) -> LaneKind {
        let writes = |run: &Run<S>| run.packing.kind == LaneKind::Write;
        if self.runs().any(writes) { LaneKind::Write } else { LaneKind::Read }
    }

    /// Whether it moves a sequence that the session may ask for.
    pub fn touches_sequence(&self) -> bool {
        self.runs().any(|run| run.packing.touches_sequence)
    }

    /// All rows it is known to contend for.
    pub fn keys(&self) -> impl Iterator<Item = Key> + Clone {
        let only = if self.claims.is_empty() { self.key } else { None };
        only.into_iter().chain(self.claims.iter().map(|claim| claim.key))
    }

    /// The statements that the lane runs.
    pub fn runs(&self) -> impl Iterator<Item = &Run<S>> {
        self.steps.iter().filter_map(|step| match step {
            Step::Run(run) => Some(run),
            Step::Boundary(..) => None,
        })
    }

    /// Whether it is a call that may find nothing and wait, which its twin must be asked for.
    pub fn may_wait(&self) -> bool {
        self.runs().any(|run| may_wait(&run.packing))
    }

    /// Whether it may wait and can't be sent as a call of the twin: in a lane it would hold up all others.
    pub fn must_run_alone(&self) -> bool {
        self.may_wait() && self.merge.is_none_or(|merge| merge == Merge::NEVER)
    }

    /// Whether it is a transaction that would stay open if it failed: its COMMIT is not a message of its own, which would
    /// end it all the same.
    pub fn may_stay_open(&self) -> bool {
        self.readies() == 1 && matches!(self.steps.first(), Some(Step::Boundary(..)))
    }

    /// How many ReadyForQuery its client waits for.
    pub fn readies(&self) -> usize {
        let readies = self.steps.iter().filter(|step| match step {
            Step::Run(Run { framing, .. }) | Step::Boundary(_, framing) => framing.ready,
        });
        readies.count().max(1)
    }

    /// How many statements the lane runs.
    pub fn statement_count(&self) -> u16 {
        u16::try_from(self.runs().count()).unwrap_or(u16::MAX)
    }

    /// A statement's messages for the lane, without Parse and Sync.
    pub fn frames(&self, run: &Run<S>) -> &[u8] {
        &self.bytes[run.frames.clone()]
    }

    /// The statement and the parameters of a call that may be merged.
    pub fn call(&self) -> Option<(&Run<S>, Bind<'_>)> {
        let run = self.runs().next()?;
        Some((run, bind_of(self.frames(run))?))
    }

    /// What came for a merged call of so many, of which this is the first; or what is wrong about it.
    pub fn rows<'b>(&self, bytes: &'b [u8], calls: usize) -> Option<Result<Rows<'b>, String>> {
        let (run, bind) = self.call()?;
        let returns = run.packing.merging.as_ref()?.returns;
        Some(Rows::read(bytes, returns, merged::is_lead_binary(&bind), calls))
    }

    /// Whether the row of its one statement can be locked before it runs.
    pub fn is_lockable(&self) -> bool {
        self.runs().any(|run| run.packing.lock_statement.is_some())
    }

    /// How the row of one of its statements is locked before it runs, and its parameters.
    pub fn lock(&self, statement: u16) -> Option<(&LockStatement, Bind<'_>)> {
        let run = self.runs().nth(statement.into())?;
        let mut frames = self.frames(run);
        while let Ok(Some(frame)) = split(frames, |_| usize::MAX) {
            if frame.tag == frontend::tag::BIND {
                return run.packing.lock_statement.as_ref().zip(Bind::read(frame.body()).ok());
            }
            frames = &frames[frame.bytes.len()..];
        }
        None
    }

    /// The messages as the client sent them.
    pub fn raw(&self) -> &[u8] {
        &self.bytes[self.raw..]
    }

    /// What it weighs on the wire.
    pub fn weight(&self) -> usize {
        self.bytes.len()
    }

    /// Writes the client's answer from its row of a merged call.
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

    /// Writes the client's answer from what the lane's connection brought for each of its statements, and what it
    /// brought for the commit.
    pub fn put_answer<'a>(
        &self,
        mut from_lane: impl Iterator<Item = &'a [u8]>,
        from_commit: &[u8],
        out: &mut BytesMut,
    ) {
        for (place, step) in self.steps.iter().enumerate() {
            let framing = match step {
                Step::Run(run) => {
                    run.framing.put_before(out);
                    run.framing.put(from_lane.next().unwrap_or_default(), out);
                    run.framing
                }
                Step::Boundary(boundary, framing) => {
                    framing.put_before(out);
                    framing.put_boundary(*boundary, out);
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

/// Writes the gateway's own error in a unit's place, once for each ReadyForQuery that its client still waits for: none of
/// its messages has done what it was to do, its COMMIT least of all.
pub fn put_refusals(problem: &Problem, readies: usize, out: &mut BytesMut) {
    for _ in 0..readies {
        problem.put(out);
        out.extend_from_slice(backend::READY_IDLE);
    }
}

fn may_wait(packing: &Packing) -> bool {
    packing.merging.as_ref().is_some_and(|merging| merging.returns == Returns::RowsOrWait)
}

fn bind_of(frames: &[u8]) -> Option<Bind<'_>> {
    let frame = split(frames, |_| usize::MAX).ok()??;
    if frame.tag == frontend::tag::BIND { Bind::read(frame.body()).ok() } else { None }
}
