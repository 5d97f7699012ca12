//! A simulated database with the promises of PostgreSQL, its clients, and planted faults.

use crate::histories::history::{Key, Level, Op, Outcome, Transaction, Value};
use std::collections::{BTreeMap, BTreeSet};

/// What the database does wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    None,
    /// An append replaces the list by the one of its snapshot and its own value.
    LostUpdate,
    /// A statement sees an earlier state.
    StaleRead,
    /// A commit puts its values before the last one that was committed.
    ReorderedBatch,
    /// A read sees values that are not committed.
    DirtyRead,
    /// A rollback keeps the values.
    KeptRollback,
    /// A commit keeps one value only.
    TornCommit,
    /// A client gets its answer before the commit.
    EarlyAnswer,
}

const LISTS: Key = 3;
const CLIENTS: usize = 5;

/// One version of the lists and registers. The versions are in the order of their commits.
#[derive(Clone, Default)]
struct State {
    lists: BTreeMap<Key, Vec<Value>>,
    registers: BTreeMap<Key, Value>,
}

/// A transaction that runs.
struct Running {
    transaction: Transaction,
    plan: Vec<Op>,
    snapshot: Option<usize>,
    writes: Vec<Op>,
    /// How many more steps its client waits for the answer, and whether it is lost.
    committed: bool,
    failed: bool,
}

pub struct Database {
    random: fastrand::Rng,
    fault: Fault,
    states: Vec<State>,
    locks: BTreeMap<(bool, Key), usize>,
    running: Vec<Option<Running>>,
    /// Commits whose clients have the answer.
    late: Vec<Vec<Op>>,
    time: u64,
    next: Value,
    history: Vec<Transaction>,
}

impl Database {
    /// The history of this many steps, at these levels, with a read of all lists and registers at the end.
    pub fn run(seed: u64, fault: Fault, levels: &[Level], steps: usize) -> Vec<Transaction> {
        let running = (0..CLIENTS).map(|_| None).collect();
        let mut database = Self {
            random: fastrand::Rng::with_seed(seed),
            fault,
            states: vec![State::default()],
            locks: BTreeMap::new(),
            running,
            late: Vec::new(),
            time: 0,
            next: 0,
            history: Vec::new(),
        };
        for _ in 0..steps {
            let client = database.random.usize(0..CLIENTS);
            database.step(client, levels);
        }
        for client in 0..CLIENTS {
            while database.running[client].is_some() {
                database.step(client, levels);
            }
        }
        database.read_all();
        database.history
    }

    fn tick(&mut self) -> u64 {
        self.time += 1;
        self.time
    }

    fn step(&mut self, client: usize, levels: &[Level]) {
        if self.random.u8(0..4) == 0
            && let Some(writes) = self.late.pop()
        {
            self.apply(&writes);
        }
        let Some(mut running) = self.running[client].take() else {
            let begun = self.begin(client, levels);
            self.running[client] = Some(begun);
            return;
        };
        if running.committed || running.failed {
            self.answer(running);
            return;
        }
        // A serializable transaction runs in one step, so that their order is serial.
        let steps = if running.transaction.level == Level::Serializable { usize::MAX } else { 1 };
        for _ in 0..steps {
            if running.failed || running.committed {
                break;
            }
            self.advance(client, &mut running);
        }
        self.running[client] = Some(running);
    }

    fn begin(&mut self, client: usize, levels: &[Level]) -> Running {
        let level = *self.random.choice(levels).expect("there are levels");
        let mut plan = Vec::new();
        for _ in 0..self.random.usize(1..5) {
            self.next += 1;
            let key = self.random.u64(0..LISTS);
            plan.push(match self.random.u8(0..4) {
                0 => Op::Append(key, self.next),
                1 => Op::Read(key, Vec::new()),
                2 => Op::Write(key, self.next),
                _ => Op::Get(key, None),
            });
        }
        plan.reverse();
        let transaction = Transaction {
            session: client as u64,
            level,
            way: "simulated".into(),
            statements: Vec::new(),
            outcome: Outcome::Committed,
            begun: self.tick(),
            ended: 0,
        };
        Running { transaction, plan, snapshot: None, writes: Vec::new(), committed: false, failed: false }
    }

