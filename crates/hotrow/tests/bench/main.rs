//! Programs of several processes around the gateway: an interrupted benchmark, and the payments' change stream. The
//! modules contain the tests.
#![expect(clippy::unwrap_used, reason = "the lints' exception for tests stops at #[test]")]

mod change_stream;
mod interrupted;

hotrow_testkit::shared_server!();
