//! Errors of the gateway for units that a lane refuses: their texts, metrics and log lines.

use hotrow_core::classify::Alters;
use hotrow_core::lane::{Refusal, Unit};
use hotrow_wire::backend::Problem;

use super::message::Envelope;
use super::{Task, paused};
use crate::metrics::{self, METRICS};

impl Task {
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
                self.context.database.catalogue_changed(Alters::Anything);
            }
            _ => METRICS.refusals.add(reason(refusal), units as u64),
        }
    }

    pub(super) fn refuse(&mut self, units: Vec<Unit<Envelope>>, refusal: Refusal) {
        let problem = problem(refusal);
        self.report_refused(units.len(), refusal);
        self.context.release(self.kind, self.index, units.iter());
        for unit in units {
            if unit.payload.refuse(&problem) {
                self.touched.push(unit.payload.mailbox);
            }
        }
    }
}

/// The metric's reason.
fn reason(refusal: Refusal) -> metrics::RefusalReason {
    match refusal {
        Refusal::NotSent | Refusal::OutcomeUnknown | Refusal::WrittenElsewhere => {
            metrics::RefusalReason::NoServer
        }
        Refusal::QueueFull => metrics::RefusalReason::QueueFull,
        Refusal::Paused => metrics::RefusalReason::Paused,
        Refusal::Cancelled => metrics::RefusalReason::Cancelled,
    }
}

fn problem(refusal: Refusal) -> Problem {
    match refusal {
        Refusal::OutcomeUnknown => Problem::error(
            "08007",
            "the connection to the server was lost during the commit, and the outcome is unknown",
            "The statement was executed once or not at all. Check before you send it again.",
        ),
        Refusal::WrittenElsewhere => Problem::error(
            "08007",
            "the node reported changed rows, but its own transaction has changed none, and the outcome is unknown",
            "The statement was executed once or not at all. Check before you send it again. Set citus_lanes = false until the \
             placement of the shards is understood.",
        ),
        Refusal::NotSent => Problem::error(
            "57P03",
            "the server can't be reached; the statement was not executed",
            "It is safe to send the statement again. server_wait_ms limits how long it waits for the server.",
        ),
        Refusal::Paused => {
            paused("the statement was not executed", "It is safe to send the statement again.")
        }
        Refusal::QueueFull => Problem::error(
            "53000",
            "too many statements wait in the lane, or it is too slow for them; the statement was not executed",
            "It is safe to send the statement again. Send fewer statements at once, or raise queue_wait_ms.",
        ),
        Refusal::Cancelled => hotrow_core::session::cancelled(),
    }
}
