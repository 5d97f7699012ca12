//! The clients: each sends random requests to a gateway, judges the answers and connects again when its connection ends.

use super::answers::{Answer, Outcome, Record};
use super::connection::Connection;
use super::work::{Kind, Request, Style, put_preparation};
use hotrow_wire::frontend::put_query;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

/// Pause after a connection that failed. Nothing signals that a gateway is back.
const PAUSE: Duration = Duration::from_millis(10);
/// Requests after which a client opens a new connection, to its own gateway.
const REQUESTS_OF_CONNECTION: u64 = 20_000;

/// What the clients of a round share. All run on one thread.
#[derive(Debug)]
pub struct Shared {
    pub round: u64,
    /// The ports of the gateways.
    pub ports: [Cell<u16>; 2],
    /// Set to end the load.
    pub stop: Cell<bool>,
    /// Statements that were acknowledged in this round.
    pub acknowledged: Cell<u64>,
    /// Requests whose outcome the answers do not say.
    pub unknown: Cell<u64>,
    pub connections: Cell<u64>,
    /// The client that is to lose its connection with its next requests.
    pub cut: Cell<Option<u32>>,
    /// The first wrong answer.
    pub fault: RefCell<Option<String>>,
}

impl Shared {
    /// The state at the beginning of a round.
    pub fn new(round: u64, ports: [u16; 2]) -> Self {
        Self {
            round,
            ports: ports.map(Cell::new),
            stop: Cell::default(),
            acknowledged: Cell::default(),
            unknown: Cell::default(),
            connections: Cell::default(),
            cut: Cell::default(),
            fault: RefCell::default(),
        }
    }

    fn note(&self, record: &Record) {
        match record.outcome {
            Outcome::Done | Outcome::Refused => {
                self.acknowledged.set(self.acknowledged.get() + record.kind.statements());
            }
            Outcome::Unknown => self.unknown.set(self.unknown.get() + 1),
            Outcome::NotRun => {}
        }
    }

    /// Records a fault, which ends the load.
    pub fn fail(&self, fault: String) {
        self.fault.borrow_mut().get_or_insert(fault);
        self.stop.set(true);
    }

    /// Connects and prepares the statements. An error is a fault.
    async fn connect(&self, gateway: usize) -> Result<Option<Connection>, String> {
        let Ok(opened) = Connection::open(self.ports[gateway].get()).await else { return Ok(None) };
        let refused = match opened {
            Ok(mut connection) => {
                put_preparation(&mut connection.out);
                if connection.send().await.is_err() {
                    return Ok(None);
                }
                match connection.expect_ready().await {
                    Ok(None) => {
                        self.connections.set(self.connections.get() + 1);
                        return Ok(Some(connection));
                    }
                    Ok(Some(refused)) => refused,
                    Err(_) => return Ok(None),
                }
            }
            Err(refused) => refused,
        };
        if refused.is_outage() { Ok(None) } else { Err(format!("a client could not log in: {refused:?}")) }
    }
}

/// One client.
#[derive(Debug)]
pub struct Client {
    shared: Rc<Shared>,
    number: u32,
    style: Style,
    random: fastrand::Rng,
    records: Vec<Record>,
}

impl Client {
    /// A client with this number, from 1.
    pub fn new(shared: Rc<Shared>, number: u32) -> Self {
        let random = fastrand::Rng::with_seed(shared.round << 32 | u64::from(number));
        Self { shared, number, style: Style::of(number), random, records: Vec::new() }
    }

    /// Sends requests until the load ends. Returns their records.
    pub async fn run(mut self) -> Vec<Record> {
        let own = self.number as usize % self.shared.ports.len();
        let mut gateway = own;
        while !self.shared.stop.get() {
            match self.shared.connect(gateway).await {
                Ok(Some(connection)) => {
                    if let Err(fault) = self.work(connection).await {
                        self.shared.fail(fault);
                    }
                    gateway = own;
                }
                Ok(None) => {
                    gateway = 1 - gateway;
                    tokio::time::sleep(PAUSE).await;
                }
                Err(fault) => self.shared.fail(fault),
            }
        }
        self.records
    }

