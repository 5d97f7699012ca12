//! Errors of the gateway for units that a lane refuses: their texts, metrics and log lines.

use hotrow_core::classify::Alters;
use hotrow_lane::lane::{Refusal, Unit};
use hotrow_wire::SqlState;
use hotrow_wire::backend::Problem;

use super::Postgres;
use super::envelope::{Envelope, Returned};
use crate::metrics::{METRICS, RefusalReason};
use crate::server::problems;

impl Postgres {
    fn report_refused(&self, units: usize, refusal: Refusal) {
        match refusal {
            Refusal::OutcomeUnknown => {
                METRICS.unknown.add(units as u64);
                tracing::error!(
                    lane = self.index,
                    units,
                    "a connection was lost during a commit, and the outcome is unknown"
                );
            }
            Refusal::WrittenElsewhere => {
                METRICS.unknown.add(units as u64);
                tracing::error!(
                    lane = self.index,
                    units,
                    "a node reported changed rows, but its own transaction has changed none, and the outcome is unknown: \
                     set citus_lanes = false until the placement of the shards is understood"
                );
                // The statements are judged again, with the placement as it is now.
                self.context.database.catalog_changed(Alters::Anything);
            }
            Refusal::NotSent => match self.connection.failure() {
                Some(error) => METRICS.refusals.add_because(problems::reason(error), units as u64, error),
                None => METRICS.refusals.add(RefusalReason::NoServer, units as u64),
            },
            Refusal::QueueFull => METRICS.refusals.add(RefusalReason::QueueFull, units as u64),
            Refusal::Paused => METRICS.refusals.add(RefusalReason::Paused, units as u64),
            Refusal::Cancelled => METRICS.refusals.add(RefusalReason::Cancelled, units as u64),
        }
    }

    /// The error for the clients of units that this lane refuses.
    fn problem(&self, refusal: Refusal) -> Problem {
        match (refusal, self.connection.failure()) {
            (Refusal::NotSent, Some(error)) if !error.is_retryable() => {
                let (code, message, hint) = problems::no_server(
                    error,
                    "the statement was not executed",
                    "It is safe to send the statement again.",
                );
                Problem::error(code, message, hint)
            }
            _ => problem(refusal),
        }
    }

    pub(super) fn answer_refused(&mut self, units: Vec<Unit<Envelope>>, refusal: Refusal) {
        let problem = self.problem(refusal);
        self.report_refused(units.len(), refusal);
        for unit in units {
            if unit.payload.unit.may_stay_open() {
                let problem = problem.clone();
                self.return_unit(unit, |envelope| Returned::Refuse(envelope, problem));
            } else if unit.payload.refuse(&problem) {
                self.touched.push(unit.payload.mailbox);
            }
        }
    }
}

fn problem(refusal: Refusal) -> Problem {
    match refusal {
        Refusal::OutcomeUnknown => Problem::error(
            SqlState::TransactionResolutionUnknown,
            "the connection to the server was lost during the commit, and the outcome is unknown",
            "The statement was executed once or not at all. Check before you send it again.",
        ),
        Refusal::WrittenElsewhere => Problem::error(
            SqlState::TransactionResolutionUnknown,
            "the node reported changed rows, but its own transaction has changed none, and the outcome is unknown",
            "The statement was executed once or not at all. Check before you send it again. Set citus_lanes = false until the \
             placement of the shards is understood.",
        ),
        Refusal::NotSent => Problem::error(
            SqlState::CannotConnectNow,
            "the server cannot be reached; the statement was not executed",
            "It is safe to send the statement again. server_wait_ms limits how long it waits for the server.",
        ),
        Refusal::Paused => {
            paused("the statement was not executed", "It is safe to send the statement again.")
        }
        Refusal::QueueFull => Problem::error(
            SqlState::InsufficientResources,
            "too many statements wait in the lane, or it is too slow for them; the statement was not executed",
            "It is safe to send the statement again. Send fewer statements at the same time, or raise queue_wait_ms.",
        ),
        Refusal::Cancelled => hotrow_core::session::cancelled(),
    }
}

/// The error for a client that has waited too long during a pause.
pub fn paused(outcome: &str, retry: &str) -> Problem {
    let message = format!("the database was paused by an operator, and not resumed in time; {outcome}");
    let hint = format!(
        "{retry} An operator ends the pause with RESUME; server_wait_ms limits how long clients wait."
    );
    Problem::error(SqlState::CannotConnectNow, message, hint)
}
