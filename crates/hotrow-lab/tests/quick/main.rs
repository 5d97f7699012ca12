//! Tests the scenarios of the laboratory in their quick size against real servers. They do not check the figures.

#![allow(clippy::unwrap_used, reason = "a test that cannot create its environment has failed")]

#[path = "../../../hotrow-bench/tests/quick/bench.rs"]
mod bench;
#[path = "../../../hotrow-bench/tests/quick/figures.rs"]
mod figures;
mod http;
mod no_figure;
mod peers;
mod scenarios;

use hotrow_bench::{Error, Outcome};
use hotrow_lab::Args;

/// Runs a benchmark. A test that starts no gateway names none, and there is none beside this program.
fn run(mut args: Args) -> Result<Outcome, Error> {
    args.options.gateway_program.get_or_insert_with(|| std::env::current_exe().unwrap());
    hotrow_lab::run(args)
}
