//! Statements that share lanes: with an outsider's locks, with slow ones, and against a serial order of direct
//! connections. The tests are in the modules; here is only their list.
#![expect(clippy::unwrap_used, reason = "the lints' exception for tests stops at #[test]")]

mod outsiders;
mod same_as_direct;
mod slow;

hotrow_testkit::shared_server!();
