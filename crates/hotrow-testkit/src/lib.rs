//! Support code of the integration tests: servers, gateways, clients and faults. It does not assert properties of
//! the gateway. Code that only one test binary uses is in that binary.
//!
//! | file | contents |
//! |---|---|
//! | `program.rs` | the paths of this workspace's programs |
//! | `server.rs` | the private server that all tests of a binary share, and other tools in its folder |
//! | `cluster.rs` | clusters of Citus, each kind made once and copied for each test |
//! | `gateway.rs` | a gateway as a child process |
//! | `connect.rs` | connections by tokio-postgres, queries as text, waiting for a condition |
//! | `seed.rs` | the seeds of random tests |
//! | `raw.rs` | an asynchronous client that sends any bytes and reads frames |
//! | `line.rs` | a blocking client for tests that use one thread per session, waiting for a condition there |
//! | `pages.rs` | texts of the program as the pages in `docs` show them |
//! | `proxy.rs` | a TCP proxy that breaks connections at a chosen byte |
#![expect(clippy::unwrap_used, reason = "all of this is test code, where a failure is the report")]

mod cluster;
mod connect;
mod gateway;
pub mod line;
mod pages;
mod program;
pub mod proxy;
pub mod raw;
mod seed;
mod server;

pub use cluster::{Original, OwnCluster, citus};
pub use connect::{
    PATIENCE, config, config_in, connect, describe, new_database, new_schema, rows, sqlstate, try_connect,
    until, until_it_blocks, value,
};
pub use gateway::{Gateway, PATIENT_LANES, patient};
pub use hotrow_postgres::{ReservedPort, free_port};
pub use pages::linked;
pub use program::{hotrow, program};
pub use seed::{first_seed, programs, seed, seeds};
pub use server::{
    Server, distribute, has_extension, mariadb, migrate, needed_tool, not_run, own_shared_server, pg_dump,
    server, tool,
};
