//! The load: clients that make random transactions until they are told to stop, and record what they were told.
//!
//! | file | contents |
//! |---|---|
//! | `statement.rs` | the statements and what their answers show |
//! | `plan.rs` | random transactions |
//! | `sending.rs` | the messages of a transaction, and its outcome |

mod plan;
mod sending;
mod statement;

use super::history::{Level, Op, Outcome, Transaction};
use hotrow_testkit::line::{Line, Report};
use plan::{HOT, Plan, Rows, Way};
use sending::Done;
pub use statement::tables;
use std::collections::{BTreeMap, BTreeSet};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Time until a client tries again to connect.
const RECONNECT_MS: u64 = 10;
const PHASE_SECONDS: u64 = 2;

/// To what a client connects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    Server,
    /// A gateway, by its number.
    Gateway(usize),
    /// A gateway that holds back writes.
    Deferring(usize),
}

impl Place {
    /// Its name in the report.
    pub fn name(self) -> &'static str {
        match self {
            Self::Server => "direct",
            Self::Gateway(_) => "gateway",
            Self::Deferring(_) => "gateway, deferred writes",
        }
    }
}

/// The ports of the server and of the gateways. A gateway that is started again has another one.
#[derive(Default)]
pub struct Ports {
    pub server: AtomicU16,
    pub gateways: [AtomicU16; 2],
}

/// All that clients share.
struct Shared {
    ports: Arc<Ports>,
    rows: Rows,
    cuts: bool,
    stop: AtomicBool,
    /// Counts the events of the history.
    time: AtomicU64,
    sessions: AtomicU64,
    committed: AtomicU64,
    start: Instant,
    /// Whether all clients are direct.
    is_direct: bool,
}

impl Shared {
    fn tick(&self) -> u64 {
        self.time.fetch_add(1, Ordering::SeqCst)
    }
}

/// What a client has recorded.
#[derive(Default)]
pub struct Records {
    pub history: Vec<Transaction>,
    /// Transactions by place, way, level and outcome.
    pub counts: BTreeMap<(&'static str, String, Level, Outcome), usize>,
    /// How often each error occurred, by severity and SQLSTATE.
    pub errors: BTreeMap<String, usize>,
    /// Answers that no database may give.
    pub wrong: Vec<String>,
}

impl Records {
    fn merge(&mut self, other: Self) {
        self.history.extend(other.history);
        for (of, count) in other.counts {
            *self.counts.entry(of).or_default() += count;
        }
        for (error, count) in other.errors {
            *self.errors.entry(error).or_default() += count;
        }
        self.wrong.extend(other.wrong);
    }

    fn note_error(&mut self, error: &Report) {
        *self.errors.entry(format!("{} {}", error.severity, error.code)).or_default() += 1;
    }

    /// The number of transactions with this outcome.
    pub fn count(&self, outcome: Outcome) -> usize {
        self.counts.iter().filter(|((.., of), _)| *of == outcome).map(|(_, count)| count).sum()
    }
}

/// Running clients.
pub struct Load {
    shared: Arc<Shared>,
    clients: Vec<JoinHandle<Records>>,
}

impl Load {
    /// Starts a client for each place. `rows` is the number of lists and of registers.
    pub fn start(ports: Arc<Ports>, places: &[Place], rows: u64, seed: u64, cuts: bool) -> Self {
        let shared = Arc::new(Shared {
            ports,
            rows: Rows::new(rows),
            cuts,
            stop: AtomicBool::new(false),
            time: AtomicU64::new(1),
            sessions: AtomicU64::new(1),
            committed: AtomicU64::new(0),
            start: Instant::now(),
            is_direct: places.iter().all(|place| *place == Place::Server),
        });
        let mut seeds = fastrand::Rng::with_seed(seed);
        let client = |place: &Place| {
            let (shared, place, seed) = (shared.clone(), *place, seeds.u64(..));
            thread::spawn(move || Client { shared: &shared, place, records: Records::default() }.run(seed))
        };
        Self { clients: places.iter().map(client).collect(), shared }
    }

    /// The number of transactions that were committed so far.
    pub fn committed(&self) -> u64 {
        self.shared.committed.load(Ordering::Relaxed)
    }

