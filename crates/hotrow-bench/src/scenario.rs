//! The data of a scenario: its subject, its rows and its techniques. It does not run or print anything.

use serde::Serialize;
use std::any::Any;

/// A question that the benchmark answers, with the techniques to compare.
#[derive(Debug)]
pub struct Scenario {
    /// The name on the command line.
    pub name: &'static str,
    /// The subject, in one sentence.
    pub shows: &'static str,
    /// SQL that creates the schema `hotrow_bench` with the tables of the scenario.
    pub set_up: &'static str,
    /// SQL that adds the rows `hotrow_bench.first` to `hotrow_bench.last` (settings). It is run for one piece at a time.
    pub fill: &'static str,
    /// Whether it needs the hotrow schema, which is then installed first.
    pub pack: bool,
    /// Whether `hotrow bench all` omits it, because it takes long or needs its own server or programs.
    pub takes_long: bool,
    /// SQL that restores the rows before each run. The setting `hotrow_bench.run` has the number of the run. It is empty if
    /// nothing has to be restored.
    pub before_run: &'static str,
    /// The tables to vacuum before each run.
    pub tables: &'static [&'static str],
    /// A query with the columns `done` and `broken`, compared with the acknowledged answers after each run.
    pub reading: &'static str,
    /// The number of rows.
    pub rows: Rows,
    /// The numbers of clients.
    pub clients: Clients,
    /// The figure to compare.
    pub figure: Figure,
    /// The techniques, in the order in which they are reported.
    pub techniques: &'static [Technique],
    /// The prediction with which the gain is compared.
    pub prediction: Prediction,
    /// Facts that a reader needs for a fair comparison, one paragraph each.
    pub remarks: &'static [&'static str],
}

/// A prediction of `hotrow doctor` about the gain of a scenario's last technique.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Prediction {
    None,
    /// The doctor examines the server during each run of the baseline.
    Examined,
    /// The doctor made it on another server, as a range of factors.
    Reported {
        /// The cautious factor.
        low: f64,
        /// The optimistic factor.
        high: f64,
    },
}

impl Scenario {
    pub fn technique(&self, name: &str) -> Option<&'static Technique> {
        self.techniques.iter().find(|technique| technique.name == name)
    }

    /// Whether the doctor examines the server during the runs of a technique.
    pub fn is_examined(&self, technique: &Technique) -> bool {
        self.prediction == Prediction::Examined && technique.against == technique.name
    }
}

/// The number of rows in a scenario's table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rows {
    /// One row that all clients use.
    One,
    /// This number, or fewer in a quick run.
    UpTo(u32),
    /// The runs use up the rows.
    UsedUp {
        /// Rows for each second of a run and of its warm-up, more than any technique uses.
        per_second: u32,
        /// Additional rows.
        besides: u32,
        /// The number of rows in a quick run, in which pgbench sends a few hundred requests.
        if_quick: u32,
    },
}

/// The numbers of clients of a scenario.
#[derive(Debug, Clone, Copy)]
pub enum Clients {
    /// These, unless the command line has others.
    Usually(&'static [u32]),
    /// These, because the scenario is about this number.
    Always(&'static [u32]),
}

/// What a scenario compares.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Figure {
    /// Work done per second.
    Throughput,
    /// Time from the moment a request was due to its answer.
    Latency,
}

/// A way to do the work.
#[derive(Debug, Clone, Copy)]
pub struct Technique {
    /// Its name, unique in its scenario.
    pub name: &'static str,
    /// A description in one line.
    pub about: &'static str,
    /// An extension that it needs. It is created on a private server only.
    pub extension: Option<&'static str>,
    /// SQL that only this technique needs before each of its runs.
    pub prepare: &'static str,
    /// The load that ages the rows before the measurement, if there is one.
    pub ageing: Option<Ageing>,
    /// A second load at the same time.
    pub beside: Option<SecondLoad>,
    /// The program that makes the load.
    pub load_by: LoadBy,
    /// The pgbench scripts.
    pub script: Script,
    /// The address type of the clients.
    pub through: Through,
    /// The protocol of the clients.
    pub protocol: Protocol,
    /// The effect of an acknowledged request on the rows.
    pub worth: Worth,
    /// The times of the requests.
    pub arrivals: Arrivals,
    /// Whether the cost of the load for the server is measured too. It always is on a slower disk.
    pub is_costed: bool,
    /// Whether the server's WAL is decoded during the run.
    pub change_stream: bool,
    /// What commits wait for during the run.
    pub disk: Disk,
    /// The technique of the same scenario with which this one is compared. A baseline names itself.
    pub against: &'static str,
}

impl Technique {
    /// Whether the cost of its runs for the server is measured too.
    pub fn is_watched(&self) -> bool {
        self.is_costed || self.disk.delay_us > 0
    }

    /// The same requests by clients of Hotrow, as the technique `hotrow`.
    pub const fn through_hotrow(self, about: &'static str) -> Self {
        Self { name: "hotrow", about, through: Through::Hotrow, ..self }
    }

