//! The gateway in front of a MariaDB server: clients log in at the server through it, and each session has a
//! connection of its own, on which bytes are relayed. This is a preview: nothing is packed yet.
//!
//! | file | contents |
//! |---|---|
//! | `front.rs` | listeners, the number of clients, the stop |
//! | `upstream.rs` | the URL of the server |
//! | `log_in.rs` | the log-in of a client at the server |
//! | `own.rs` | the gateway's own log-in |
//! | `session/` | the relay of commands and replies after the log-in |
//! | `socket.rs` | whole packets on a socket |
//! | `refusal.rs` | the errors that the gateway itself sends |
//! | `limits.rs` | every bound |

mod front;
mod limits;
mod log_in;
mod own;
mod refusal;
mod session;
mod socket;
mod upstream;

pub use front::{Config, Front};
pub use upstream::{Upstream, UpstreamError};
