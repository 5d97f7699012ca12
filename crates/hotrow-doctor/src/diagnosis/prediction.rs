//! What the gateway would give, as a range with its assumptions.
//!
//! Little's law gives the queue of a row and the time that its lock is held. A batch of `b` units takes
//! `b * execution + flush`, so the gateway does `b / (b * execution + flush)` units per second.

use crate::diagnosis::blocking::Blocking;
use crate::diagnosis::load::Class;
use crate::diagnosis::rows::{HotRow, RowWaits};
use crate::diagnosis::statements::StatementLoads;
use crate::diagnosis::throughput::Throughput;

/// The units of one row that a commit can hold at most.
const BATCH_MAX: f64 = 128.0;
/// Assumed execution times of an update by key in a batch, in microseconds. Measured: 6 on a fast core, 20 on a slow one.
const EXECUTION_US: [f64; 2] = [6.0, 60.0];
/// A range below this factor is no help.
pub const WORTH: f64 = 1.3;

/// How long the lock of the hottest row is held, and how often it changes hands.
#[derive(Clone, Debug)]
pub struct Hold {
    /// Changes of the row per second.
    pub per_second: f64,
    /// The time that its lock is held, in milliseconds.
    pub ms: f64,
    /// The parts of this time: log flush, client, execution.
    pub parts: [(Class, f64); 3],
}

impl Hold {
    /// The hold of the hottest row. `None` if too little is known.
    pub fn of(row: &HotRow, waits: &RowWaits, blocking: &Blocking, throughput: &Throughput) -> Option<Hold> {
        let of_table = waits.tables.get(&row.relation).copied().unwrap_or(0.0);
        let share = if of_table > 0.0 { row.waiting / of_table } else { 1.0 };
        let changes = throughput.changes_of(row.relation).map(|changes| changes * share);
        let writes = throughput.writes.unwrap_or(f64::INFINITY);
        let per_second = changes.unwrap_or(writes * row.share).min(writes);
        if !per_second.is_finite() || per_second <= 0.0 {
            return None;
        }
        let part = |class| blocking.doing(class).unwrap_or(0.0);
        let flush = part(Class::Flush);
        let client = part(Class::Client);
        let parts =
            [(Class::Flush, flush), (Class::Client, client), (Class::Cpu, (1.0 - flush - client).max(0.0))];
        // Without a queue, the row is free some of the time.
        Some(Hold { per_second, ms: 1e3 * row.waiting.min(1.0) / per_second, parts })
    }

    /// The share of the lock's time in a class.
    pub fn part(&self, class: Class) -> f64 {
        self.parts.iter().find(|(known, _)| *known == class).map_or(0.0, |(_, part)| *part)
    }
}

/// A range of factors on today's rate.
#[derive(Clone, Debug, Default)]
pub struct Prediction {
    /// The cautious end.
    pub low: f64,
    /// The optimistic end.
    pub high: f64,
    /// Today's rate of the hot row, per second.
    pub today: Option<f64>,
    /// What the range assumes.
    pub assumptions: Vec<String>,
}

impl Prediction {
    /// The gateway gives nothing here.
    pub fn none(why: &str) -> Prediction {
        Prediction { low: 1.0, high: 1.0, today: None, assumptions: vec![why.to_owned()] }
    }

    /// Whether the gateway helps.
    pub fn is_help(&self) -> bool {
        self.high >= WORTH
    }

    /// For a row with a queue.
    pub fn of_row(hold: &Hold, waiting: f64, loads: &StatementLoads, batch_max: Option<f64>) -> Prediction {
        let queue = (waiting + 1.0).min(batch_max.unwrap_or(BATCH_MAX).min(BATCH_MAX));
        let flush_us = hold.ms * 1e3 * hold.part(Class::Flush).max(0.1);
        let packable = if loads.is_known { loads.packable } else { 1.0 };
        let time_us = |batch: f64, execution: f64, flush: f64| execution + flush / batch;
        let factor = |unit_us: f64, packable: f64| {
            let now = hold.ms * 1e3;
            // What is not packed holds the lock as long as today.
            now / (packable * unit_us.min(now) + (1.0 - packable) * now)
        };
        let low = factor(
            time_us((queue / 2.0).max(1.0), EXECUTION_US[1], flush_us * 2.0),
            (packable - 0.1).max(0.0),
        );
        let high = factor(time_us(queue, EXECUTION_US[0], flush_us / 2.0), packable);
        let assumptions = vec![
            format!("a queue of {queue:.0} calls for the row, half of it in the cautious case"),
            format!(
                "{:.0} to {:.0} µs of execution for each call in a batch, and {:.0} to {:.0} µs for a commit",
                EXECUTION_US[0],
                EXECUTION_US[1],
                flush_us / 2.0,
                flush_us * 2.0
            ),
            format!(
                "{:.0} % of the calls are packable as they are; the others hold the lock as long as today",
                packable * 100.0
            ),
            "clients send their next call as soon as they get an answer".to_owned(),
        ];
        Prediction { low: low.max(1.0), high: high.max(1.0), today: Some(hold.per_second), assumptions }
    }

    /// For commits that wait for the log without a hot row. The server commits concurrent transactions with one flush
    /// too, so the gateway saves only their cost outside the flush.
    pub fn of_flushes(loads: &StatementLoads) -> Prediction {
        let packable = if loads.is_known { loads.packable } else { 1.0 };
        Prediction {
            low: 1.0,
            high: 1.0 / (packable * 0.5 + (1.0 - packable)),
            today: None,
            assumptions: vec![
                "the server already flushes the commits of concurrent transactions together".to_owned(),
                format!(
                    "{:.0} % of the calls are packable as they are, and cost half as much in a batch",
                    packable * 100.0
                ),
            ],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hold(ms: f64, flush: f64, client: f64) -> Hold {
        let parts = [(Class::Flush, flush), (Class::Client, client), (Class::Cpu, 1.0 - flush - client)];
        Hold { per_second: 1e3 / ms, ms, parts }
    }

    fn loads(packable: f64) -> StatementLoads {
        StatementLoads { packable, is_known: true, ..StatementLoads::default() }
    }

    /// Machine A of the README: 6,107 updates per second directly, 164,102 through the gateway.
    #[test]
    fn the_range_of_a_measured_hot_row_contains_the_measured_factor() {
        let prediction = Prediction::of_row(&hold(1e3 / 6_107.0, 0.3, 0.0), 62.0, &loads(1.0), None);
        assert!(prediction.low < 26.9 && prediction.high > 20.0, "{prediction:?}");
        assert!(prediction.low > 1.5 && prediction.is_help(), "{prediction:?}");
    }

    #[test]
    fn transactions_that_wait_for_their_client_gain_nothing() {
        let prediction = Prediction::of_row(&hold(5.0, 0.05, 0.9), 30.0, &loads(0.0), None);
        assert!(!prediction.is_help(), "{prediction:?}");
    }

    #[test]
    fn a_larger_packable_share_gives_more() {
        let high = |packable| Prediction::of_row(&hold(1.0, 0.7, 0.1), 40.0, &loads(packable), None).high;
        assert!(high(0.5) < high(0.9) && high(0.9) < high(1.0));
        assert!(high(0.5) < 2.0, "half of the calls hold the lock as today: {}", high(0.5));
    }
}
