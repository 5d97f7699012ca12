//! Load by connections: each client connects, logs in and disconnects, again and again, as an application without a pool
//! does.

use hotrow_bench::endpoint::Endpoint;
use hotrow_bench::load::{Answers, Failure, Part, joined};
use hotrow_bench::statistics::Latencies;
use std::time::Instant;
use tokio::task::JoinSet;
use tokio_postgres::NoTls;

/// Lets all clients connect and disconnect until the end of the part.
pub async fn run(endpoint: &Endpoint, part: &Part) -> Result<Answers, Failure> {
    let began = Instant::now();
    let mut tasks = JoinSet::new();
    for _ in 0..part.run.clients {
        tasks.spawn(logins(endpoint.config(), began + part.lasting()));
    }
    let mut latencies = Latencies::new();
    while let Some(logins) = tasks.join_next().await {
        latencies.add(&joined(logins)?);
    }
    Ok(Answers::since(began, latencies.count(), latencies))
}

/// The time of each login of one client.
async fn logins(config: tokio_postgres::Config, end: Instant) -> Result<Latencies, Failure> {
    let mut logins = Latencies::new();
    while Instant::now() < end {
        let began = Instant::now();
        let connected = config.connect(NoTls).await;
        let (client, connection) =
            connected.map_err(|error| Failure(format!("a client could not log in: {error}")))?;
        logins.record_since(began);
        drop(client);
        // Sends Terminate and waits until the other side has closed the connection: the cost of closing counts for the next
        // login.
        let _ = connection.await;
    }
    Ok(logins)
}
