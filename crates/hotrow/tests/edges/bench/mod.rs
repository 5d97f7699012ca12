//! Programs of several processes around the gateway: an interrupted benchmark, a load like that of a doctor's report, new
//! traffic, and the payments' change stream. The modules contain the tests.
#![expect(clippy::unwrap_used, reason = "the lints' exception for tests stops at #[test]")]

mod change_stream;
mod interrupted;
mod like;
mod novelty;
