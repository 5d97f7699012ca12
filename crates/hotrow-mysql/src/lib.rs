//! The gateway in front of a MariaDB server: clients log in at the server through it, and each session has a
//! connection of its own, on which bytes are relayed. Statements on one row by its key can be packed. This is a preview.
//!
//! | file | contents |
//! |---|---|
//! | `config.rs` | the settings |
//! | `front.rs` | listeners, the number of clients, the stop |
//! | `login.rs`, `logged_in.rs` | the login of a client at the server |
//! | `client_side.rs` | a client's socket |
//! | `session/` | the relay of commands and replies after the login |
//! | `packing/` | which statements are packed, and where they go |
//! | `lane/` | the server's side of a lane |
//! | `counting.rs` | what a session counts in the metrics |
//! | `crowd.rs` | whether enough statements are under way at once for batches |
//! | `pace.rs` | whether commits take so long that several lanes are faster |
//! | `expected.rs`, `server_side.rs` | the replies that a client expects, and its connection to the server |
//! | `refusal.rs` | the errors that the gateway itself sends |
//! | `limits.rs` | every bound |

mod client_side;
mod config;
mod counting;
mod crowd;
mod expected;
mod front;
mod lane;
mod limits;
mod logged_in;
mod login;
mod pace;
mod packing;
mod refusal;
mod server_side;
mod session;

pub use config::Config;
pub use front::{Front, Health};
pub use limits::PACK_FROM;
