//! How long the lock of a hot row is held, by Little's law, and what that time is spent on.

use crate::diagnosis::blocking::Blocking;
use crate::diagnosis::load::Class;
use crate::diagnosis::rows::{HotRow, RowWaits};
use crate::diagnosis::throughput::Throughput;

/// How long the lock of a row is held, and how often it changes hands.
#[derive(Clone, Debug)]
pub struct Hold {
    /// Changes of the row per second.
    pub per_second: f64,
    /// The time that its lock is held, in milliseconds.
    pub ms: f64,
    /// The parts of this time: WAL flush, client, execution.
    pub parts: [(Class, f64); 3],
}

impl Hold {
    /// The hold of a row. `None` if too little is known.
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
