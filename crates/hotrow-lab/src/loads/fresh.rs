//! Load by fresh connections: each connects, makes one call and closes, through a gateway that was just started if the
//! technique uses one. The latency is that of the first answer after a restart.

use hotrow_bench::gateway::Gateway;
use hotrow_bench::load::{Answers, Failure, NoFigure, Part};
use hotrow_bench::scenario::Through;
use hotrow_bench::statistics::Latencies;
use hotrow_bench::testbed::Testbed;
use std::time::Instant;
use tokio_postgres::NoTls;

const CALL: &str = include_str!("../../sql/first_answer.sql");

/// Makes such calls, one after another, for the length of the part and at least once.
pub async fn run(testbed: &Testbed, part: &Part) -> Result<Answers, NoFigure> {
    let through = part.run.technique.through;
    let mut latencies = Latencies::new();
    let began = Instant::now();
    while latencies.count() == 0 || began.elapsed() < part.lasting() {
        let due = Instant::now();
        let gateway = match through {
            Through::Hotrow => {
                let (program, server) = (testbed.program()?, testbed.server());
                Some(Gateway::start(program, &testbed.upstream_url, server, &[]).await?)
            }
            _ => None,
        };
        call(&gateway.as_ref().map_or(testbed.server(), |gateway| &gateway.endpoint).config()).await?;
        latencies.record_since(due);
        if let Some(gateway) = gateway {
            gateway.child.stop().await?;
        }
    }
    Ok(Answers::since(began, latencies.count(), latencies))
}

/// Makes one call. Every command on the counter adds one, so its value must be the number of commands.
async fn call(config: &tokio_postgres::Config) -> Result<(), Failure> {
    let failed = |error: tokio_postgres::Error| Failure(format!("the call failed: {error}"));
    let (client, connection) = config.connect(NoTls).await.map_err(failed)?;
    let connection = tokio::spawn(connection);
    let row = client.query_one(CALL, &[]).await.map_err(failed)?;
    let (value, version): (i64, i64) = (row.get(0), row.get(1));
    drop(client);
    // The gateway can be stopped only after the connection is closed on both sides.
    let _ = connection.await;
    if value == version {
        Ok(())
    } else {
        Err(Failure(format!("the value after {version} increments by one is {value}")))
    }
}
