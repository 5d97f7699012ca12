//! Random transactions: how a client sends them, at which level, and their statements.

use super::statement::{Statement, VALUES_PER_APPEND};
use crate::histories::history::{Key, Level};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// How a client sends a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Way {
    /// One statement that commits on its own.
    Single,
    /// Several of these, sent together.
    PipelinedSingles,
    /// `BEGIN; ...; COMMIT` as one text.
    Block,
    /// A text of several statements without BEGIN.
    Text,
    /// BEGIN, the statements and COMMIT, each sent after the answer to the one before it.
    Interactive,
    /// The same, all sent together.
    Pipelined,
    /// Extended messages with BEGIN and COMMIT, and one Sync.
    Unit,
    /// The same without BEGIN and COMMIT.
    ImplicitUnit,
}

impl Way {
    /// Each way as often as it is used. Transactions that wait for their client keep others from being packed.
    const ALL: [Self; 14] = [
        Self::Single,
        Self::Single,
        Self::PipelinedSingles,
        Self::Block,
        Self::Text,
        Self::Unit,
        Self::ImplicitUnit,
        Self::PipelinedSingles,
        Self::Block,
        Self::Text,
        Self::Interactive,
        Self::Pipelined,
        Self::Unit,
        Self::ImplicitUnit,
    ];

    /// Whether it has BEGIN and COMMIT.
    pub fn is_explicit(self) -> bool {
        matches!(self, Self::Block | Self::Interactive | Self::Pipelined | Self::Unit)
    }
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Single => "single statement",
            Self::PipelinedSingles => "pipelined single statements",
            Self::Block => "one text with BEGIN and COMMIT",
            Self::Text => "one text without BEGIN",
            Self::Interactive => "one message after another",
            Self::Pipelined => "pipelined messages",
            Self::Unit => "one unit with BEGIN and COMMIT",
            Self::ImplicitUnit => "one unit without BEGIN",
        })
    }
}

/// The rows that are used now. After some writes of a row, the next row takes its place, so that lists stay short.
pub struct Rows {
    rows: u64,
    appends: AtomicU64,
    writes: AtomicU64,
    next: AtomicU64,
}

/// Lists, and registers, that are used at the same time.
pub const HOT: u64 = 5;
const APPENDS_PER_LIST: u64 = 100;
const WRITES_PER_REGISTER: u64 = 200;
const STATEMENTS_MAX: usize = 6;

impl Rows {
    pub fn new(rows: u64) -> Self {
        Self { rows, appends: AtomicU64::new(0), writes: AtomicU64::new(0), next: AtomicU64::new(1) }
    }

    fn value(&self) -> u64 {
        self.next.fetch_add(1, Relaxed) * VALUES_PER_APPEND
    }

    fn hot(&self, random: &mut fastrand::Rng, written: u64, per_row: u64) -> Key {
        (1 + written / per_row).min(self.rows - HOT) + random.u64(0..HOT)
    }

    fn list(&self, random: &mut fastrand::Rng) -> Key {
        self.hot(random, self.appends.load(Relaxed), APPENDS_PER_LIST)
    }

    fn register(&self, random: &mut fastrand::Rng) -> Key {
        self.hot(random, self.writes.load(Relaxed), WRITES_PER_REGISTER)
    }

    fn two_lists(&self, random: &mut fastrand::Rng) -> [Key; 2] {
        let one = self.list(random);
        let other = self.list(random);
        if one == other { [one, if one == 1 { 2 } else { one - 1 }] } else { [one, other] }
    }

    fn statement(&self, random: &mut fastrand::Rng) -> Statement {
        let choice = random.u8(0..20);
        match choice {
            0..=7 => _ = self.appends.fetch_add(1, Relaxed),
            8..=9 => _ = self.writes.fetch_add(1, Relaxed),
            _ => {}
        }
        match choice {
            0..=2 => Statement::Append(self.list(random), self.value()),
            3..=4 => Statement::AppendAndRead(self.list(random), self.value()),
            5 => Statement::Upsert(self.list(random), self.value()),
            6..=7 => Statement::AppendToTwo(self.two_lists(random), self.value()),
            8..=9 => Statement::Write(self.register(random), self.value()),
            10 => Statement::LockAndRead(self.list(random)),
            11..=13 => Statement::ReadTwo(self.two_lists(random)),
            14..=16 => Statement::Get(self.register(random)),
            _ => Statement::Read(self.list(random)),
        }
    }
}

/// The next thing that a client does.
pub struct Plan {
    pub way: Way,
    pub level: Level,
    pub statements: Vec<Statement>,
    /// Whether messages with statements have values as parameters.
    pub is_extended: bool,
    /// The client closes its connection after it has sent this many statements. With all of them, it has sent COMMIT, too.
    pub cut_after: Option<usize>,
}

impl Plan {
    /// `defers` is whether the session holds back writes. Only transactions that wait for their client do it, so half of its
    /// transactions do.
    pub fn random(rows: &Rows, random: &mut fastrand::Rng, cuts: bool, defers: bool) -> Self {
        let waits = defers && random.bool();
        let way = if waits { Way::Interactive } else { random.choice(Way::ALL).expect("there are ways") };
        let count = if way == Way::Single { 1 } else { random.usize(1..=STATEMENTS_MAX) };
        let level = match random.u8(0..5) {
            _ if waits => Level::ReadCommitted,
            0 if way.is_explicit() => Level::RepeatableRead,
            1 if way.is_explicit() => Level::Serializable,
            _ => Level::ReadCommitted,
        };
        let mut statements: Vec<Statement> = (0..count).map(|_| rows.statement(random)).collect();
        if random.u8(0..32) > 0 {
            in_order_of_locks(&mut statements);
        }
        let is_cut = cuts && random.u8(0..100) == 0;
        let cut_after = is_cut.then(|| random.usize(0..=count));
        Self { way, level, statements, is_extended: random.bool(), cut_after }
    }

    /// BEGIN with the level. READ COMMITTED is the default.
    pub fn begin(&self) -> &'static str {
        match self.level {
            Level::ReadCommitted => "begin",
            Level::RepeatableRead => "begin isolation level repeatable read",
            Level::Serializable => "begin isolation level serializable",
        }
    }
}

/// Sorts the statements that lock rows, so that few transactions deadlock. Reads keep their places.
fn in_order_of_locks(statements: &mut [Statement]) {
    let places: Vec<usize> = (0..statements.len()).filter(|at| statements[*at].locks().is_some()).collect();
    let mut sorted: Vec<Statement> = places.iter().map(|at| statements[*at].clone()).collect();
    sorted.sort_by_key(Statement::locks);
    for (at, statement) in places.into_iter().zip(sorted) {
        statements[at] = statement;
    }
}