    /// Runs the next statement of a transaction, or its commit.
    fn advance(&mut self, client: usize, running: &mut Running) {
        let now = self.states.len() - 1;
        let Some(op) = running.plan.pop() else {
            let writes = std::mem::take(&mut running.writes);
            running.failed = self.random.u8(0..16) == 0;
            if !running.failed || self.fault == Fault::KeptRollback {
                match self.fault {
                    Fault::EarlyAnswer => self.late.push(writes),
                    _ => self.apply(&writes),
                }
            }
            running.committed = !running.failed;
            self.locks.retain(|_, owner| *owner != client);
            return;
        };
        let snapshot = *running.snapshot.get_or_insert(now);
        let snapshot = if running.transaction.level == Level::ReadCommitted { now } else { snapshot };
        if let Op::Append(key, _) | Op::Write(key, _) = op {
            let row = (matches!(op, Op::Append(..)), key);
            let owner = *self.locks.entry(row).or_insert(client);
            let is_newer = self.differs(row, snapshot, now) && self.fault != Fault::LostUpdate;
            if owner != client || is_newer {
                running.failed = true;
                self.locks.retain(|_, owner| *owner != client);
                return;
            }
            running.writes.push(op.clone());
            if self.fault == Fault::LostUpdate
                && let Op::Append(key, _) = op
            {
                // The list of the snapshot, as if nothing had been committed since.
                let old = self.states[snapshot].lists.get(&key).cloned().unwrap_or_default();
                self.states.last_mut().expect("there is a state").lists.insert(key, old);
            }
        }
        let answered = self.answer_of(op, running, snapshot);
        running.transaction.statements.push(vec![answered]);
    }

    fn differs(&self, (is_list, key): (bool, Key), one: usize, other: usize) -> bool {
        let (one, other) = (&self.states[one], &self.states[other]);
        if is_list {
            one.lists.get(&key) != other.lists.get(&key)
        } else {
            one.registers.get(&key) != other.registers.get(&key)
        }
    }

    fn answer_of(&mut self, op: Op, running: &Running, snapshot: usize) -> Op {
        let is_stale = self.fault == Fault::StaleRead && self.random.u8(0..4) == 0;
        let mut state = self.states[if is_stale { snapshot.saturating_sub(3) } else { snapshot }].clone();
        if self.fault == Fault::DirtyRead {
            let others: Vec<Op> =
                self.running.iter().flatten().flat_map(|other| other.writes.clone()).collect();
            others.iter().for_each(|write| put(&mut state, write));
        }
        running.writes.iter().for_each(|write| put(&mut state, write));
        match op {
            Op::Read(key, _) => Op::Read(key, state.lists.get(&key).cloned().unwrap_or_default()),
            Op::Get(key, _) => Op::Get(key, state.registers.get(&key).copied()),
            write => write,
        }
    }

    fn apply(&mut self, writes: &[Op]) {
        let mut state = self.states.last().expect("there is a state").clone();
        let kept = if self.fault == Fault::TornCommit { writes.len().min(1) } else { writes.len() };
        writes[..kept].iter().for_each(|write| put(&mut state, write));
        if self.fault == Fault::ReorderedBatch && self.random.bool() {
            for list in state.lists.values_mut().filter(|list| list.len() > 1) {
                let end = list.len();
                list.swap(end - 1, end - 2);
            }
        }
        self.states.push(state);
    }

    fn answer(&mut self, running: Running) {
        let mut transaction = running.transaction;
        transaction.ended = self.tick();
        let is_lost = self.random.u8(0..16) == 0;
        transaction.outcome = match (running.failed, is_lost) {
            (_, true) => Outcome::Unknown,
            (true, _) => Outcome::Failed,
            (false, _) => Outcome::Committed,
        };
        self.history.push(transaction);
    }

    fn read_all(&mut self) {
        while let Some(writes) = self.late.pop() {
            self.apply(&writes);
        }
        let state = self.states.last().expect("there is a state");
        let lists = state.lists.iter().map(|(key, list)| Op::Read(*key, list.clone()));
        let registers = state.registers.iter().map(|(key, value)| Op::Get(*key, Some(*value)));
        let known: BTreeSet<Key> = state.lists.keys().copied().collect();
        let empty = (0..LISTS).filter(|key| !known.contains(key)).map(|key| Op::Read(key, Vec::new()));
        let statements = vec![lists.chain(registers).chain(empty).collect()];
        let (begun, ended) = (self.tick(), self.tick());
        let (level, outcome) = (Level::ReadCommitted, Outcome::Committed);
        let way = "simulated".into();
        self.history.push(Transaction { session: 99, level, way, statements, outcome, begun, ended });
    }
}

fn put(state: &mut State, write: &Op) {
    match write {
        Op::Append(key, value) => state.lists.entry(*key).or_default().push(*value),
        Op::Write(key, value) => _ = state.registers.insert(*key, *value),
        Op::Read(..) | Op::Get(..) => {}
    }
}
