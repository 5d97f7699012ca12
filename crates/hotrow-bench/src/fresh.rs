//! Load by fresh connections: each connects, makes one call and goes, through a gateway that was just started if through one;
//! what it times is a first answer after a restart.

use crate::error::Error;
use crate::load::{Answers, Failure};
use crate::plan::Plan;
use crate::run::Run;
use crate::scenario::Through;
use crate::statistics::Latencies;
use crate::testbed::Testbed;
use std::time::{Duration, Instant};
use tokio_postgres::NoTls;

const CALL: &str = include_str!("../sql/first_answer.sql");

/// Makes such calls, one after the other, for some seconds and at least once.
pub async fn run(
    plan: &Plan,
    testbed: &mut Testbed,
    run: Run,
    seconds: u32,
) -> Result<Result<Answers, Failure>, Error> {
    let through = run.technique.through;
    let mut latencies = Latencies::new();
    let mut acknowledged = 0;
    let began = Instant::now();
    while acknowledged == 0 || began.elapsed() < Duration::from_secs(seconds.into()) {
        let due = Instant::now();
        if through == Through::Hotrow {
            testbed.fresh_gateway(plan).await?;
        }
        let endpoint = match testbed.endpoint(through, run.clients) {
            Ok(endpoint) => endpoint,
            Err(reason) => return Ok(Err(Failure(reason))),
        };
        if let Err(failure) = call(&endpoint.config()).await {
            return Ok(Err(failure));
        }
        latencies.record(u64::try_from(due.elapsed().as_micros()).unwrap_or(u64::MAX));
        acknowledged += 1;
    }
    let per_second = acknowledged as f64 / began.elapsed().as_secs_f64();
    Ok(Ok(Answers { acknowledged, beside: 0, per_second, latencies, pace: None }))
}

/// One call. Every command on that counter adds one, so its value must be the number of commands.
async fn call(config: &tokio_postgres::Config) -> Result<(), Failure> {
    let failed = |error: tokio_postgres::Error| Failure(format!("the call failed: {error}"));
    let (client, connection) = config.connect(NoTls).await.map_err(failed)?;
    let connection = tokio::spawn(connection);
    let row = client.query_one(CALL, &[]).await.map_err(failed)?;
    let (value, version): (i64, i64) = (row.get(0), row.get(1));
    drop(client);
    // Only once it is closed on both sides may the gateway be stopped.
    let _ = connection.await;
    if value == version {
        Ok(())
    } else {
        Err(Failure(format!("the value after {version} increments by one was given as {value}")))
    }
}