    /// The same by clients of Hotrow whose transactions hold back writes, as the technique `hotrow-deferred`.
    pub const fn deferred(self, about: &'static str) -> Self {
        Self { name: "hotrow-deferred", about, through: Through::HotrowDeferred, ..self }
    }
}

/// The server's disk, and the standby that confirms its commits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Disk {
    /// The time that each WAL flush takes longer, in microseconds. A standby has the same disk.
    pub delay_us: u32,
    /// Whether commits wait for a synchronous standby.
    pub standby: bool,
}

impl Disk {
    /// The disk of the machine, without a standby.
    pub const OWN: Self = Self { delay_us: 0, standby: false };

    pub const fn slower(delay_us: u32) -> Self {
        Self { delay_us, ..Self::OWN }
    }
}

/// The pgbench scripts of a technique.
#[derive(Debug, Clone, Copy)]
pub struct Script {
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

/// Another kind of warm-up: a snapshot is held until the end of the run, so dead rows cannot be removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ageing {
    /// The time for which the snapshot is held before the run.
    pub seconds: u32,
    /// Requests per second in this time, if the technique can reach this rate.
    pub rate: u32,
    /// The pgbench script of the requests.
    pub script: &'static str,
}

/// A second load with other clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SecondLoad {
    /// The number of clients.
    pub clients: u32,
    /// What they do.
    pub does: Beside,
}

/// The requests of a second load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Beside {
    /// This pgbench script, in a closed loop. Each transaction does one unit of work.
    Work(&'static str),
    /// The same with a script whose transactions do no work.
    Nothing(&'static str),
    /// One transaction for each client, in which it is idle from before the first request of the load until after the last.
    IdleInTransaction,
    /// Statements of this program, each executed for the first time. Each does one unit of work.
    NewShapes {
        /// The rate, if the other side reaches it.
        per_second: u32,
    },
}

/// The program that makes a technique's load.
#[derive(Debug, Clone, Copy)]
pub enum LoadBy {
    /// pgbench, with the technique's script.
    Pgbench,
    /// This program: workers that take a batch of orders, check their order, and complete the batch.
    Workers(Steps),
    /// This program: extended queries of unnamed statements that sell one unit of any item.
    Statements(Text),
    /// The same with one text, after a pause in which the clients stay connected. Only the first second after it counts. There
    /// is no pause before the warm-up.
    FirstSecond {
        /// SQL that a direct client runs at the end of the pause.
        change: &'static str,
    },
    /// A load that another crate makes, as a value of that crate. Its `OtherLoads` runs it.
    Other(&'static (dyn Any + Send + Sync)),
}

/// The texts of statements that do the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Text {
    Same,
    /// The same with a trace comment that no other statement has.
    Commented,
    /// Texts that change other columns than all earlier ones.
    NewShape,
}

/// The repeated statements of a worker. In both, `:run` stands for the number of the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Steps {
    /// A query for a batch of orders, in the order of their column `id`; each has a `receipt`.
    pub take: &'static str,
    /// The statement that completes the orders with the receipts `$1`.
    pub complete: &'static str,
}

/// The address type of clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Through {
    /// The server.
    Direct,
    Hotrow,
    HotrowTls,
    /// Hotrow with `pack = "deferred"`.
    HotrowDeferred,
    /// Hotrow, over HTTP.
    HotrowHttp,
    /// PgBouncer with transaction pooling and its usual 20 connections to the server.
    PgBouncer,
    /// The same with 4 connections.
    SmallPgBouncer,
    /// A queue in the memory of an application. Only the application connects to the server.
    Application,
    Redis,
}

/// The protocol in which pgbench sends statements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Protocol {
    /// As text that includes the values.
    Simple,
    /// Parsed at each use.
    Extended,
    /// Parsed once per connection.
    Prepared,
}

impl Protocol {
    /// The name in pgbench.
    pub fn name(self) -> &'static str {
        match self {
            Self::Simple => "simple",
            Self::Extended => "extended",
            Self::Prepared => "prepared",
        }
    }
}

/// The effect of an acknowledged request, which determines the state that the rows must have afterwards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Worth {
    /// One unit sold or one command executed. The rows must show exactly the acknowledged number.
    Sold,
    /// This number of units of work. The rows must show exactly this number for each answer.
    Each(u32),
    /// One unit sold, or a rejection because another client held the lock. The rows show which.
    SoldOrTurnedAway,
    /// No row changes.
    Read,
    /// A mix: at most this number of units of work. The transactions are counted.
    Mixed {
        /// Units of work of one transaction.
        most: u32,
    },
}

/// The time of a client's next request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arrivals {
    /// After the last answer: a closed loop, for throughput.
    Closed,
    /// At the rate of the plan, or by default at this rate, independent of answers: an open loop, for latency.
    Planned {
        /// Requests per second.
        usually: u32,
    },
    /// At a percentage of the rate that the technique `against` has just reached in a closed loop.
    OfClosed {
        /// Below 100 it shows the latency without overload. Above 100 it shows which techniques reach the rate.
        percent: u32,
    },
}
