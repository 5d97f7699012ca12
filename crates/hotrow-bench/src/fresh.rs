//! Load by fresh connections: each connects, makes one call and closes, through a gateway that was just started if the
//! technique uses one. The latency is that of the first answer after a restart.

use crate::load::{Answers, Failure, NoFigure, Part};
use crate::plan::Plan;
use crate::scenario::Through;
use crate::statistics::Latencies;
use crate::testbed::Testbed;
use std::time::Instant;
use tokio_postgres::NoTls;

const CALL: &str = include_str!("../sql/first_answer.sql");

/// Makes such calls, one after another, for the length of the part and at least once.
pub async fn run(plan: &Plan, testbed: &mut Testbed, part: &Part) -> Result<Answers, NoFigure> {
    let through = part.run.technique.through;
    let mut latencies = Latencies::new();
    let began = Instant::now();
    while latencies.count() == 0 || began.elapsed() < part.lasting() {
        let due = Instant::now();
        if through == Through::Hotrow {
            testbed.fresh_gateway(plan).await?;
        }
        call(&testbed.endpoint(through, part.run.clients)?.config()).await?;
        latencies.record_since(due);
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
