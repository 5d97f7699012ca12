//! The schema pack against a real server: what its functions answer, refuse and lock, and how it is installed. Never
//! many clients at once: that is the program's own tests.

#![expect(clippy::unwrap_used, reason = "the lints' exception for tests stops at #[test]")]

mod counter_plans;
mod counters;
mod due_work;
mod feed_plans;
mod feed_upkeep;
mod feeds;
mod golden;
mod install;
mod locks;
mod log;
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
mod upkeep;
