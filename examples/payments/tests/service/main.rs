//! Tests the service, its workers and the simulated payment gateways as child processes, each test on its own private
//! server. The tests check the answers to merchants, the books of the payment gateways, and the tables.

#![allow(clippy::unwrap_used, reason = "a test that cannot create its environment has failed")]

mod bad_input;
mod bench;
mod claims;
mod compare_and_set;
mod crashes;
mod dependents;
mod document;
mod events;
mod load;
mod program;
mod races;
mod requests;
mod schemathesis;
mod stage;
mod through_hotrow;
mod totals;
mod webhooks;
