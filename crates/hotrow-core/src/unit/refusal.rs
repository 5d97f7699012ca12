//! The replies to a unit that the gateway refuses. The client gets the error in place of the first statement's reply, and the
//! replies before and after the error are those of a server on which this statement fails.

use bytes::BytesMut;
use hotrow_wire::SqlState;
use hotrow_wire::backend::{self, Problem};

use super::{Packed, Step};

impl<S> Packed<S> {
    /// Writes the replies. If the client is in a failed transaction then, returns the text of its BEGIN.
    pub fn put_refusal(&self, problem: &Problem, out: &mut BytesMut) -> Option<&'static str> {
        let stays_open = self.may_stay_open();
        let is_unknown = problem.code == SqlState::TransactionResolutionUnknown;
        let Some(Step::BlockCommand(begin, framing)) =
            self.steps.first().filter(|_| stays_open || !is_unknown)
        else {
            put_lost(problem, self.readies(), out);
            return None;
        };
        framing.put_before(out);
        framing.put_command(begin.tag(), out);
        framing.put_behind(out);
        if stays_open {
            problem.put(out);
            out.extend_from_slice(backend::READY_FAILED);
            return Some(begin.tag());
        }
        // BEGIN and COMMIT are messages of their own.
        out.extend_from_slice(backend::READY_IN_TRANSACTION);
        for part in 2..self.readies() {
            if part == 2 {
                problem.put(out)
            } else {
                aborted().put(out)
            }
            out.extend_from_slice(backend::READY_FAILED);
        }
        backend::put_command_complete(out, "ROLLBACK");
        out.extend_from_slice(backend::READY_IDLE);
        None
    }
}

/// Writes an error for each ReadyForQuery that a client still expects of a unit whose connection is lost, and outside of a
/// transaction.
pub fn put_lost(problem: &Problem, readies: usize, out: &mut BytesMut) {
    for _ in 0..readies {
        problem.put(out);
        out.extend_from_slice(backend::READY_IDLE);
    }
}

/// PostgreSQL's error for a statement in a failed transaction.
pub fn aborted() -> Problem {
    let message = "current transaction is aborted, commands ignored until end of transaction block";
    Problem::error(SqlState::InFailedSqlTransaction, message, "")
}
