//! A client of a MariaDB server, for the gateway's own connections and for programs beside the gateway, such as the demo and the
//! doctor.
//!
//! | file | contents |
//! |---|---|
//! | `client.rs` | a connection of a program beside the gateway |
//! | `own.rs` | the login at the server by `mysql_native_password`, and the rows of a query |
//! | `socket.rs` | whole packets on a socket |
//! | `upstream.rs` | the URL of the server |
//! | `sql/install.sql` | what packing needs at the server |

mod client;
pub mod own;
pub mod socket;
mod upstream;

pub use client::{Client, INSTALL, Prepared, statements};
pub use own::OwnError;
pub use socket::Socket;
pub use upstream::{Upstream, UpstreamError};
