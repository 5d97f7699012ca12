//! The benchmark of `hotrow bench`: the map of its files and its entry point. It measures and checks no bounds.
//!
//! Goals: one run on one machine compares Hotrow with other techniques, on the same server with the same durability. pgbench
//! makes the load wherever it can. Each run is compared with the rows before it counts. Machine, settings and date are in the
//! report. These are no goals: absolute records, regression gates, and clients faster than pgbench.
//!
//! | file | contents |
//! |---|---|
//! | `args.rs`, `plan.rs` | the command line, and the plan made from it |
//! | `scenario.rs`, `scenarios.rs`, `scenarios/`, `sql/` | the scenarios, all of one shape |
//! | `like.rs`, `like/` | a scenario like the load in a report of the doctor |
//! | `benchmark.rs` | one benchmark from beginning to end |
//! | `testbed.rs` | everything that runs need, with these parts: |
//! | `server.rs`, `control.rs`, `endpoint.rs` | the server, connections to it, and addresses |
//! | `standby.rs` | a synchronous standby |
//! | `gateway.rs`, `pgbouncer.rs`, `child.rs`, `files.rs` | programs in front of the server, and files for programs |
//! | `load.rs`, `pgbench.rs`, `programs.rs` | the parameters and results of a load, pgbench, and the search for programs |
//! | `applications.rs`, `workers.rs`, `redis.rs`, `fresh.rs`, `connections.rs`, `statements.rs`, `http.rs` | load that pgbench cannot make |
//! | `second_load.rs` | load beside that of pgbench |
//! | `peers.rs`, `peers/` | queues of other projects |
//! | `payments.rs`, `payment_books.rs`, `change_stream.rs` | the payment service of the examples, the books of its payment gateways, and the reader of its change stream |
//! | `doctor.rs`, `doctor_report.rs` | the doctor beside a run, and its report |
//! | `watch.rs` | the cost of a load for the server, and the waits of its sessions |
//! | `arrivals.rs` | due times of the requests of an open loop |
//! | `rounds.rs`, `gathering.rs`, `measure.rs`, `verdict.rs` | the order of runs, their figures, one run, its check |
//! | `gains.rs`, `novelty.rs` | predicted gains beside measured ones, and the cost of new traffic |
//! | `statistics.rs`, `machine.rs`, `flush.rs` | arithmetic, and the machine |
//! | `error.rs` | the reasons why there is no report |
//! | `results.rs`, `report.rs`, `progress.rs` | the report, how it is written, and the progress display |

mod applications;
mod args;
mod arrivals;
mod benchmark;
mod change_stream;
mod child;
mod connections;
mod control;
mod doctor;
mod doctor_report;
mod endpoint;
mod error;
mod files;
mod flush;
mod fresh;
mod gains;
mod gateway;
mod gathering;
mod http;
mod like;
mod load;
mod machine;
mod measure;
mod novelty;
mod payment_books;
mod payments;
mod peers;
mod pgbench;
mod pgbouncer;
mod plan;
mod programs;
mod progress;
mod redis;
pub mod report;
mod results;
mod rounds;
mod scenario;
mod scenarios;
mod second_load;
mod server;
mod standby;
mod statements;
mod statistics;
mod testbed;
mod verdict;
mod watch;
mod workers;

pub use args::{Args, Choice};
pub use benchmark::Outcome;
pub use error::Error;

/// Runs a benchmark and writes its report. Blocks, and must be called outside of an asynchronous runtime.
///
/// Progress goes to standard error. The outcome has the report's text.
pub fn run(args: Args) -> Result<Outcome, Error> {
    let plan = plan::Plan::resolve(args)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(Error::system("start a runtime"))?.block_on(benchmark::run(plan))
}
