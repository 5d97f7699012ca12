//! Transactions and cycles as text for people.

use super::edges::{Edge, Kind};
use super::view::View;
use std::fmt::Write;

/// One transaction on one line.
pub fn of_transaction(view: &View, at: u32) -> String {
    let transaction = view.transaction(at);
    let ops: Vec<String> = transaction.ops().map(|(_, op)| op.to_string()).collect();
    format!(
        "T{at} (session {}, {}, {}, events {} to {}, {:?}): {}",
        transaction.session,
        transaction.level,
        transaction.way,
        transaction.begun,
        transaction.ended,
        transaction.outcome,
        ops.join("; ")
    )
}

/// The transactions of a cycle, and the reason for each order between two of them.
pub fn of_cycle(view: &View, cycle: &[Edge]) -> String {
    let mut text =
        String::from("each transaction comes before the next one, and the last one before the first one:");
    for edge in cycle {
        write!(
            text,
            "\n  {}\n    before T{} ({}): {}",
            of_transaction(view, edge.from),
            edge.to,
            edge.kind,
            reason(edge)
        )
        .expect("a String accepts all text");
    }
    text
}

fn reason(edge: &Edge) -> String {
    let Edge { from, to, key, value, .. } = edge;
    match edge.kind {
        Kind::Ww => format!("T{from} wrote {value} of {key}, and T{to} the version after it"),
        Kind::Wr => format!("T{from} wrote {value} of {key}, which T{to} read"),
        Kind::Rw => format!("T{from} read {key} without {value}, which T{to} wrote"),
        Kind::RealTime => format!("T{from} had ended when T{to} began"),
        Kind::Session => format!("one session sent T{to} after T{from}"),
    }
}
