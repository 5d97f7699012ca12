//! The server's side of a lane: batches as transactions with a barrier. The statements of a batch are sent together, all answers are
//! read, and only then COMMIT or ROLLBACK is sent. Thus the lane has all answers before the batch can be committed, and a
//! statement that undoes the transaction cannot let later ones be committed without it.

mod checks;
mod flight;
mod opening;
mod watch;

use std::collections::{BTreeMap, VecDeque};
use std::future::{Future, pending};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use hotrow_core::session::RunOutcome;
use hotrow_gateway::lanes::{Backend, BatchEvent, LaneShared, Patience, Progress, Unblock, Work};
use hotrow_gateway::metrics::METRICS;
use hotrow_lane::lane::{Batch, Doubt, Leaving, Outcome, Refusal, Unit};
use hotrow_mysql_client::Socket;
use hotrow_mysql_wire::command::Command;
use hotrow_mysql_wire::packet;
use tokio::sync::oneshot;
use tokio::time::sleep_until;

use crate::counting::not_packed;
use crate::lane::flight::{Flight, Step};
use crate::lane::opening::Opened;
use crate::lane::watch::Watches;
use crate::limits;
use crate::refusal;

pub use opening::{FINGERPRINT, Refused, Target, fingerprint, probe};

/// What becomes of a unit.
#[derive(Debug)]
pub enum Fate {
    /// It is committed, or has failed by itself, or was killed, and this is its answer.
    Answered(Vec<Vec<u8>>),
    /// It left nothing behind, and the session runs it on its own connection. Units of its row wait for the end of that.
    Alone(Option<Unblock<Statement>>),
    /// It left nothing behind, and the facts about its table may have changed.
    Again,
    /// It is unknown whether it is committed.
    Unknown,
}

/// A statement on its way to a lane and back.
#[derive(Debug)]
pub struct Statement {
    pub text: Bytes,
    pub database: String,
    pub table: String,
    /// The definition of the table under which it was judged.
    pub definition: String,
    /// Whether its error, if it fails, is all that it leaves.
    pub never_warns: bool,
    /// Whether a lane can keep the table open.
    pub can_be_watched: bool,
    /// It can remove rows, from other tables too.
    pub removes: bool,
    /// The most rows that it can change.
    pub rows_max: u64,
    /// It is an execution of a prepared statement, whose rows have another form.
    pub is_execution: bool,
    pub fate: oneshot::Sender<Fate>,
    pub came: Instant,
}

impl Work for Statement {
    fn came(&self) -> Instant {
        self.came
    }

    fn tables(&self) -> Vec<String> {
        vec![format!("{}.{}", self.database, self.table)]
    }
}

type Opening = Pin<Box<dyn Future<Output = Option<Opened>> + Send>>;

/// The server's side of a lane.
pub struct ServerLane {
    target: Arc<Target>,
    shared: Arc<LaneShared>,
    /// Its place among the lanes of its pool.
    index: usize,
    /// Its name in `hotrow.batch`.
    name: String,
    opening: Option<Opening>,
    connection: Option<Opened>,
    /// The number of the last committed batch when the connection was opened. By then the one before it was gone.
    resolved: Option<Outcome>,
    out: BytesMut,
    /// The next batch, until the one before it is committed or rolled back.
    held: BytesMut,
    flights: VecDeque<Flight>,
    written: VecDeque<u64>,
    events: VecDeque<BatchEvent>,
    replies: BTreeMap<u64, Vec<Vec<Vec<u8>>>>,
    gone: Vec<u64>,
    watches: Watches,
    /// Answers to come to statements that close watched tables.
    closing: usize,
    /// When the last batch was put or ended.
    used: Instant,
    /// When the server began the earliest batch, and when its COMMIT was sent.
    began: Instant,
    executed: Instant,
}

impl ServerLane {
    pub fn new(target: Arc<Target>, shared: Arc<LaneShared>, index: usize) -> io::Result<Self> {
        let mut random = [0; 16];
        getrandom::fill(&mut random).map_err(io::Error::other)?;
        let name = random.iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(ServerLane {
            target,
            shared,
            index,
            name,
            opening: None,
            connection: None,
            resolved: None,
            out: BytesMut::new(),
            held: BytesMut::new(),
            flights: VecDeque::new(),
            written: VecDeque::new(),
            events: VecDeque::new(),
            replies: BTreeMap::new(),
            gone: Vec::new(),
            watches: Watches::default(),
            closing: 0,
            used: Instant::now(),
            began: Instant::now(),
            executed: Instant::now(),
        })
    }

