//! The load of the fault tests: clients that take orders, sell one hot item and fill shelves until they are told to stop, and that
//! record their answers. `checker.rs` judges the records.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicU64, Ordering::Relaxed};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use hotrow_testkit::line::{Answer, Line};

const PATIENCE: Duration = Duration::from_secs(60);

pub const TABLES: &str = "
    create table ledger (id bigint not null, client int not null, amount int not null check (amount > 0));
    create table inv (id int primary key, stock bigint not null, sold bigint not null);
    insert into inv values (1, 1000000000, 0);
    create table shelves (id int primary key, n bigint not null);
    insert into shelves select id, 0 from generate_series(1, 500) id;
    create table blocks (id int primary key, n bigint not null);
    insert into blocks values (1, 0)";
pub const ORDER: &str = "insert into ledger (id, client, amount) values ($1, $2, $3)";
pub const SELL: &str =
    "update inv set stock = stock - 1, sold = sold + 1 where id = 1 and stock >= 1 returning sold";
/// Updates of many rows, which no other client has hot.
pub const FILL: &str = "update shelves set n = n + 1 where id = $1 returning n";
pub const SHELVES: u64 = 500;

/// The last statement of a block. It counts the blocks, which are the orders with the amount `BLOCK_AMOUNT`.
pub const COUNT: &str = "update blocks set n = n + 1 where id = 1";
pub const BLOCK_AMOUNT: u8 = 2;

/// What a client knows about a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Acknowledged,
    /// The answer says that nothing happened.
    Failed,
    Unknown,
}

/// The work of a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Task {
    Order(u64),
    /// Violates a constraint, which rolls its batch back.
    BadOrder(u64),
    Sell,
    /// Adds 1 to this shelf.
    Fill(u64),
}

/// One unit and its client's answer.
#[derive(Clone, Debug)]
pub struct Entry {
    pub task: Task,
    pub outcome: Outcome,
    /// The value that the statement returned.
    pub returned: Option<u64>,
    /// The client's connection, numbered in the order in which the client opened them.
    pub session: u64,
}

/// The answers of all clients.
#[derive(Debug, Default)]
pub struct Records {
    pub entries: Vec<Entry>,
    /// How often each error occurred, by severity, SQLSTATE and message. A connection that just ended has no error.
    pub errors: BTreeMap<String, usize>,
}

/// How a client sends its units.
#[derive(Clone, Copy, Debug)]
enum Style {
    Prepared,
    Simple,
    Unnamed,
    Pipelined,
    /// BEGIN, an order, a sale and COMMIT as separate messages, sent together.
    Blocks,
}

struct Shared {
    port: AtomicU16,
    schema: String,
    stop: AtomicBool,
    acknowledged: AtomicU64,
    next: AtomicU64,
}

/// Running clients.
pub struct Load {
    shared: Arc<Shared>,
    clients: Vec<JoinHandle<Records>>,
}

impl Load {
    /// Starts `clients` clients on this port, with the styles in turn.
    pub fn start(clients: u64, port: u16, schema: &str) -> Self {
        let shared = Arc::new(Shared {
            port: AtomicU16::new(port),
            schema: schema.to_owned(),
            stop: AtomicBool::new(false),
            acknowledged: AtomicU64::new(0),
            next: AtomicU64::new(1),
        });
        let styles = [Style::Prepared, Style::Blocks, Style::Simple, Style::Pipelined, Style::Unnamed];
        let client = |number| {
            let shared = shared.clone();
            thread::spawn(move || client(&shared, number, styles[number as usize % styles.len()]))
        };
        Self { clients: (0..clients).map(client).collect(), shared }
    }

    /// Sets the port of later connections.
    pub fn redirect(&self, port: u16) {
        self.shared.port.store(port, Relaxed);
    }

    /// Waits until `units` more units are acknowledged.
    pub fn flows(&self, units: u64) {
        let (wanted, deadline) = (self.shared.acknowledged.load(Relaxed) + units, Instant::now() + PATIENCE);
        while self.shared.acknowledged.load(Relaxed) < wanted {
            assert!(Instant::now() < deadline, "the clients get no answers");
            thread::sleep(Duration::from_millis(1)); // the condition has no signal
        }
    }

