//! Tests the benchmark in its quick size against real servers. They do not check the figures.

#![allow(clippy::unwrap_used, reason = "a test that cannot create its environment has failed")]

mod bench;
mod elsewhere;
mod figures;
mod like;
mod no_figure;
mod refused;
mod scenarios;

use hotrow_bench::{Args, run};