    fn forget(&mut self) {
        self.connection = None;
        self.opening = None;
        self.resolved = None;
        self.out.clear();
        self.held.clear();
        self.flights.clear();
        self.events.clear();
        (self.watches, self.closing) = (Watches::default(), 0);
    }

    /// Gives the operating system what it takes now. An error shows when the lane reads.
    fn push(&mut self) {
        let Some(connection) = &mut self.connection else { return };
        let _ = connection.socket.write.try_drain(&mut self.out);
    }

    fn query(out: &mut BytesMut, text: &[u8]) {
        packet::put(out, 0, &Command::Query.payload(text));
    }

    fn tell(&mut self, unit: Unit<Statement>, fate: Fate) {
        if matches!(fate, Fate::Unknown) {
            METRICS.unknown.inc();
        }
        if unit.payload.fate.send(fate).is_err() {
            self.gone.push(unit.session);
        }
    }

    /// Reads one packet of the earliest batch.
    fn read(&mut self, payload: Bytes) {
        if self.closing > 0 {
            self.closing -= 1;
            return;
        }
        let Some(flight) = self.flights.front_mut() else {
            return self.events.push_back(BatchEvent::Invalid); // the server ends the connection
        };
        let number = flight.number;
        match flight.read(payload, &mut self.events, &mut self.watches) {
            Step::More => {}
            Step::Ask(statements) => {
                for statement in statements {
                    Self::query(&mut self.out, statement.as_bytes());
                }
                self.push();
            }
            Step::Commit => {
                // From here on, the batch can be committed, and all its answers are here.
                let end: &[u8] = if flight.changed_nothing() { b"rollback" } else { b"commit" };
                self.replies.insert(number, std::mem::take(&mut flight.replies));
                self.written.push_back(number);
                self.events.push_back(BatchEvent::Executed(Some(number)));
                self.executed = Instant::now();
                // The end of a batch without a change costs no flush. If it is lost, its units run again.
                Self::query(&mut self.out, end);
                self.send_held();
            }
            Step::RollBack => {
                METRICS.rolled_back.inc();
                Self::query(&mut self.out, b"rollback");
                self.push();
            }
            Step::Over { was_committed } => {
                self.used = Instant::now();
                if was_committed {
                    self.target.pace.note(self.executed - self.began, self.used - self.executed);
                }
                self.began = self.used; // of the next batch, if it has been sent behind the COMMIT
                self.flights.pop_front();
                self.events.push_back(BatchEvent::Ready(number));
                if !was_committed {
                    self.send_held();
                }
            }
            Step::Invalid => self.events.push_back(BatchEvent::Invalid),
        }
    }

    fn send_held(&mut self) {
        self.out.unsplit(self.held.split());
        self.push();
    }
}

impl Backend for ServerLane {
    type Work = Statement;

    fn shared(&self) -> &LaneShared {
        &self.shared
    }

    fn patience(&self) -> Patience {
        let queue = Duration::from_millis(limits::QUEUE_WAIT_MS);
        Patience { idle: Duration::from_millis(limits::LANE_IDLE_MS), queue, server: self.target.server_wait }
    }

    fn connect(&mut self, in_doubt: bool) {
        let opening = opening::open(self.target.clone(), self.index, self.name.clone(), in_doubt);
        self.opening = Some(Box::pin(opening));
    }

    fn close(&mut self) {
        self.forget();
    }

    fn is_up(&self) -> bool {
        self.connection.is_some()
    }

    fn resolve(&mut self, doubt: Doubt) {
        let marked = self.connection.as_ref().and_then(|connection| connection.marked);
        self.resolved = Some(match (doubt, marked) {
            (Doubt::Id(number), Some(marked)) if marked >= number => Outcome::Committed,
            (Doubt::Id(_), Some(_)) => Outcome::Aborted,
            _ => Outcome::Unknown,
        });
    }

