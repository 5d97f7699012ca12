//! Lists: the order of a list's values is that of its longest read. All other reads must be the beginning of it.

use super::anomaly::Name;
use super::edges::{Edge, Kind};
use super::local::Local;
use super::view::{View, Write};
use crate::histories::history::{Key, Op, Outcome, Value};
use std::collections::{BTreeMap, HashSet};

/// A read of a list.
struct Read<'h> {
    transaction: u32,
    statement: u32,
    values: &'h [Value],
}

/// What is known about one list.
#[derive(Default)]
struct List<'h> {
    reads: Vec<Read<'h>>,
    /// The appends of transactions that count.
    appends: Vec<(Value, u32)>,
}

/// Reports anomalies of single lists, and returns the orders that the lists show.
pub fn lists(view: &View, local: &mut Local) -> Vec<Edge> {
    let mut lists: BTreeMap<Key, List> = BTreeMap::new();
    for (transaction, all) in view.counted() {
        for (statement, op) in all.ops() {
            match op {
                Op::Read(key, values) => {
                    lists.entry(*key).or_default().reads.push(Read { transaction, statement, values });
                }
                Op::Append(key, value) => {
                    lists.entry(*key).or_default().appends.push((*value, transaction));
                }
                Op::Write(..) | Op::Get(..) => {}
            }
        }
    }
    let mut edges = Vec::new();
    for (key, list) in &lists {
        let longest = list.reads.iter().max_by_key(|read| read.values.len());
        check_values(view, *key, list, local);
        let values = longest.map_or(&[][..], |read| read.values);
        check_order(view, *key, values, local);
        order(view, *key, list, values, local, &mut edges);
    }
    edges
}

/// Checks each value of each read on its own.
fn check_values(view: &View, key: Key, list: &List, local: &mut Local) {
    for read in &list.reads {
        let mut seen = HashSet::new();
        for value in read.values {
            if !seen.insert(*value) {
                let story = format!("list {key} has {value} twice");
                local.add(Name::DuplicateAppend, *value, &[read.transaction], story);
            }
            match view.write(*value).filter(|write| write.key == key) {
                None => {
                    let story = format!("no transaction appended {value}, which is in list {key}");
                    local.add(Name::UnwrittenValue, *value, &[read.transaction], story);
                }
                Some(write) if view.transaction(write.transaction).outcome == Outcome::Failed => {
                    let story = format!("{value} in list {key} was appended by a transaction that failed");
                    local.add(Name::G1a, *value, &[write.transaction, read.transaction], story);
                }
                Some(_) => {}
            }
        }
        let last = read.values.last().and_then(|value| view.write(*value));
        if let Some(write) = last.filter(|write| !write.is_last && write.transaction != read.transaction) {
            let story = format!("list {key} was read between two appends of a transaction");
            local.add(
                Name::G1b,
                *read.values.last().expect("it has one"),
                &[write.transaction, read.transaction],
                story,
            );
        }
    }
}

/// Checks that no committed value follows one of a transaction that was rolled back.
fn check_order(view: &View, key: Key, values: &[Value], local: &mut Local) {
    let mut failed: Option<(Value, Write)> = None;
    for value in values {
        let Some(write) = view.write(*value) else { continue };
        if view.transaction(write.transaction).outcome == Outcome::Failed {
            failed = Some((*value, write));
        } else if let Some((before, by)) = failed {
            let story = format!("{value} in list {key} follows {before} of a transaction that failed");
            local.add(Name::DirtyUpdate, before, &[by.transaction, write.transaction], story);
        }
    }
}

/// Finds the orders between the transactions that appended to a list and those that read it.
fn order(view: &View, key: Key, list: &List, values: &[Value], local: &mut Local, edges: &mut Vec<Edge>) {
    let versions: Vec<(Value, Write)> =
        values.iter().filter_map(|value| Some((*value, view.counted_write(*value)?))).collect();
    for two in versions.windows(2) {
        let ((value, from), (_, to)) = (two[0], two[1]);
        if from.transaction != to.transaction {
            edges.push(edge(Kind::Ww, from.transaction, 0, to.transaction, to.statement, (key, value)));
        }
    }
    let known: HashSet<Value> = values.iter().copied().collect();
    let unread: Vec<(Value, u32)> =
        list.appends.iter().copied().filter(|(value, _)| !known.contains(value)).collect();
    check_lost(view, key, list, &unread, local);
    for read in &list.reads {
        if !values.starts_with(read.values) {
            let ends = |values: &[Value]| values[values.len().saturating_sub(6)..].to_vec();
            let story = format!(
                "list {key} was read as {} values that end with {:?}, which is not the beginning of {} values that end with {:?}",
                read.values.len(),
                ends(read.values),
                values.len(),
                ends(values)
            );
            let last = read.values.last().and_then(|value| view.write(*value));
            let of: Vec<u32> = last.iter().map(|write| write.transaction).chain([read.transaction]).collect();
            local.add(Name::IncompatibleOrder, key, &of, story);
            continue;
        }
        order_of_read(view, key, read, values, &unread, edges);
    }
}

/// The orders between a reader, the writer of the version that it read, and the writer of the next version.
fn order_of_read(
    view: &View,
    key: Key,
    read: &Read,
    values: &[Value],
    unread: &[(Value, u32)],
    edges: &mut Vec<Edge>,
) {
    let (before, after) = values.split_at(read.values.len());
    let mut writes = before.iter().rev().filter_map(|value| Some((*value, view.counted_write(*value)?)));
    if let Some((value, write)) = writes.next() {
        if write.transaction == read.transaction {
            return; // the order of the appends says the same
        }
        edges.push(edge(Kind::Wr, write.transaction, 0, read.transaction, read.statement, (key, value)));
    }
    let next = after.iter().find_map(|value| Some((*value, view.counted_write(*value)?.transaction)));
    let is_direct = next.is_some() || unread.len() == 1;
    for (value, writer) in next.as_slice().iter().chain(unread.iter().filter(|_| next.is_none())) {
        if *writer != read.transaction {
            let edge = edge(Kind::Rw, read.transaction, read.statement, *writer, 0, (key, *value));
            edges.push(Edge { is_direct, ..edge });
        }
    }
}

/// Checks that each committed append is in the reads that began after it.
fn check_lost(view: &View, key: Key, list: &List, unread: &[(Value, u32)], local: &mut Local) {
    for (value, writer) in unread {
        let end = view.transaction(*writer).certain_end();
        let later = list.reads.iter().find(|read| view.transaction(read.transaction).begun > end);
        if let Some(read) = later {
            let story = format!("{value} was appended to list {key}, and is in no read of it");
            local.add(Name::LostAppend, *value, &[*writer, read.transaction], story);
        }
    }
}

fn edge(
    kind: Kind,
    from: u32,
    from_statement: u32,
    to: u32,
    to_statement: u32,
    (key, value): (Key, Value),
) -> Edge {
    Edge { from, to, kind, from_statement, to_statement, key, value, is_direct: true }
}
