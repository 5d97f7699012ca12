//! Load over HTTP: commands on one counter that arrive at a constant rate, on connections that are kept, half of them to each
//! of two gateways; nothing of PostgreSQL.

mod connection;
mod gateways;

pub use gateways::Gateways;

use crate::arrivals::arrivals;
use crate::load::{Answers, Failure, Pace};
use crate::statistics::Latencies;
use connection::{Connection, Outcome};
use std::net::SocketAddr;
use std::time::{Duration, Instant};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::{JoinError, JoinSet};

/// What is to be sent.
#[derive(Debug)]
pub struct Load<'a> {
    /// Where the gateways serve HTTP; connections and requests take turns.
    pub addresses: &'a [SocketAddr],
    /// The counter that everybody wants.
    pub counter: &'a str,
    /// How many, of all gateways together.
    pub connections: u32,
    /// How long.
    pub seconds: u32,
    /// Requests a second.
    pub rate: u32,
    /// Whether all increment by one, and each answer must be the number of commands so far.
    pub checked: bool,
}

/// One command of so many is a drain.
const COMMANDS_PER_DRAIN: u32 = 1000;

/// One request that has become due.
#[derive(Debug, Clone, Copy)]
struct Due {
    at: Instant,
    drain: bool,
}

/// What one connection has to tell.
struct Answered {
    acknowledged: u64,
    refused: u64,
    latencies: Latencies,
}

/// Runs a load to its end. What goes wrong is a failure of this run only.
pub async fn run(load: &Load<'_>) -> Result<Answers, Failure> {
    const FOR_CONNECTING_AND_ENDING: Duration = Duration::from_secs(90);
    let patience = Duration::from_secs(load.seconds.into()) + FOR_CONNECTING_AND_ENDING;
    match tokio::time::timeout(patience, send_and_gather(load)).await {
        Ok(answers) => answers,
        Err(_) => Err(Failure(format!("HTTP requests had no answer {patience:?} after the load began"))),
    }
}

async fn send_and_gather(load: &Load<'_>) -> Result<Answers, Failure> {
    let mut queues = Vec::new();
    let mut connections = JoinSet::new();
    for address in load.addresses.iter().cycle().take(load.connections as usize) {
        let (sender, receiver) = unbounded_channel();
        let connection = Connection::open(*address, load.counter).await?;
        queues.push(sender);
        connections.spawn(answer_all(connection, receiver, load.checked));
    }
    let began = Instant::now();
    let lasting = Duration::from_secs(load.seconds.into());
    let sending = tokio::spawn(hand_out(queues, load.rate, load.checked, began, lasting));
    let (mut acknowledged, mut refused, mut latencies) = (0, 0, Latencies::new());
    while let Some(ended) = connections.join_next().await {
        let answered = unless_panicked(ended)?;
        acknowledged += answered.acknowledged;
        refused += answered.refused;
        latencies.add(&answered.latencies);
    }
    let per_second = acknowledged as f64 / began.elapsed().as_secs_f64();
    let (arrived_per_second, late_p99_us) = unless_panicked(sending.await);
    let pace = Some(Pace { arrived_per_second, late_p99_us, refused });
    Ok(Answers { acknowledged, beside: 0, per_second, latencies, pace })
}

/// Hands each request to the next connection's queue when it is due. How many in a second that were, and how late this itself
/// was for 99 in 100 of them, in microseconds.
async fn hand_out(
    queues: Vec<UnboundedSender<Due>>,
    rate: u32,
    checked: bool,
    began: Instant,
    lasting: Duration,
) -> (f64, u64) {
    let mut moments = arrivals(rate, began, began + lasting);
    let mut late = Latencies::new();
    let mut arrived = 0;
    for queue in queues.iter().cycle() {
        let Some(at) = moments.recv().await else { break };
        late.record(microseconds_since(at));
        let drain = !checked && fastrand::u32(..COMMANDS_PER_DRAIN) == 0;
        if queue.send(Due { at, drain }).is_err() {
            break; // that connection's own end says why
        }
        arrived += 1;
    }
    let took = began.elapsed().max(lasting).as_secs_f64();
    (f64::from(arrived) / took, late.quantiles().map_or(0, |late| late.p99_us))
}

/// One connection: sends what is in its queue, one request after the other, until nothing more will come.
async fn answer_all(
    mut connection: Connection,
    mut queue: UnboundedReceiver<Due>,
    checked: bool,
) -> Result<Answered, Failure> {
    let mut answered = Answered { acknowledged: 0, refused: 0, latencies: Latencies::new() };
    while let Some(due) = queue.recv().await {
        match connection.post(due.drain).await? {
            Outcome::CarriedOut { value, version } if checked && value != version => {
                return Err(Failure(format!("increment {version} by one was answered with {value}")));
            }
            Outcome::CarriedOut { .. } => {
                answered.latencies.record(microseconds_since(due.at));
                answered.acknowledged += 1;
            }
            Outcome::Refused => answered.refused += 1,
        }
    }
    Ok(answered)
}

fn microseconds_since(due: Instant) -> u64 {
    u64::try_from(due.elapsed().as_micros()).unwrap_or(u64::MAX)
}

fn unless_panicked<T>(ended: Result<T, JoinError>) -> T {
    ended.unwrap_or_else(|panicked| std::panic::resume_unwind(panicked.into_panic()))
}
