//! A private MariaDB server for tests: durable, started as an unprivileged user on a free port, in a folder of its own. It ends
//! with the program that has started it, whatever ends that program. Linux only. A failure to start is a panic, because only
//! tests use it.
//!
//! | file | contents |
//! |---|---|
//! | `binaries.rs` | the search for the server and for the SQL of its system tables |
//! | `server.rs` | a running server, and its crashes |
//! | `guard.sh` | ends the server after its owner |

mod binaries;
mod server;

pub use server::{PASSWORD, PrivateMariaDb, USER};
