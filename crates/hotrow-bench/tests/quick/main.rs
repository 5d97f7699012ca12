//! The benchmark in its quick size against real servers. No figure is judged here; the tests are in the modules.

#![allow(clippy::unwrap_used, reason = "a test whose surroundings can't be set up has failed")]

mod bench;
mod http;
mod no_figure;
mod peers;
mod refused;
mod scenarios;
