//! The one shape all scenarios have: what is shown, on which rows, by which techniques; never how it is run or printed.

use serde::Serialize;

/// One question the benchmark answers, with the techniques that are set side by side to answer it.
#[derive(Debug)]
pub struct Scenario {
    /// What a person types.
    pub name: &'static str,
    /// What it shows, in one sentence.
    pub shows: &'static str,
    /// SQL that creates the schema `hotrow_bench` with all the scenario needs.
    pub set_up: &'static str,
    /// SQL that adds the rows `hotrow_bench.first` to `hotrow_bench.last` (settings), asked for piece by piece.
    pub fill: &'static str,
    /// Whether it needs the schema pack, which is then installed first.
    pub pack: bool,
    /// Whether `hotrow bench all` leaves it out, because it takes long or needs a server or programs of its own.
    pub takes_long: bool,
    /// SQL that puts the rows back before each run, whose number is in the setting `hotrow_bench.run`; empty where runs may
    /// follow each other.
    pub before_run: &'static str,
    /// The tables to vacuum before each run.
    pub tables: &'static [&'static str],
    /// A query with the columns `done` and `broken`, compared with the acknowledged answers after each run.
    pub reading: &'static str,
    /// How many rows there are.
    pub rows: Rows,
    /// How many clients take part when nobody asks for other numbers.
    pub clients: Clients,
    /// What is compared.
    pub figure: Figure,
    /// The techniques, in the order in which they are reported.
    pub techniques: &'static [Technique],
    /// What a reader must know to judge the figures fairly; one paragraph each.
    pub remarks: &'static [&'static str],
}

impl Scenario {
    /// The technique of this name.
    pub fn technique(&self, name: &str) -> Option<&'static Technique> {
        self.techniques.iter().find(|technique| technique.name == name)
    }
}

/// How many rows a scenario's table has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rows {
    /// One row that everybody wants.
    One,
    /// This many, or fewer in a hurry.
    UpTo(u32),
    /// They are used up.
    UsedUp {
        /// This many for each second of a run and of its warm-up, which is more than any technique does.
        per_second: u32,
        /// And these besides.
        besides: u32,
        /// All of them in a hurry, when pgbench asks for a few hundred times a second, for some seconds.
        in_a_hurry: u32,
    },
}

/// How many clients a scenario is run with.
#[derive(Debug, Clone, Copy)]
pub enum Clients {
    /// These, unless the person asks for others.
    Usually(&'static [u32]),
    /// These, because the scenario is about this number.
    Always(&'static [u32]),
}

/// What a scenario compares.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Figure {
    /// Work done in a second.
    Throughput,
    /// Time from when a request was due to its answer.
    Latency,
}

/// One way to do the work.
#[derive(Debug)]
pub struct Technique {
    /// Its name, unique in its scenario.
    pub name: &'static str,
    /// One line for people.
    pub about: &'static str,
    /// An extension that it needs, which is created on the benchmark's own server only.
    pub extension: Option<&'static str>,
    /// SQL that this technique alone needs before each of its runs.
    pub prepare: &'static str,
    /// What makes the rows old before it is measured, if anything.
    pub ageing: Option<Ageing>,
    /// Who else is at work meanwhile.
    pub beside: Option<Beside>,
    /// Who makes its load.
    pub load_by: LoadBy,
    /// The pgbench scripts.
    pub script: Script,
    /// Where the clients connect to.
    pub through: Through,
    /// How they send their statements.
    pub protocol: Protocol,
    /// What an acknowledged answer is worth.
    pub worth: Worth,
    /// When they send the next one.
    pub arrivals: Arrivals,
    /// Whether the change stream of the payment service is read meanwhile.
    pub change_stream: bool,
    /// Whether each flush of the server takes longer meanwhile.
    pub slow_flush: bool,
    /// The technique of the same scenario that this one is set against (itself: it is the yardstick).
    pub against: &'static str,
}

impl Technique {
    /// Whether the cost of its runs for the server is measured too.
    pub fn is_watched(&self) -> bool {
        matches!(self.load_by, LoadBy::Payments { .. })
    }

    /// The same requests by clients of Hotrow, as the technique `hotrow`.
    pub const fn through_hotrow(self, about: &'static str) -> Self {
        Self { name: "hotrow", about, through: Through::Hotrow, ..self }
    }

