//! A second load beside one of pgbench, at the same address. It decides nothing about the first.

use crate::load::{Answers, Failure, NoFigure};
use crate::pgbench::{Load, Pgbench};
use crate::scenario::{Beside, SecondLoad, Text};
use crate::statements;

/// Runs both loads to their end.
pub async fn run(pgbench: &Pgbench, second: SecondLoad, load: &Load<'_>) -> Result<Answers, NoFigure> {
    let of_the_second = |failure: NoFigure| failure.of("the second load");
    let beside =
        |script| Load { script, clients: second.clients, rate: None, logged_part: 0.0, ..load.clone() };
    let part = load.part;
    match second.does {
        Beside::Work(script) | Beside::Nothing(script) => {
            let others = beside(script);
            let (answers, others) = tokio::join!(pgbench.run(load), pgbench.run(&others));
            let (others, answers) = (others.map_err(of_the_second)?, answers?);
            let works = matches!(second.does, Beside::Work(_));
            Ok(if works { Answers { beside: others.acknowledged, ..answers } } else { answers })
        }
        Beside::IdleInTransaction => {
            let mut idle = Vec::new();
            for _ in 0..second.clients {
                let client = load.endpoint.client().await.map_err(lost)?;
                client.batch_execute("begin; select").await.map_err(lost)?;
                idle.push(client);
            }
            let answers = pgbench.run(load).await?;
            for client in idle {
                client.batch_execute("commit").await.map_err(lost)?;
            }
            Ok(answers)
        }
        Beside::NewShapes { per_second } => {
            let clients = statements::Clients::connect(load.endpoint, second.clients, part.rows).await?;
            let others = clients.send(Text::NewShape, Some(per_second), part.lasting());
            let (answers, others) = tokio::join!(pgbench.run(load), others);
            let others = others.map_err(|failure| of_the_second(failure.into()))?;
            Ok(Answers { beside: others.acknowledged, ..answers? })
        }
    }
}

fn lost(error: tokio_postgres::Error) -> Failure {
    Failure(format!("a transaction of the second load did not stay open: {error}"))
}
