//! Load over HTTP on connections that are kept, in a closed loop or at a constant rate; nothing of PostgreSQL.

mod commands;
mod connection;
mod orders;

pub use commands::Commands;
pub use connection::{Connection, Post};
pub use orders::Orders;

use crate::arrivals::arrivals;
use crate::load::{Answers, Failure, Pace, Part, joined};
use crate::statistics::Latencies;
use hyper::StatusCode;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinSet;

/// A kind of requests.
pub trait Kind: Send + Sync + 'static {
    /// The next one.
    fn request(&self) -> Post;

    /// What an answer means; if it is none to go on with, what it said.
    fn outcome(&self, status: StatusCode, body: &[u8]) -> Result<Outcome, String>;
}

/// What came of a request.
#[derive(Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It was carried out and committed.
    CarriedOut,
    /// The other side was too busy, and nothing was executed.
    Refused,
    /// The same, of a request that has an id: it is sent again.
    Again,
}

/// A client that is sent away waits so long.
const BEFORE_AGAIN: Duration = Duration::from_millis(20);

/// What one connection has to tell: the requests that were carried out, and how many were refused.
struct Answered {
    latencies: Latencies,
    refused: u64,
}

/// Where a connection learns that its next request is due.
enum Loop {
    /// At once, until then.
    Closed(Instant),
    /// When it comes out of here.
    Open(UnboundedReceiver<Instant>),
}

impl Loop {
    async fn next(&mut self) -> Option<Instant> {
        match self {
            Self::Closed(end) => Some(Instant::now()).filter(|now| now < end),
            Self::Open(due) => due.recv().await,
        }
    }
}

/// Runs a load to its end. Connections and requests use the addresses in turn.
pub async fn run(addresses: &[SocketAddr], kind: impl Kind, part: &Part) -> Result<Answers, Failure> {
    const FOR_CONNECTING_AND_ENDING: Duration = Duration::from_secs(90);
    let patience = part.lasting() + FOR_CONNECTING_AND_ENDING;
    let late = |_| Failure(format!("HTTP requests had no answer {patience:?} after the start of the load"));
    tokio::time::timeout(patience, send_and_gather(addresses, kind, part)).await.map_err(late)?
}

async fn send_and_gather(addresses: &[SocketAddr], kind: impl Kind, part: &Part) -> Result<Answers, Failure> {
    let kind = Arc::new(kind);
    let mut open = Vec::new();
    for address in addresses.iter().cycle().take(part.run.clients as usize) {
        open.push(Connection::open(*address).await?);
    }
    let began = Instant::now();
    let lasting = part.lasting();
    let mut queues = Vec::new();
    let mut connections = JoinSet::new();
    for connection in open {
        let mut due = Loop::Closed(began + lasting);
        if part.rate.is_some() {
            let (sender, receiver) = unbounded_channel();
            queues.push(sender);
            due = Loop::Open(receiver);
        }
        connections.spawn(answer_all(connection, due, Arc::clone(&kind)));
    }
    let sending = part.rate.map(|rate| tokio::spawn(hand_out(queues, rate, began, lasting)));
    let (mut refused, mut latencies) = (0, Latencies::new());
    while let Some(ended) = connections.join_next().await {
        let answered = joined(ended)?;
        refused += answered.refused;
        latencies.add(&answered.latencies);
    }
    let answers = Answers::since(began, latencies.count(), latencies);
    let Some(sending) = sending else {
        return if refused == 0 {
            Ok(answers)
        } else {
            Err(Failure(format!("{refused} requests were rejected")))
        };
    };
    let (arrived_per_second, late_p99_us) = joined(sending.await);
    Ok(Answers { pace: Some(Pace { arrived_per_second, late_p99_us, refused }), ..answers })
}

/// Hands each request to the next connection's queue when it is due. How many in a second that were, and how late this itself
/// was for 99 in 100 of them, in microseconds.
async fn hand_out(
    queues: Vec<UnboundedSender<Instant>>,
    rate: u32,
    began: Instant,
    lasting: Duration,
) -> (f64, u64) {
    let mut moments = arrivals(rate, began, began + lasting);
    let mut late = Latencies::new();
    let mut arrived = 0;
    for queue in queues.iter().cycle() {
        let Some(at) = moments.recv().await else { break };
        late.record_since(at);
        if queue.send(at).is_err() {
            break; // that connection's own end says why
        }
        arrived += 1;
    }
    let took = began.elapsed().max(lasting).as_secs_f64();
    (f64::from(arrived) / took, late.quantiles().map_or(0, |late| late.p99_us))
}

/// One connection: sends what is due, one request after the other, until nothing more will come.
async fn answer_all(
    mut connection: Connection,
    mut due: Loop,
    kind: Arc<impl Kind>,
) -> Result<Answered, Failure> {
    let mut answered = Answered { latencies: Latencies::new(), refused: 0 };
    while let Some(at) = due.next().await {
        let request = kind.request();
        loop {
            let (status, body) = connection.post(&request).await?;
            let said_to = |said| Failure(format!("POST {} was answered with {said}", request.path));
            match kind.outcome(status, &body).map_err(said_to)? {
                Outcome::CarriedOut => answered.latencies.record_since(at),
                Outcome::Refused => answered.refused += 1,
                // The whole load has a time limit, so this ends.
                Outcome::Again => {
                    tokio::time::sleep(BEFORE_AGAIN).await;
                    continue;
                }
            }
            break;
        }
    }
    Ok(answered)
}
