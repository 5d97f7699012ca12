//! The benchmark of `hotrow bench`: the map of its files and its entry point. It measures and checks no bounds.
//!
//! Goals: one run on one machine compares Hotrow with other techniques, on the same server with the same durability. pgbench
//! makes the load wherever it can. Each run is compared with the rows before it counts. Machine, settings and date are in the
//! report. The crate `hotrow-lab` measures more scenarios with the same code. These are no goals: absolute records, regression gates, and clients faster than pgbench.
//!
//! | file | contents |
//! |---|---|
//! | `args.rs`, `menu.rs`, `plan.rs` | the command line, the choice of scenarios, and the plan made from them |
//! | `scenario.rs`, `scenarios.rs`, `scenarios/`, `sql/` | the scenarios, all of one shape |
//! | `like.rs`, `like/` | a scenario like the load in a report of the doctor |
//! | `benchmark.rs` | one benchmark from beginning to end |
//! | `testbed.rs`, `testbed/` | everything that runs need, and what a crate implements that adds loads to them, with these parts: |
//! | `server.rs`, `control.rs`, `endpoint.rs` | the server, connections to it, and addresses |
//! | `standby.rs` | a synchronous standby |
//! | `gateway.rs`, `child.rs`, `files.rs` | the gateway in front of the server, child processes, and their files |
//! | `http.rs` | one connection over HTTP |
//! | `load.rs`, `pgbench.rs`, `programs.rs` | the parameters and results of a load, pgbench, and the search for programs |
//! | `workers.rs`, `statements.rs` | load that pgbench cannot make |
//! | `second_load.rs` | load beside that of pgbench |
//! | `doctor.rs`, `doctor_report.rs` | the doctor beside a run, and its report |
//! | `cost.rs`, `watch.rs` | the cost of a load for the server, and the waits of its sessions |
//! | `arrivals.rs` | due times of the requests of an open loop |
//! | `rounds.rs`, `gathering.rs`, `measure.rs`, `verdict.rs` | the order of runs, their figures, one run, its check |
//! | `gains.rs`, `novelty.rs` | predicted gains beside measured ones, and the cost of new traffic |
//! | `statistics.rs`, `machine.rs`, `flush.rs` | arithmetic, and the machine |
//! | `error.rs` | the reasons why there is no report |
//! | `results.rs`, `report.rs`, `progress.rs` | the report, how it is written, and the progress display |

mod args;
pub mod arrivals;
mod benchmark;
pub mod child;
mod control;
mod cost;
mod doctor;
mod doctor_report;
pub mod endpoint;
pub mod error;
pub mod files;
mod flush;
mod gains;
pub mod gateway;
mod gathering;
pub mod http;
mod like;
pub mod load;
pub mod machine;
mod measure;
pub mod menu;
mod novelty;
pub mod pgbench;
mod plan;
pub mod programs;
mod progress;
pub mod report;
mod results;
mod rounds;
pub mod scenario;
pub mod scenarios;
mod second_load;
mod server;
mod standby;
mod statements;
pub mod statistics;
pub mod testbed;
pub mod verdict;
pub mod watch;
mod workers;

pub use args::{Args, MENU, Options};
pub use benchmark::Outcome;
pub use error::Error;
use menu::Choice;
use testbed::OtherLoads;

/// Runs `hotrow bench` and writes its report. Blocks, and must be called outside of an asynchronous runtime.
///
/// Progress goes to standard error. The outcome has the report's text.
pub fn run(args: Args) -> Result<Outcome, Error> {
    let choice = match (&args.like, args.scenario) {
        (Some(report), _) => Choice { name: "like".into(), scenarios: vec![like::scenario(report)?] },
        (None, Some(choice)) => choice,
        (None, None) => Choice { name: "none".into(), scenarios: Vec::new() }, // the command line does not allow it
    };
    run_choice(choice, args.options, None)
}

/// The same for scenarios of another crate, with the loads that only that crate makes.
pub fn run_choice(
    choice: Choice,
    options: Options,
    others: Option<Box<dyn OtherLoads>>,
) -> Result<Outcome, Error> {
    let plan = plan::Plan::resolve(choice, options)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(Error::system("start a runtime"))?.block_on(benchmark::run(plan, others))
}