    /// Stops the clients after their current units. Returns the answers of all clients.
    pub fn stop(self) -> Records {
        self.shared.stop.store(true, Relaxed);
        let mut all = Records::default();
        for client in self.clients {
            let records = client.join().expect("a client does not fail");
            all.entries.extend(records.entries);
            for (error, count) in records.errors {
                *all.errors.entry(error).or_default() += count;
            }
        }
        all
    }
}

/// Runs one client, which connects again whenever its connection ends.
fn client(shared: &Shared, number: u64, style: Style) -> Records {
    let mut records = Records::default();
    let mut random = fastrand::Rng::with_seed(number);
    let mut session = number << 32;
    while !shared.stop.load(Relaxed) {
        let Some(mut line) = connect(shared, &mut records) else {
            thread::sleep(Duration::from_millis(5)); // nothing signals that the other end is back
            continue;
        };
        session += 1;
        while !shared.stop.load(Relaxed) {
            let tasks = tasks(shared, style, &mut random);
            tasks.iter().for_each(|task| put(&mut line, style, *task, number));
            let sent = line.send().is_ok();
            let answers: Vec<_> = match style {
                Style::Blocks => tasks.chunks(2).flat_map(|_| answers_of_block(&mut line)).collect(),
                _ => tasks.iter().map(|_| line.answer()).collect(),
            };
            let alive = sent && answers.iter().all(|answer| answer.whole);
            records.note(&tasks, &answers, session, &shared.acknowledged);
            if !alive {
                break;
            }
        }
    }
    records
}

/// A connection with prepared statements.
fn connect(shared: &Shared, records: &mut Records) -> Option<Line> {
    let mut line = match Line::connect(shared.port.load(Relaxed), &shared.schema).ok()? {
        Ok(line) => line,
        Err(refusal) => {
            records.note_error(&refusal, "at login: ");
            return None;
        }
    };
    const STATEMENTS: [(&str, &str); 3] = [("order", ORDER), ("sell", SELL), ("fill", FILL)];
    for (name, sql) in STATEMENTS {
        line.put_prepare(name, sql);
    }
    line.send().ok()?;
    for _ in STATEMENTS {
        let answer = line.answer();
        if !answer.whole || answer.error().is_some() {
            records.note_error(&answer, "at prepare: ");
            return None;
        }
    }
    Some(line)
}

/// The units that are sent together. A block's order and its sale are two tasks.
fn tasks(shared: &Shared, style: Style, random: &mut fastrand::Rng) -> Vec<Task> {
    match style {
        Style::Blocks => (0..random.usize(1..4)).flat_map(|_| [order(shared, random), Task::Sell]).collect(),
        Style::Pipelined => (0..random.usize(2..12)).map(|_| task(shared, random)).collect(),
        Style::Prepared | Style::Simple | Style::Unnamed => vec![task(shared, random)],
    }
}

fn task(shared: &Shared, random: &mut fastrand::Rng) -> Task {
    match random.u8(0..4) {
        0 | 1 => Task::Sell,
        2 => Task::Fill(random.u64(1..=SHELVES)),
        _ => order(shared, random),
    }
}

fn order(shared: &Shared, random: &mut fastrand::Rng) -> Task {
    let id = shared.next.fetch_add(1, Relaxed);
    if random.u8(0..16) == 0 { Task::BadOrder(id) } else { Task::Order(id) }
}

/// Appends a block to the line: an order and a sale in one transaction.
pub fn put_block(line: &mut Line, order: Task, client: u64) {
    line.put_query("begin");
    let (name, _, mut values) = order.statement(client);
    if let Task::Order(_) = order {
        values[2] = BLOCK_AMOUNT.to_string();
    }
    let values: Vec<_> = values.iter().map(|value| Some(value.as_str())).collect();
    line.put_call(name, &values);
    line.put_sync();
    line.put_call("sell", &[]);
    line.put_sync();
    line.put_query(COUNT);
    line.put_query("commit");
}

