//! Drivers and tools that others wrote, and a client that sends what none of them does: through the gateway they must
//! see what they see directly. What they do is in the modules; here is only their list.
#![expect(clippy::unwrap_used, reason = "the lints' exception for tests stops at #[test]")]

mod after_errors;
mod blocks;
mod copies;
mod frames;
mod names;
mod names_in_pipelines;
mod pgbench;
mod pipelines;
mod postgres_driver;
mod psql;
mod random_messages;
mod refused;
mod stage;
mod transactions;

hotrow_testkit::shared_server!();
