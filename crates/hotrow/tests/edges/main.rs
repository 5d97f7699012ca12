//! What surrounds the statements of ordinary clients: bad input and exhausted resources, several servers, TLS, and programs of
//! several processes. Most of these tests wait, so they are in one binary, where others run meanwhile.

mod bad_input;
mod bench;
mod servers;
mod tls;

hotrow_testkit::shared_server!();