    /// Stops the clients after their current transactions, and reads all rows that were used.
    pub fn stop(self) -> Records {
        self.shared.stop.store(true, Ordering::Relaxed);
        let mut all = Records::default();
        for client in self.clients {
            all.merge(client.join().expect("a client does not fail"));
        }
        match read_all(&self.shared) {
            Some(last) => all.history.push(last),
            None => all.wrong.push("the rows cannot be read after the load".into()),
        }
        all
    }
}

/// One statement that reads all rows.
fn read_all(shared: &Shared) -> Option<Transaction> {
    let port = shared.ports.server.load(Ordering::Relaxed);
    let mut line = Line::connect(port, "public").ok()?.ok()?;
    let begun = shared.tick();
    let rows = line.query(
        "select 'l', k, array_to_string(v, ',') from list where v <> '{}'
        union all select 'r', k, v::text from register where v is not null",
    );
    let ended = shared.tick();
    let op = |row: Vec<Option<String>>| {
        let key = row[1].as_ref()?.parse().ok()?;
        let values: Option<Vec<u64>> = row[2].as_ref()?.split(',').map(|value| value.parse().ok()).collect();
        let values = values?;
        Some(if row[0].as_deref() == Some("l") {
            Op::Read(key, values)
        } else {
            Op::Get(key, values.first().copied())
        })
    };
    let mut ops: Vec<Op> = rows.rows().into_iter().filter_map(op).collect();
    ops.extend(empty_rows(&ops));
    let (session, level) = (shared.sessions.fetch_add(1, Ordering::Relaxed), Level::ReadCommitted);
    let (way, outcome) = ("the last read, direct".to_owned(), Outcome::Committed);
    rows.whole.then(|| Transaction { session, level, way, statements: vec![ops], outcome, begun, ended })
}

/// The rows that the last read did not return are empty. Only the used ones matter.
fn empty_rows(ops: &[Op]) -> Vec<Op> {
    let (mut lists, mut registers): (BTreeSet<u64>, BTreeSet<u64>) = Default::default();
    for op in ops {
        match op {
            Op::Read(key, _) => _ = lists.insert(*key),
            Op::Get(key, _) => _ = registers.insert(*key),
            Op::Append(..) | Op::Write(..) => {}
        }
    }
    let empty = |known: &BTreeSet<u64>| -> Vec<u64> {
        let used = 1..=known.last().copied().unwrap_or(0) + HOT;
        used.filter(|key| !known.contains(key)).collect()
    };
    let lists = empty(&lists).into_iter().map(|key| Op::Read(key, Vec::new()));
    lists.chain(empty(&registers).into_iter().map(|key| Op::Get(key, None))).collect()
}

/// One client.
struct Client<'s> {
    shared: &'s Shared,
    place: Place,
    records: Records,
}

impl Client<'_> {
    fn run(mut self, seed: u64) -> Records {
        let mut random = fastrand::Rng::with_seed(seed);
        while !self.stopped() {
            let Some(mut line) = self.connect() else {
                thread::sleep(Duration::from_millis(RECONNECT_MS));
                continue;
            };
            let session = self.shared.sessions.fetch_add(1, Ordering::Relaxed);
            let mut is_connected = true;
            while is_connected && !self.stopped() {
                if self.pauses() {
                    thread::sleep(Duration::from_millis(RECONNECT_MS));
                    continue;
                }
                let defers = matches!(self.place, Place::Deferring(_));
                let plan = Plan::random(&self.shared.rows, &mut random, self.shared.cuts, defers);
                is_connected = match plan.way {
                    Way::PipelinedSingles => self.singles(&mut line, session, &plan),
                    _ => self.transaction(&mut line, session, &plan),
                };
            }
        }
        self.records
    }

    /// A direct client pauses for half of the time, so that lanes have times without outsiders.
    fn pauses(&self) -> bool {
        let is_time = self.shared.start.elapsed().as_secs() % (2 * PHASE_SECONDS) >= PHASE_SECONDS;
        is_time && self.place == Place::Server && !self.shared.is_direct
    }

    fn stopped(&self) -> bool {
        self.shared.stop.load(Ordering::Relaxed)
    }

    fn connect(&mut self) -> Option<Line> {
        let ports = &self.shared.ports;
        let (port, options) = match self.place {
            Place::Server => (&ports.server, "public"),
            Place::Gateway(number) => (&ports.gateways[number], "public -c hotrow.pack=on"),
            Place::Deferring(number) => (&ports.gateways[number], "public"),
        };
        let stream = TcpStream::connect(("127.0.0.1", port.load(Ordering::Relaxed))).ok()?;
        match Line::login(stream, options).ok()? {
            Ok(line) => Some(line),
            Err(refusal) => {
                let error = refusal.error();
                error.iter().for_each(|error| self.records.note_error(error));
                None
            }
        }
    }

    fn transaction(&mut self, line: &mut Line, session: u64, plan: &Plan) -> bool {
        let begun = self.shared.tick();
        let done = sending::run(line, plan);
        let (is_connected, is_open) = (done.is_connected, done.is_open);
        self.record(session, plan, begun, done);
        is_connected && (!is_open || sending::roll_back(line))
    }

    fn singles(&mut self, line: &mut Line, session: u64, plan: &Plan) -> bool {
        let begun: Vec<u64> = plan.statements.iter().map(|_| self.shared.tick()).collect();
        let (mut begun, mut is_connected) = (begun.into_iter(), true);
        sending::run_singles(line, plan, |done| {
            is_connected = done.is_connected;
            let begun = begun.next().expect("each statement has its time");
            self.record(session, plan, begun, done);
        });
        is_connected
    }

    fn record(&mut self, session: u64, plan: &Plan, begun: u64, done: Done) {
        let ended = self.shared.tick();
        if done.outcome == Outcome::Committed {
            self.shared.committed.fetch_add(1, Ordering::Relaxed);
        }
        let count = (self.place.name(), plan.way.to_string(), plan.level, done.outcome);
        *self.records.counts.entry(count).or_default() += 1;
        done.error.iter().for_each(|error| self.records.note_error(error));
        let way = format!("{} by {:?}", plan.way, self.place);
        self.records.wrong.extend(done.wrong.map(|wrong| format!("{way}: {wrong}")));
        let statements = done.statements;
        if statements.iter().any(|ops| !ops.is_empty()) {
            let (level, outcome) = (plan.level, done.outcome);
            let transaction = Transaction { session, level, way, statements, outcome, begun, ended };
            self.records.history.push(transaction);
        }
    }
}
