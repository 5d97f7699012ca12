//! Load over HTTP on persistent connections, in a closed loop or at a constant rate. It does not use PostgreSQL's protocol.

mod commands;
mod orders;

pub use commands::Commands;
pub use orders::Orders;

use hotrow_bench::arrivals::arrivals;
use hotrow_bench::http::{Connection, Post};
use hotrow_bench::load::{Answers, Failure, Pace, Part, joined};
use hotrow_bench::statistics::Latencies;
use hyper::StatusCode;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinSet;

/// A kind of requests.
pub trait Kind: Send + Sync + 'static {
    /// The next request.
    fn request(&self) -> Post;

    /// The meaning of an answer, or its text if it is unexpected.
    fn outcome(&self, status: StatusCode, body: &[u8]) -> Result<Outcome, String>;
}

/// The result of a request.
#[derive(Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The request was executed and committed.
    Executed,
    /// The server was too busy, and nothing was executed.
    Refused,
    /// The same for a request with an ID: it is sent again.
    Again,
}

/// The delay before a rejected request is sent again.
const RETRY_DELAY: Duration = Duration::from_millis(20);

/// The results of one connection: the executed requests, and the number of rejected ones.
struct Answered {
    latencies: Latencies,
    refused: u64,
}

/// The source of a connection's due times.
enum Loop {
    /// At once, until this time.
    Closed(Instant),
    /// When the next time is received.
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
    let sending = part.rate.map(|rate| tokio::spawn(dispatch(queues, rate, began, lasting)));
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

/// Sends each request to the next connection's queue when it is due. Returns the requests per second and the 99th percentile
/// of the lateness of this function, in microseconds.
async fn dispatch(
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
            break; // the connection reports the reason
        }
        arrived += 1;
    }
    let took = began.elapsed().max(lasting).as_secs_f64();
    (f64::from(arrived) / took, late.quantiles().map_or(0, |late| late.p99_us))
}

/// One connection: sends the due requests, one after another, until there will be no more.
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
            let unexpected = |answer| Failure(format!("POST {} was answered with {answer}", request.path));
            match kind.outcome(status, &body).map_err(unexpected)? {
                Outcome::Executed => answered.latencies.record_since(at),
                Outcome::Refused => answered.refused += 1,
                // The whole load has a time limit, so this loop ends.
                Outcome::Again => {
                    tokio::time::sleep(RETRY_DELAY).await;
                    continue;
                }
            }
            break;
        }
    }
    Ok(answered)
}
