//! Statements that share lanes: with an outsider's locks, with slow statements, and against a serial order of direct
//! connections. The modules contain the tests.
#![expect(clippy::unwrap_used, reason = "the lints' exception for tests stops at #[test]")]

mod bulk;
mod heads;
mod novelty;
mod outsiders;
mod same_as_direct;
mod slow;

hotrow_testkit::shared_server!();
