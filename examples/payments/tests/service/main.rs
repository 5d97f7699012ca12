//! The service, its workers and the simulated payment gateways as child processes, on a private server of each test's
//! own. What is asserted is what a merchant, a payment gateway's book and the tables say.

#![allow(clippy::unwrap_used, reason = "what can't be had is the failure to report")]

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
