//! The promises of PostgreSQL's levels as orders between moments.
//!
//! Each statement at READ COMMITTED sees the database at one moment. A transaction at a higher level, or of one statement, sees
//! it at one moment, after its client has begun it. Each transaction becomes visible at one moment, before its client is told.
//! A history keeps these promises if its moments can be put in an order:
//!
//! | order | moments |
//! |---|---|
//! | ww, wr | the first transaction is visible before the moment of the second one's statement |
//! | rw | the moment of the first one's statement is before the second one is visible |
//! | real time, session | the first one is visible before the first moment of the second one |
//!
//! At SERIALIZABLE, the transactions of that level have no cycle of ww, wr and rw either. Their order in real time is no part of
//! this promise.

use super::anomaly::{Anomaly, Name};
use super::edges::{Edge, Kind};
use super::graph::Graph;
use super::story;
use super::view::View;
use crate::histories::history::Level;
use std::collections::{BTreeSet, HashSet};

/// An order of two moments of one transaction.
const WITHIN: u32 = u32::MAX;
/// More cycles than these are not printed. One fault can cause thousands.
const CYCLES_MAX: usize = 10;

/// Finds cycles that no level allows, then those that break a snapshot, then those that break SERIALIZABLE.
pub fn broken(view: &View, edges: &[Edge]) -> Vec<Anomaly> {
    let mut found: Vec<Anomaly> = Vec::new();
    let mut known: HashSet<BTreeSet<u32>> = HashSet::new();
    for level in Level::ALL {
        let graph = match level {
            Level::Serializable => serial(view, edges),
            _ => moments(view, edges, level),
        };
        for component in graph.components().iter().take(CYCLES_MAX) {
            let labels = graph.shortest_cycle(component);
            let cycle: Vec<Edge> = labels
                .into_iter()
                .filter(|label| *label != WITHIN)
                .map(|label| edges[label as usize])
                .collect();
            if known.insert(cycle.iter().map(|edge| edge.from).collect()) {
                found.push(anomaly(view, &cycle, level));
            }
        }
    }
    found
}

/// The moments of the transactions. `level` is the strongest level that is taken into account.
fn moments(view: &View, edges: &[Edge], level: Level) -> Graph {
    // The first moment of each transaction. The last one is when it becomes visible.
    let mut first: Vec<u32> = Vec::with_capacity(view.history.len() + 1);
    first.push(0);
    let mut list = Vec::new();
    for transaction in view.history {
        let has_snapshot = transaction.level.min(level) >= Level::RepeatableRead;
        let reads = if has_snapshot { 1 } else { transaction.statements.len().max(1) as u32 };
        let begin = *first.last().expect("it begins with one");
        list.extend((begin..begin + reads).map(|moment| (moment, moment + 1, WITHIN)));
        first.push(begin + reads + 1);
    }
    let visible = |at: u32| first[at as usize + 1] - 1;
    let moment = |at: u32, statement: u32| (first[at as usize] + statement).min(visible(at) - 1);
    for (edge, label) in edges.iter().zip(0..) {
        let (from, to) = match edge.kind {
            Kind::Ww | Kind::Wr => (visible(edge.from), moment(edge.to, edge.to_statement)),
            Kind::Rw => (moment(edge.from, edge.from_statement), visible(edge.to)),
            Kind::RealTime | Kind::Session => (visible(edge.from), moment(edge.to, 0)),
        };
        list.push((from, to, label));
    }
    Graph::new(visible(view.history.len() as u32 - 1) as usize + 1, list)
}

/// The transactions at SERIALIZABLE.
fn serial(view: &View, edges: &[Edge]) -> Graph {
    let is_serializable = |at: u32| view.transaction(at).level == Level::Serializable;
    let list = edges
        .iter()
        .zip(0..)
        .filter(|(edge, _)| edge.is_direct && is_serializable(edge.from) && is_serializable(edge.to));
    Graph::new(view.history.len(), list.map(|(edge, label)| (edge.from, edge.to, label)).collect())
}

/// The name of a cycle.
pub fn name(cycle: &[Edge]) -> Name {
    let is_read = |place: usize| cycle[place % cycle.len()].kind == Kind::Rw;
    let reads = (0..cycle.len()).filter(|place| is_read(*place)).count();
    match (reads, cycle) {
        (0, _) if cycle.iter().any(|edge| edge.kind == Kind::Wr) => Name::G1c,
        (0, _) => Name::G0,
        (1, [one, other]) if one.key == other.key && cycle.iter().any(|edge| edge.kind == Kind::Ww) => {
            Name::LostUpdate
        }
        (1, _) => Name::GSingle,
        _ if (0..cycle.len()).any(|place| is_read(place) && is_read(place + 1)) => Name::G2Item,
        _ => Name::GNonadjacent,
    }
}

fn anomaly(view: &View, cycle: &[Edge], breaks: Level) -> Anomaly {
    Anomaly {
        name: name(cycle),
        in_real_time: cycle.iter().any(|edge| matches!(edge.kind, Kind::RealTime | Kind::Session)),
        breaks,
        story: story::of_cycle(view, cycle),
    }
}
