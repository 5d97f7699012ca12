//! Programs of several processes around the gateway: a benchmark that is interrupted, and the payments' change stream. The
//! tests are in the modules; here is only their list.
#![expect(clippy::unwrap_used, reason = "the lints' exception for tests stops at #[test]")]

mod change_stream;
mod interrupted;

hotrow_testkit::shared_server!();