    /// The same requests by clients of PgBouncer, as the technique `pgbouncer`.
    pub const fn through_pgbouncer(self, about: &'static str) -> Self {
        Self { name: "pgbouncer", about, through: Through::PgBouncer, ..self }
    }
}

/// The pgbench scripts of a technique.
#[derive(Debug, Clone, Copy)]
pub struct Script {
    /// The script that is measured.
    pub measured: &'static str,
    /// The script of the warm-up. If the rows cannot show a wrong answer, it checks every answer.
    pub warm_up: &'static str,
}

impl Script {
    /// One script for both.
    pub const fn same(text: &'static str) -> Self {
        Self { measured: text, warm_up: text }
    }
}

/// A warm-up of another kind: somebody holds a snapshot, so that nothing dead can be cleared away, until the run is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ageing {
    /// For how long the snapshot is held before the run.
    pub seconds: u32,
    /// Requests a second in this time, as far as the technique keeps up.
    pub rate: u32,
    /// What the requests are, by pgbench.
    pub script: &'static str,
}

/// A second load, in a closed loop, with clients of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Beside {
    /// How many.
    pub clients: u32,
    /// The pgbench script; each transaction does one piece of work.
    pub script: &'static str,
}

/// Who makes a technique's load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoadBy {
    /// pgbench, with the technique's script.
    Pgbench,
    /// Callers inside two applications that batch by themselves, in this way.
    Applications(Batching),
    /// redis-benchmark, with the Lua script.
    RedisBenchmark,
    /// This program: workers that take a batch of orders, see that they are in order, and complete it.
    Workers(Steps),
    /// A program that works with a queue others wrote, or with Hotrow's in the same language; it enqueues beforehand what it works
    /// off.
    Peer(Peer),
    /// This program: a fresh connection for each call, through a fresh gateway if through one.
    FreshConnections,
    /// This program: clients that log in and leave, again and again.
    Connections,
    /// This program: commands on one counter as JSON over HTTP, half of them to each of two gateways.
    Http,
    /// This program: customers who pay, at the payment service of `examples/payments`.
    Payments {
        /// Whether one of its payment gateways is killed in the middle.
        gateway_dies: bool,
    },
}

/// One of the programs in `peers/`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Peer {
    /// The one for Node.js.
    Node,
    /// The one in Go.
    Go,
}

/// What a worker does, again and again; in both texts `:run` stands for the run's number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Steps {
    /// A query for a batch of orders, in the order of their column `id`; each has a `receipt`.
    pub take: &'static str,
    /// The statement that completes those with the receipts `$1`.
    pub complete: &'static str,
}

/// How an application that batches by itself keeps a counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Batching {
    /// Reads the latest ledger entry under a lock and inserts the batch's entries.
    Ledger,
    /// Appends the batch's commands to a log under a lock, and folds the log in memory.
    CommandLog,
}

/// Where the clients connect to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Through {
    /// To the server.
    Direct,
    /// To Hotrow.
    Hotrow,
    /// To Hotrow, with TLS.
    HotrowTls,
    /// To Hotrow, over HTTP.
    HotrowHttp,
    /// To PgBouncer, pooling by transaction.
    PgBouncer,
    /// To an application's own queue, in its memory: only the application connects to the server.
    Application,
    /// To Redis.
    Redis,
}

/// How pgbench sends its statements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Protocol {
    /// As text, with the values in it.
    Simple,
    /// Parsed at each use.
    Extended,
    /// Parsed once per connection.
    Prepared,
}

impl Protocol {
    /// pgbench's word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Simple => "simple",
            Self::Extended => "extended",
            Self::Prepared => "prepared",
        }
    }
}

/// What an acknowledged answer is worth, which decides what the rows must say afterwards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Worth {
    /// One unit sold, or one command carried out: the rows must show exactly as many as were acknowledged.
    Sold,
    /// So many pieces of work: the rows must show exactly as many for each answer.
    Each(u32),
    /// One unit sold, or turned away because another client held the lock: the rows tell which.
    SoldOrTurnedAway,
    /// An answer that changes no row.
    Read,
}

/// When a client sends its next request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arrivals {
    /// As soon as it has the last answer: a closed loop, for throughput.
    Closed,
    /// At the rate the plan says, or else at this one, whatever the answers do: an open loop, for latency.
    Planned {
        /// Requests a second.
        usually: u32,
    },
    /// At so many per cent of what the technique `against` reached in a closed loop just before.
    OfClosed {
        /// Less than 100 to see what waits for nothing, more to see who keeps up.
        percent: u32,
    },
}
