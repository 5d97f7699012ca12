//! The real programs around the gateway: the benchmark of the payment service, a benchmark that is interrupted, and the
//! payments' change stream. The tests are in the modules; here is only their list.
#![expect(clippy::unwrap_used, reason = "the lints' exception for tests stops at #[test]")]

mod change_stream;
mod interrupted;
mod payments;

hotrow_testkit::shared_server!();