/// The answers to a block's order and sale. Only the COMMIT applies them. If it was not reached, both get the first
/// error.
pub fn answers_of_block(line: &mut Line) -> [Answer; 2] {
    let answers: [Answer; 5] = std::array::from_fn(|_| line.answer());
    let wrong = answers.iter().find(|answer| !answer.whole || answer.error().is_some());
    if let Some(wrong) = wrong {
        return [wrong.clone(), wrong.clone()];
    }
    let [_, order, sale, _, commit] = answers;
    assert_eq!(commit.command().as_deref(), Some("COMMIT"), "no error came before");
    [order, sale]
}

/// Appends one unit to the line.
fn put(line: &mut Line, style: Style, task: Task, client: u64) {
    let (name, sql, values) = task.statement(client);
    let parameters: Vec<Option<&str>> = values.iter().map(|value| Some(value.as_str())).collect();
    match style {
        Style::Blocks if task == Task::Sell => return, // with its order
        Style::Blocks => return put_block(line, task, client),
        Style::Prepared | Style::Pipelined => line.put_call(name, &parameters),
        Style::Unnamed => line.put_unnamed_call(sql, &parameters),
        Style::Simple => {
            let text = values.iter().enumerate();
            let text =
                text.fold(sql.to_owned(), |sql, (at, value)| sql.replace(&format!("${}", at + 1), value));
            return line.put_query(&text);
        }
    }
    line.put_sync();
}

impl Task {
    /// The prepared statement's name, its text, and its values.
    pub fn statement(self, client: u64) -> (&'static str, &'static str, Vec<String>) {
        let order = |id: u64, amount: u8| vec![id.to_string(), client.to_string(), amount.to_string()];
        match self {
            Task::Order(id) => ("order", ORDER, order(id, 1)),
            Task::BadOrder(id) => ("order", ORDER, order(id, 0)),
            Task::Sell => ("sell", SELL, Vec::new()),
            Task::Fill(shelf) => ("fill", FILL, vec![shelf.to_string()]),
        }
    }
}

impl Records {
    /// Records the outcomes of units that were sent together.
    pub fn note(&mut self, tasks: &[Task], answers: &[Answer], session: u64, acknowledged: &AtomicU64) {
        let mut later = Outcome::Unknown;
        for (task, answer) in tasks.iter().zip(answers) {
            let outcome = outcome(answer, later);
            self.note_error(answer, "");
            match outcome {
                Outcome::Acknowledged => _ = acknowledged.fetch_add(1, Relaxed),
                // Units sent after a unit that was rejected because the gateway stops were not executed either.
                outcome if !answer.whole => later = outcome,
                _ => {}
            }
            let returned = answer.rows().first().and_then(|row| row[0].as_ref()?.parse().ok());
            self.entries.push(Entry { task: *task, outcome, returned, session });
        }
    }

    fn note_error(&mut self, answer: &Answer, when: &str) {
        if let Some(report) = answer.error() {
            let error = format!("{when}{} {} {}", report.severity, report.code, report.message);
            *self.errors.entry(error).or_default() += 1;
        }
    }

    /// The number of units with this outcome.
    pub fn count(&self, outcome: Outcome) -> usize {
        self.entries.iter().filter(|entry| entry.outcome == outcome).count()
    }

    /// Errors other than those of bad orders, and other than those that begin with a text in `expected`.
    pub fn unexpected(&self, expected: &[&str]) -> Vec<(&String, &usize)> {
        let known = |error: &str| {
            error.starts_with("ERROR 23514 ") || expected.iter().any(|start| error.starts_with(start))
        };
        self.errors.iter().filter(|(error, _)| !known(error)).collect()
    }
}

/// The outcome of a unit according to its answer, or `later` if there is no answer at all.
fn outcome(answer: &Answer, later: Outcome) -> Outcome {
    match answer.error() {
        None if answer.whole => Outcome::Acknowledged,
        None => later,
        Some(report) if report.code == "08007" => Outcome::Unknown,
        Some(report) if report.severity == "ERROR" => Outcome::Failed,
        Some(report) if report.message.contains("the gateway is shutting down") => Outcome::Failed,
        Some(report) if report.message.contains("was not executed") => Outcome::Failed,
        Some(_) => Outcome::Unknown,
    }
}
