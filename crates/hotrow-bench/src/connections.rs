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
    while let Some(visits) = crowd.join_next().await {
        latencies.add(&joined(visits)?);
    }
    Ok(Answers::since(began, latencies.count(), latencies))
}

/// How long each of one client's visits took until it was let in.
async fn visits(config: tokio_postgres::Config, end: Instant) -> Result<Latencies, Failure> {
    let mut visits = Latencies::new();
    while Instant::now() < end {
        let began = Instant::now();
        let connected = config.connect(NoTls).await;
        let (client, connection) =
            connected.map_err(|error| Failure(format!("a client could not log in: {error}")))?;
        visits.record_since(began);
        drop(client);
        // Says goodbye, and waits until the other side has closed: what it costs to let go belongs to the next visit.
        let _ = connection.await;
    }
    Ok(visits)
}
