//! The writes that a transaction holds back: the client was told of their outcome, because it is foretold. They run with its
//! COMMIT, or before its next statement.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use hotrow_wire::backend::{Problem, Report, Status};
use hotrow_wire::{SqlState, split};

use super::{Statement, StatementInfo};
use crate::classify::{Analysis, Packing, Verb};
use crate::key::ParamValue;
use crate::limits;
use crate::unit::{Packed, Prepared, UnitBuilder};

/// A write that is held back.
pub(super) struct Write<S> {
    /// The statement that fails if it changes another number of rows than one.
    pub(super) counted: Arc<S>,
    pub(super) packing: Arc<Packing>,
    /// Its messages, for a lane or a connection.
    pub(super) frames: Bytes,
}

/// What becomes of the writes.
#[derive(Default)]
enum Stage {
    /// They are held back.
    #[default]
    Held,
    /// The server runs them, or ends their transaction.
    Runs,
    /// They have failed with this error. The client learns of it with its next message.
    Failed(Bytes),
    /// The client has learned of it. Its messages are ignored up to the Sync, after which it is told this status.
    Refused(Status),
}

/// The writes of a session's transaction.
pub(super) struct Deferred<S> {
    writes: Vec<Write<S>>,
    /// The statement and the row for which each was foretold.
    foretold: Vec<(Arc<S>, u64)>,
    bytes: usize,
    stage: Stage,
    /// The server's error while it runs them.
    error: Option<Bytes>,
    /// The unit under way only prepares and describes statements, and does not wait for them.
    passes: bool,
    /// The transaction has run a command that can change what its writes do, as SET TRANSACTION READ ONLY. No more are held back.
    declines: bool,
}

impl<S> Default for Deferred<S> {
    fn default() -> Self {
        Deferred {
            writes: Vec::new(),
            foretold: Vec::new(),
            bytes: 0,
            stage: Stage::Held,
            error: None,
            passes: false,
            declines: false,
        }
    }
}

/// In the server's message about a write that has changed another number of rows.
const WRONG_COUNT: &[u8] = b"hotrow_told_one_row_found_";

impl<S> Deferred<S> {
    pub(super) fn is_empty(&self) -> bool {
        self.writes.is_empty()
    }

    /// No more writes of the transaction are held back, unless this is so.
    pub(super) fn decline_unless(&mut self, accepts: bool) {
        self.declines |= !accepts;
    }

    /// Whether writes of the transaction can be held back.
    pub(super) fn accepts(&self) -> bool {
        !self.declines && matches!(self.stage, Stage::Held)
    }

    /// The transaction is over.
    pub(super) fn transaction_over(&mut self) {
        self.clear();
        self.declines = false;
    }

    /// A unit of the client begins.
    pub(super) fn begin_unit(&mut self) {
        self.passes = false;
    }

    /// This unit does not wait for them.
    pub(super) fn let_pass(&mut self) {
        self.passes = true;
    }

    /// Whether one more write with messages of this size can be held back.
    pub(super) fn has_room(&self, bytes: usize) -> bool {
        self.bytes + bytes <= limits::DEFERRED_BYTES_MAX
            && self.writes.len() + 2 < limits::UNIT_STATEMENTS_MAX
    }

    /// Holds one more write back, whose outcome was foretold for this statement and row.
    pub(super) fn push(&mut self, write: Write<S>, foretold: (Arc<S>, u64)) {
        if self.writes.is_empty() {
            self.foretold.clear(); // of an earlier transaction, which a lane has run
        }
        self.bytes += write.frames.len();
        self.writes.push(write);
        self.foretold.push(foretold);
    }

    /// Holds the writes of a unit back again, which no lane has run.
    pub(super) fn take_back(&mut self, unit: &Packed<Arc<S>>) {
        self.writes.extend(unit.told().map(|run| Write {
            counted: run.statement.clone(),
            packing: run.packing.clone(),
            frames: Bytes::copy_from_slice(unit.frames(run)),
        }));
    }

    /// The transaction has gone back to a time before the writes.
    pub(super) fn clear(&mut self) {
        self.writes.clear();
        self.foretold.clear();
        self.bytes = 0;
    }

