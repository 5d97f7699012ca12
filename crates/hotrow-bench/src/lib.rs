//! The benchmark behind `hotrow bench`: the map of its files and the one way in. It measures; it never judges a bound.
//!
//! Goals: one run on one machine sets Hotrow beside what people do today, on the same server with the same durability; load
//! comes from pgbench wherever pgbench can make it; each run is checked against the rows before it counts; machine, settings
//! and date stay with the figures. No goals: absolute records, regression gates, and clients faster than pgbench.
//!
//! | file | holds |
//! |---|---|
//! | `args.rs`, `plan.rs` | what was typed, and what that means |
//! | `scenario.rs`, `scenarios/`, `sql/` | what can be shown: one file per scenario, all of one shape |
//! | `benchmark.rs` | one benchmark from beginning to end |
//! | `testbed.rs` | what runs are made on, of which: |
//! | `server.rs`, `control.rs`, `endpoint.rs` | the server, the connection to it, and addresses |
//! | `slow_flush.rs` | how its flushes are held up |
//! | `pack.rs`, `snapshot.rs` | the schema pack, and a held snapshot, for the scenarios that need them |
//! | `gateway.rs`, `certificate.rs`, `pgbouncer.rs`, `child.rs` | programs that are started before the server, and what a gateway speaks TLS with |
//! | `load.rs`, `pgbench.rs`, `programs.rs` | the load, and where programs are looked for |
//! | `applications.rs`, `workers.rs`, `redis.rs`, `fresh.rs`, `connections.rs`, `http.rs` | load of other kinds, which pgbench can't make |
//! | `peers.rs`, `peers/` | queues that others wrote |
//! | `payments.rs`, `payment_books.rs`, `change_stream.rs` | the payment service of the examples, the books of its payment gateways, and whoever reads its change stream |
//! | `watch.rs` | what a load costs the server, and what its sessions wait for |
//! | `arrivals.rs` | when the requests of an open loop are due |
//! | `rounds.rs`, `gathering.rs`, `measure.rs`, `verdict.rs` | the order of runs, their figures, one run, its check |
//! | `statistics.rs`, `machine.rs`, `flush.rs` | arithmetic, and what it all ran on |
//! | `results.rs`, `report.rs`, `progress.rs` | what is reported, how it is written, and what is seen meanwhile |

mod applications;
mod args;
mod arrivals;
mod benchmark;
mod certificate;
mod change_stream;
mod child;
mod connections;
mod control;
mod endpoint;
mod error;
mod flush;
mod fresh;
mod gateway;
mod gathering;
mod http;
mod load;
mod machine;
mod measure;
mod pack;
mod payment_books;
mod payments;
mod peers;
mod pgbench;
mod pgbouncer;
mod plan;
mod programs;
mod progress;
mod redis;
mod report;
mod results;
mod rounds;
mod run;
mod scenario;
mod scenarios;
mod server;
mod slow_flush;
mod snapshot;
mod statistics;
mod testbed;
mod verdict;
mod watch;
mod workers;

pub use args::{Args, Choice};
pub use benchmark::Outcome;
pub use error::Error;
pub use slow_flush::SlowFlush;

/// Runs a benchmark and writes its report. Blocks, so it must be called outside of an asynchronous runtime.
///
/// Progress goes to standard error; whoever calls decides what becomes of the report's text in the outcome.
pub fn run(args: Args) -> Result<Outcome, Error> {
    let plan = plan::Plan::resolve(args)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|source| Error::System { what: "start a runtime", source })?;
    runtime.block_on(benchmark::run(plan))
}
