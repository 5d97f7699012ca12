//! Registers: the order of a register's values is known in part, from times and from transactions that read it before they write
//! it.

use super::anomaly::Name;
use super::edges::{Edge, Kind};
use super::local::Local;
use super::view::View;
use crate::histories::history::{Key, Level, Op, Outcome, Transaction, Value};
use std::collections::BTreeMap;

/// One value of a register. The first one is that before all writes.
struct Version {
    value: Option<Value>,
    /// The transaction and the statement that wrote it.
    written: Option<(u32, u32)>,
    /// The transactions and the statements that read it.
    reads: Vec<(u32, u32)>,
    /// The version was certainly committed at this time.
    known_at: u64,
    /// The version was certainly not replaced for good before this time.
    alive_at: u64,
    /// The value that its transaction read before, and whether no other version can lie between the two.
    after: Option<(Option<Value>, bool)>,
}

impl Version {
    fn unwritten() -> Self {
        let (value, written, after) = (None, None, None);
        Self { value, written, reads: Vec::new(), known_at: 0, alive_at: 0, after }
    }
}

/// Reports anomalies of single registers, and returns the orders that the registers show.
pub fn registers(view: &View, local: &mut Local) -> Vec<Edge> {
    let mut registers = written(view);
    for (at, transaction) in view.counted() {
        for (statement, op) in transaction.ops() {
            if let Op::Get(key, value) = op {
                let versions = registers.entry(*key).or_insert_with(|| vec![Version::unwritten()]);
                if check_read(view, *key, *value, at, local)
                    && let Some(version) = versions.iter_mut().find(|version| version.value == *value)
                {
                    version.reads.push((at, statement));
                    version.known_at = version.known_at.min(transaction.certain_end());
                    version.alive_at = version.alive_at.max(transaction.begun);
                }
            }
        }
    }
    let mut edges = Vec::new();
    for (key, versions) in &registers {
        check_cycles(*key, versions, local);
        order(*key, versions, &mut edges);
    }
    edges
}

/// The versions that the transactions have left, for each register.
fn written(view: &View) -> BTreeMap<Key, Vec<Version>> {
    let mut registers: BTreeMap<Key, Vec<Version>> = BTreeMap::new();
    for (at, transaction) in view.counted() {
        for (statement, op) in transaction.ops() {
            let Op::Write(key, value) = op else { continue };
            let versions = registers.entry(*key).or_insert_with(|| vec![Version::unwritten()]);
            if view.write(*value).is_some_and(|write| write.is_last) {
                versions.push(Version {
                    value: Some(*value),
                    written: Some((at, statement)),
                    known_at: transaction.certain_end(),
                    alive_at: transaction.begun,
                    after: read_before(transaction, *key),
                    ..Version::unwritten()
                });
            }
        }
    }
    registers
}

/// The value of the register that a transaction read before its first write of it. With a snapshot, a transaction fails if
/// another one has changed the row in between.
fn read_before(transaction: &Transaction, key: Key) -> Option<(Option<Value>, bool)> {
    let of_key = |op: &&Op| matches!(op, Op::Get(of, _) | Op::Write(of, _) if *of == key);
    let before = transaction.ops().map(|(_, op)| op).filter(of_key);
    let reads = before.map_while(|op| if let Op::Get(_, value) = op { Some(*value) } else { None });
    reads.last().map(|value| (value, transaction.level >= Level::RepeatableRead))
}

/// Checks one read on its own. Returns whether the value is a version of the register for others than its writer.
fn check_read(view: &View, key: Key, value: Option<Value>, at: u32, local: &mut Local) -> bool {
    let Some(value) = value else { return true };
    let Some(write) = view.write(value).filter(|write| write.key == key) else {
        let story = format!("no transaction wrote {value}, which is in register {key}");
        local.add(Name::UnwrittenValue, value, &[at], story);
        return false;
    };
    if write.transaction == at {
        return false;
    }
    if view.transaction(write.transaction).outcome == Outcome::Failed {
        let story = format!("{value} in register {key} was written by a transaction that failed");
        local.add(Name::G1a, value, &[write.transaction, at], story);
        return false;
    }
    if !write.is_last {
        let story = format!("register {key} was read between two writes of a transaction");
        local.add(Name::G1b, value, &[write.transaction, at], story);
    }
    write.is_last
}

/// Whether the first version was certainly replaced before the second one was.
fn is_before(first: &Version, second: &Version) -> bool {
    first.value != second.value
        && second.value.is_some()
        && (first.value.is_none()
            || first.known_at < second.alive_at
            || second.after.is_some_and(|(read, _)| read == first.value))
}

fn check_cycles(key: Key, versions: &[Version], local: &mut Local) {
    for (at, one) in versions.iter().enumerate() {
        for other in &versions[at + 1..] {
            if let (Some((writer, _)), Some((second, _))) = (one.written, other.written)
                && is_before(one, other)
                && is_before(other, one)
            {
                let story = format!(
                    "register {key}: {:?} was read after {:?} had replaced it, and the other way round",
                    one.value, other.value
                );
                let readers = one.reads.iter().chain(&other.reads).map(|(reader, _)| *reader).take(4);
                let of: Vec<u32> = [writer, second].into_iter().chain(readers).collect();
                local.add(Name::CyclicVersions, key, &of, story);
            }
        }
    }
}

/// Finds the orders between the transactions that wrote a register and those that read it. Orders that follow from two others
/// are left out.
fn order(key: Key, versions: &[Version], edges: &mut Vec<Edge>) {
    for version in versions {
        if let (Some((writer, _)), Some(value)) = (version.written, version.value) {
            for (reader, statement) in &version.reads {
                edges.push(edge(Kind::Wr, (writer, 0), (*reader, *statement), key, value, true));
            }
        }
        let mut next: Vec<&Version> = Vec::new();
        for later in versions.iter().filter(|later| is_before(version, later)) {
            if next.iter().any(|other| is_before(other, later)) {
                continue;
            }
            next.retain(|other| !is_before(later, other));
            next.push(later);
        }
        for later in next {
            let (Some(writer), Some(value)) = (later.written, later.value) else { continue };
            let is_direct = later.after == Some((version.value, true));
            if let (Some(from), Some(from_value)) = (version.written, version.value) {
                edges.push(edge(Kind::Ww, from, writer, key, from_value, is_direct));
            }
            for reader in version.reads.iter().filter(|(reader, _)| *reader != writer.0) {
                edges.push(edge(Kind::Rw, *reader, writer, key, value, is_direct));
            }
        }
    }
}

fn edge(kind: Kind, from: (u32, u32), to: (u32, u32), key: Key, value: Value, is_direct: bool) -> Edge {
    let ((from, from_statement), (to, to_statement)) = (from, to);
    Edge { from, to, kind, from_statement, to_statement, key, value, is_direct }
}
