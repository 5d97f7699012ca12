//! Tests the hotrow schema on a real server: answers, refusals and locks of its functions, and its installation. Tests with many
//! concurrent clients are in the crate `hotrow`.

#![expect(clippy::unwrap_used, reason = "the lints' exception for tests covers only functions with #[test]")]

mod counter_plans;
mod counters;
mod due_work;
mod feed_maintenance;
mod feed_plans;
mod feeds;
mod golden;
mod install;
mod locks;
mod log;
mod maintenance;
mod marks;
mod pack_rules;
mod plans;
mod queue_limits;
mod queue_plans;
mod queues;
mod requests;
mod rules;
mod sale_plans;
mod sales;
mod script;
mod server;
mod strangers;
mod waits;
