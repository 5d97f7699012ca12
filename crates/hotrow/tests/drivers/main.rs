//! Drivers and tools of other projects, and a client that sends messages that none of them sends: through the gateway
//! they must get the results of a direct connection. The modules contain the tests.
#![expect(clippy::unwrap_used, reason = "the lints' exception for tests stops at #[test]")]

mod after_errors;
mod blocks;
mod bulk;
mod copies;
mod frames;
mod lists;
mod names;
mod names_in_pipelines;
mod pgbench;
mod pipelines;
mod postgres_driver;
mod psql;
mod random_messages;
mod refusal_states;
mod refused;
mod resets;
mod stage;
mod transactions;
mod versions;

hotrow_testkit::shared_server!();
