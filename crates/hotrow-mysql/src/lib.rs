//! The gateway in front of a MariaDB server: clients log in at the server through it, and each session has a
//! connection of its own, on which bytes are relayed. Statements on one row by its key can be packed. This is a preview.
//!
//! | file | contents |
//! |---|---|
//! | `config.rs` | the settings |
//! | `front.rs` | listeners, the number of clients, the stop |
//! | `upstream.rs` | the URL of the server |
//! | `log_in.rs` | the log-in of a client at the server |
//! | `own.rs` | the gateway's own log-in |
//! | `client.rs` | a connection of a program beside the gateway, such as the demo |
//! | `session/` | the relay of commands and replies after the log-in |
//! | `packing/` | which statements are packed, and where they go |
//! | `lane/` | the server's side of a lane |
//! | `counting.rs` | what a session counts in the metrics |
//! | `expected.rs`, `server_side.rs` | the replies that a client expects, and its connection to the server |
//! | `socket.rs` | whole packets on a socket |
//! | `refusal.rs` | the errors that the gateway itself sends |
//! | `limits.rs` | every bound |

mod client;
mod config;
mod counting;
mod expected;
mod front;
mod lane;
mod limits;
mod log_in;
mod own;
mod packing;
mod refusal;
mod server_side;
mod session;
mod socket;
mod upstream;

pub use client::{Client, INSTALL, Prepared, statements};
pub use config::Config;
pub use front::{Front, Health};
pub use own::OwnError;
pub use upstream::{Upstream, UpstreamError};