    async fn progress(&mut self) -> Progress {
        if let Some(opening) = &mut self.opening {
            self.connection = opening.await;
            self.opening = None;
            return match self.connection {
                Some(_) => Progress::Connected,
                None => Progress::ConnectFailed { give_up: true },
            };
        }
        let Some(connection) = &mut self.connection else { return pending().await };
        if let Some(outcome) = self.resolved.take() {
            return Progress::Resolved(outcome);
        }
        if !self.events.is_empty() {
            return Progress::Bytes;
        }
        let Socket { read, write, arrived } = &mut connection.socket;
        let unused = self.used + Duration::from_millis(limits::WATCH_IDLE_MS);
        loop {
            let watches_in_vain = self.flights.is_empty() && !self.watches.is_empty();
            tokio::select! {
                read = read.fill(arrived) => return match read {
                    Ok(1..) => Progress::Bytes,
                    Ok(0) | Err(_) => Progress::Lost,
                },
                written = write.drain(&mut self.out), if !self.out.is_empty() => if written.is_err() {
                    return Progress::Lost;
                },
                // A change of a table waits for the lane's next statement.
                () = sleep_until(unused.into()), if watches_in_vain => {
                    for statement in self.watches.close() {
                        Self::query(&mut self.out, statement.as_bytes());
                        self.closing += 1;
                    }
                }
            }
        }
    }

    fn lost(&mut self, _: Option<u64>) {
        self.forget();
    }

    fn put(&mut self, batch: &Batch<Statement>) {
        let fits = self.connection.as_ref().is_some_and(|connection| connection.fits);
        if !fits {
            // The server's defaults have changed, so new connections differ from those of the sessions.
            let over =
                [BatchEvent::Failed(hotrow_lane::lane::Failure::Behind), BatchEvent::Ready(batch.number)];
            self.events.extend(over);
            return;
        }
        let deprecates_eof = self.target.deprecates_eof();
        let (flight, bytes) = Flight::new(batch, &self.name, deprecates_eof, &mut self.watches);
        self.used = Instant::now();
        if self.flights.is_empty() {
            self.began = self.used;
        }
        let waits = self.flights.back().is_some_and(|before| !before.is_committing());
        self.flights.push_back(flight);
        if waits {
            self.held.unsplit(bytes);
        } else {
            self.out.unsplit(bytes);
            self.push();
        }
    }

    fn written(&mut self) -> Option<u64> {
        self.written.pop_front()
    }

    fn next(&mut self, _: Option<&Batch<Statement>>) -> Option<BatchEvent> {
        loop {
            if let Some(event) = self.events.pop_front() {
                return Some(event);
            }
            let arrived = &mut self.connection.as_mut()?.socket.arrived;
            match packet::take(arrived, limits::LOGIN_PACKET_BYTES_MAX) {
                Ok(Some(packet)) => self.read(packet.payload),
                Ok(None) => return None,
                Err(_) => return Some(BatchEvent::Invalid),
            }
        }
    }

    fn has_replies(&self, batch: u64) -> bool {
        self.replies.contains_key(&batch)
    }

    fn keep_replies(&mut self, is_needed: impl Fn(u64) -> bool) {
        self.replies.retain(|number, _| is_needed(*number));
    }

    fn answer(&mut self, batch: Batch<Statement>) {
        let replies = self.replies.remove(&batch.number).unwrap_or_default();
        for (unit, reply) in batch.units.into_iter().zip(replies) {
            self.tell(unit, Fate::Answered(reply));
        }
    }

    fn refuse(&mut self, units: Vec<Unit<Statement>>, refusal: Refusal) {
        for unit in units {
            let fate = match refusal {
                Refusal::OutcomeUnknown | Refusal::WrittenElsewhere => Fate::Unknown,
                // Nothing ran: the session runs it, and gets the server's own error if there is one.
                Refusal::NotSent | Refusal::QueueFull | Refusal::Paused => {
                    not_packed(RunOutcome::GivenBack);
                    Fate::Alone(None)
                }
                Refusal::Cancelled => Fate::Answered(vec![refusal::Refusal::Killed.payload()]),
            };
            self.tell(unit, fate);
        }
    }

    fn alone(&mut self, unit: Unit<Statement>, unblock: Option<Unblock<Statement>>) {
        let (outcome, metric) = match unit.leaving {
            Leaving::Blocked => (RunOutcome::Blocked, &METRICS.blocked),
            Leaving::TooSlow => (RunOutcome::TooSlow, &METRICS.too_slow),
            Leaving::Failed | Leaving::Changed => (RunOutcome::Failed, &METRICS.failed),
        };
        metric.inc();
        not_packed(outcome);
        self.tell(unit, Fate::Alone(unblock));
    }

    fn give_back(&mut self, unit: Unit<Statement>) {
        self.tell(unit, Fate::Again);
    }

    fn flush(&mut self) -> Vec<u64> {
        std::mem::take(&mut self.gone)
    }
}
