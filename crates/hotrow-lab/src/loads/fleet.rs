//! Load by several processes of pgbench at the same time, each with its share of the clients and an address of its own.

use hotrow_bench::endpoint::Endpoint;
use hotrow_bench::load::{Answers, NoFigure, Part};
use hotrow_bench::pgbench::{Load, Pgbench};

/// The number of processes, and of the gateways that share their clients.
pub const FLEET: usize = 3;

/// Runs them to their end.
pub async fn run(pgbench: &Pgbench, endpoints: [&Endpoint; FLEET], part: &Part) -> Result<Answers, NoFigure> {
    let clients = |number: usize| (part.run.clients + number as u32) / FLEET as u32;
    let loads = [0, 1, 2].map(|number| Load::of(part, endpoints[number], clients(number)));
    let [first, second, third] = &loads;
    let (first, second, third) = tokio::join!(pgbench.run(first), pgbench.run(second), pgbench.run(third));
    let mut all = first?;
    for answers in [second?, third?] {
        all.acknowledged += answers.acknowledged;
        all.per_second += answers.per_second;
        all.latencies.add(&answers.latencies);
    }
    Ok(all)
}
