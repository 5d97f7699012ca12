//! A private MariaDB server for the demo, the benchmark and the tests: durable, with a binary log, started as an unprivileged user
//! on a free port, in a folder of its own. It ends with the program that has started it, whatever ends that program. Linux only.
//!
//! | file | contents |
//! |---|---|
//! | `binaries.rs` | the search for the server and for the SQL of its system tables |
//! | `error.rs` | why there is no server |
//! | `server.rs` | a running server, and its crashes |
//! | `guard.sh` | ends the server after its owner |

mod binaries;
mod error;
mod server;

pub use binaries::version;
pub use error::Error;
pub use server::{PASSWORD, PrivateMariaDb, USER};
