//! Load by connections: each client connects, logs in and leaves, again and again, as an application without a pool does.

use crate::endpoint::Endpoint;
use crate::load::{Answers, Failure, Part, joined};
use crate::statistics::Latencies;
use std::time::Instant;
use tokio::task::JoinSet;
use tokio_postgres::NoTls;

/// Lets all clients connect and leave until the end of the part.
pub async fn run(endpoint: &Endpoint, part: &Part) -> Result<Answers, Failure> {
    let began = Instant::now();
    let mut crowd = JoinSet::new();
    for _ in 0..part.run.clients {
        crowd.spawn(visits(endpoint.config(), began + part.lasting()));
    }
    let mut latencies = Latencies::new();
    let mut acknowledged = 0;
    while let Some(visits) = crowd.join_next().await {
        let visits = joined(visits)?;
        acknowledged += visits.len() as u64;
        visits.into_iter().for_each(|microseconds| latencies.record(microseconds));
    }
    Ok(Answers::since(began, acknowledged, latencies))
}

/// How long each of one client's visits took, in microseconds, until it was let in.
async fn visits(config: tokio_postgres::Config, end: Instant) -> Result<Vec<u64>, Failure> {
    let mut visits = Vec::new();
    while Instant::now() < end {
        let began = Instant::now();
        let connected = config.connect(NoTls).await;
        let (client, connection) =
            connected.map_err(|error| Failure(format!("a client could not log in: {error}")))?;
        visits.push(u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX));
        drop(client);
        // Says goodbye, and waits until the other side has closed: what it costs to let go belongs to the next visit.
        let _ = connection.await;
    }
    Ok(visits)
}
