//! Tests of the lane: scripts of events and actions, and a simulated server that can fail at every step. `same_as_postgres`
//! compares the server with a real one.

#![expect(clippy::unwrap_used, reason = "the lints' exception for tests stops at #[test]")]

mod backend;
mod blocking;
mod checker;
mod crashes;
mod doubt;
mod every_step;
mod failures;
mod faults;
mod gathering;
mod history;
mod holding;
mod limits;
mod merging;
mod model;
mod notation;
mod pace;
mod pausing;
mod planted;
mod random;
mod rest;
mod same_as_postgres;
mod schedule;
mod server;
mod sessions;
mod several;
mod shell;
mod slow;
mod tally;
mod waiting;
mod wire;
mod workload;
mod world;

hotrow_testkit::shared_server!();
