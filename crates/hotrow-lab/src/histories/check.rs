//! The checker of histories. It is pure: no I/O, no clock.
//!
//! | file | contents |
//! |---|---|
//! | `view.rs` | the writer of each value, and the transactions that count as committed |
//! | `internal.rs` | each transaction on its own |
//! | `lists.rs`, `registers.rs` | the order of versions, and orders between transactions |
//! | `edges.rs`, `graph.rs` | these orders and those of time; cycles |
//! | `promises.rs`, `allowed.rs` | the cycles that a level forbids, and those that it allows |
//! | `anomaly.rs`, `local.rs`, `story.rs` | what is found, and how it is told |

mod allowed;
mod anomaly;
mod edges;
mod graph;
mod internal;
mod lists;
mod local;
mod promises;
mod registers;
mod story;
mod view;

use super::history::{Level, Transaction};
pub use anomaly::{Anomaly, Name};
use local::Local;
use std::collections::BTreeMap;
use view::View;

/// What the checker found.
pub struct Findings {
    /// The anomalies that break a promise of the transactions' levels.
    pub forbidden: Vec<Anomaly>,
    /// The number of cycles that the levels allow, by name and weakest level.
    pub allowed: BTreeMap<(Name, Level), usize>,
    /// The transactions without an answer to their commit that other transactions have seen.
    pub seen_without_answer: usize,
    /// The number of orders between two transactions.
    pub orders: usize,
}

/// Checks a history against the promises of PostgreSQL.
pub fn check(history: &[Transaction]) -> Findings {
    let view = View::new(history);
    let mut local = Local::new(&view);
    internal::internal(&view, &mut local);
    let mut edges = lists::lists(&view, &mut local);
    edges.extend(registers::registers(&view, &mut local));
    let allowed = allowed::allowed(&view, &edges);
    edges.extend(edges::times(&view));
    let mut forbidden = local.found;
    if !history.is_empty() {
        forbidden.extend(promises::broken(&view, &edges));
    }
    let unanswered = view.counted().filter(|(_, transaction)| transaction.certain_end() == u64::MAX);
    Findings { forbidden, allowed, seen_without_answer: unanswered.count(), orders: edges.len() }
}