    /// Works on one connection until it ends, or until it is old.
    async fn work(&mut self, mut connection: Connection) -> Result<(), String> {
        let end = self.records.len() as u64 + REQUESTS_OF_CONNECTION;
        while !self.shared.stop.get() && (self.records.len() as u64) < end {
            let stays = match self.style {
                Style::OneByOne => self.talk(&mut connection).await?,
                Style::Pipelined | Style::Texts => self.exchange(&mut connection).await?,
            };
            if !stays {
                break;
            }
        }
        Ok(())
    }

    fn next(&mut self) -> Vec<Request> {
        Request::choose(self.number, self.records.len() as u64 + 1, &mut self.random)
    }

    /// Sends several requests, then reads all answers. Returns whether the connection stays.
    async fn exchange(&mut self, connection: &mut Connection) -> Result<bool, String> {
        let requests = self.next();
        requests.iter().for_each(|request| request.put(self.style, self.shared.round, &mut connection.out));
        let mut stays = connection.send().await.is_ok();
        if self.is_cut() {
            return self.cut(&requests).map(|()| false);
        }
        let (mut later, mut has_failed) = (None, false);
        for request in &requests {
            // After an end, the messages that arrived before it are still read.
            let answer = connection.answer().await;
            let record = match has_failed {
                true => answer.judge_in_failed(request, later),
                false => answer.judge(request, later),
            };
            let record = self.note(record?);
            if !answer.is_whole {
                later = later.or(Some(record.outcome));
            }
            has_failed |= leaves_transaction(request, &answer);
            stays &= answer.is_whole;
        }
        Ok(stays && !has_failed)
    }

    /// Whether this client is to lose its connection now.
    fn is_cut(&self) -> bool {
        let is_cut = self.shared.cut.get() == Some(self.number);
        if is_cut {
            self.shared.cut.set(None);
        }
        is_cut
    }

    /// Ends the connection before the answers.
    fn cut(&mut self, requests: &[Request]) -> Result<(), String> {
        requests.iter().try_for_each(|request| {
            self.note(Answer::default().judge(request, None)?);
            Ok(())
        })
    }

    /// Sends one request, as `OneByOne` has only one at a time. The statements of a transaction are sent one by one. Returns whether the connection stays.
    async fn talk(&mut self, connection: &mut Connection) -> Result<bool, String> {
        let Some(request) = self.next().pop() else { return Ok(false) };
        let texts = request.texts(self.shared.round);
        let (mut all, mut sent) = (Answer { is_whole: true, ..Answer::default() }, 0);
        for text in &texts {
            put_query(&mut connection.out, text);
            sent += 1;
            // If this fails, the end is read as the answer.
            let _ = connection.send().await;
            let answer = if self.is_cut() { Answer::default() } else { connection.answer().await };
            all.rows.extend(answer.rows);
            (all.error, all.is_whole) = (answer.error, answer.is_whole);
            if all.error.is_some() || !all.is_whole {
                break;
            }
        }
        // A transaction whose COMMIT was not sent is not committed.
        let is_open = sent < texts.len() && matches!(request.kind, Kind::Transaction | Kind::RolledBack);
        self.note(all.judge(&request, is_open.then_some(Outcome::NotRun))?);
        Ok(all.is_whole && !leaves_transaction(&request, &all))
    }

    fn note(&mut self, record: Record) -> Record {
        self.shared.note(&record);
        self.records.push(record);
        record
    }
}

/// Whether the connection is left in a failed transaction.
fn leaves_transaction(request: &Request, answer: &Answer) -> bool {
    answer.error.is_some() && matches!(request.kind, Kind::Transaction | Kind::RolledBack)
}
