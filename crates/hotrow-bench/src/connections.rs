//! Load by connections: each client connects, logs in and leaves, again and again, as an application without a pool does.

use crate::endpoint::Endpoint;
use crate::load::{Answers, Failure};
use crate::statistics::Latencies;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;
use tokio_postgres::NoTls;

/// Lets so many clients come and go for some seconds.
pub async fn run(endpoint: &Endpoint, clients: u32, seconds: u32) -> Result<Answers, Failure> {
    let began = Instant::now();
    let end = began + Duration::from_secs(seconds.into());
    let mut crowd = JoinSet::new();
    for _ in 0..clients {
        crowd.spawn(visits(endpoint.config(), end));
    }
    let mut latencies = Latencies::new();
    let mut acknowledged = 0;
    while let Some(visits) = crowd.join_next().await {
        let visits = visits.map_err(|error| Failure(format!("a client failed: {error}")))??;
        acknowledged += visits.len() as u64;
        visits.into_iter().for_each(|microseconds| latencies.record(microseconds));
    }
    let per_second = acknowledged as f64 / began.elapsed().as_secs_f64();
    Ok(Answers { acknowledged, beside: 0, per_second, latencies, pace: None })
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