    /// The writes go to a lane, which may give them back.
    pub(super) fn put(&mut self, builder: &mut UnitBuilder<'_, Arc<S>>)
    where
        S: Prepared,
    {
        for write in self.writes.drain(..) {
            builder.told(write.counted, write.packing, &write.frames);
        }
        self.bytes = 0;
    }

    /// The writes go to the server on the session's connection.
    pub(super) fn run(&mut self) -> Vec<Write<S>> {
        self.stage = Stage::Runs;
        self.bytes = 0;
        std::mem::take(&mut self.writes)
    }

    /// Whether a message of the unit under way waits until they have run. One that runs something always does.
    pub(super) fn must_run(&self, runs: bool) -> bool {
        !self.writes.is_empty() && (runs || !self.passes)
    }

    /// Whether the server has to answer before the client's next message is handled.
    pub(super) fn is_running(&self) -> bool {
        matches!(self.stage, Stage::Runs)
    }

    /// The server has reported an error while it runs them.
    pub(super) fn fails(&mut self, frame: &[u8]) {
        self.error.get_or_insert_with(|| Bytes::copy_from_slice(frame));
    }

    /// The server is done with them. Returns whether their outcome was foretold wrongly.
    pub(super) fn done(&mut self) -> bool
    where
        S: Statement,
    {
        self.stage = Stage::Held;
        let foretold = std::mem::take(&mut self.foretold);
        let Some(error) = self.error.take() else { return false };
        let is_wrong = error.windows(WRONG_COUNT.len()).any(|part| part == WRONG_COUNT);
        // The server may refuse the counted form for a table that has another definition now.
        let is_refused = code(&error).is_some_and(|code| code.starts_with(b"0A"));
        if is_wrong || is_refused || code(&error).is_some_and(|code| code.starts_with(b"42")) {
            foretold.iter().for_each(|(statement, row)| statement.foretold.was_wrong(*row));
        }
        self.stage = Stage::Failed(if is_wrong || is_refused { run_again() } else { error });
        is_wrong
    }

    /// The error of which the client learns with its next message.
    pub(super) fn failure(&self) -> Option<&Bytes> {
        match &self.stage {
            Stage::Failed(error) => Some(error),
            _ => None,
        }
    }

    /// The client has learned of it. Its unit is over with the next Sync, and it has this status then.
    pub(super) fn refuse(&mut self, status: Status) {
        self.stage = Stage::Refused(status);
    }

    /// The status of the client after its unit that was refused.
    pub(super) fn refused(&self) -> Option<Status> {
        match self.stage {
            Stage::Refused(status) => Some(status),
            _ => None,
        }
    }

    /// That unit is over.
    pub(super) fn refusal_over(&mut self) {
        self.stage = Stage::Held;
    }
}

/// The row for which the outcome of a statement can be foretold. None if the statement is not held back.
pub(super) fn row<'v, 'p: 'v, S>(
    statement: &StatementInfo<S>,
    packing: &'v Packing,
    param: impl Fn(u16) -> Option<ParamValue<'p>>,
) -> Option<u64> {
    let Analysis::Candidate(candidate) = &statement.analysis else { return None };
    if !packing.may_be_held_back(candidate) {
        return None;
    }
    if candidate.verb == Verb::Insert {
        return Some(0);
    }
    #[expect(clippy::redundant_closure, reason = "the parameters live longer than the verdict")]
    packing.key.as_ref()?.key(|index| param(index)).map(|key| key.hash)
}

/// The error for a transaction whose writes were foretold wrongly.
fn run_again() -> Bytes {
    let problem = Problem::error(
        SqlState::SerializationFailure,
        "could not serialize access: a write of the transaction had another outcome than its client was told",
        "Nothing of the transaction was committed. Run it again. pack = \"deferred\" holds such writes back.",
    );
    let mut out = BytesMut::new();
    problem.put(&mut out);
    out.freeze()
}

/// The SQLSTATE of an error's frame.
fn code(error: &[u8]) -> Option<&[u8]> {
    let frame = split(error, |_| usize::MAX).ok()??;
    Report::read(frame.body()).ok().map(|report| report.code)
}
