//! The gateway: PostgreSQL's protocol on both sides. Everything that waits is here; what is decided, is decided in
//! `hotrow-core`.
//!
//! | room | what lives there |
//! |---|---|
//! | `front` | a client connects: listeners, encryption, the start-up packet, the log-in; what the gateway does of its own accord |
//! | `authentication` | which users can connect, and how they prove it |
//! | `operator` | the admin console, pauses, `explain` |
//! | `shared` | what all clients share: the configuration, the pools, the sessions' handles |
//! | `session` | a client's messages: units go to lanes, everything else is passed through on a connection that the session holds |
//! | `pool` | clients that the server can't tell apart: their lanes, what the catalogue says of their statements, waiting calls |
//! | `lane` | one connection with one queue: batches are written, answers go to mailboxes |
//! | `statements` | the statements of a pool and what is known of them |
//! | `server` | connections to the server: hosts, log-in, connections that are kept |
//! | `net` | sockets, TLS, the budget for messages, wake-ups |
//! | `config`, `metrics`, `lock` | the settings, the figures, a mutex |

pub mod config;
pub mod metrics;

mod authentication;
mod front;
mod lane;
mod lock;
mod net;
mod operator;
mod pool;
mod server;
mod session;
mod shared;
mod statements;

pub use authentication::Error as AuthenticationError;
pub use front::sockets::{InheritedSocket, Listener, OWN, Sockets};
pub use front::{Gateway, InternalClients, ListenError, StartError};
pub use net::peer::{Peer, TlsPeer};
pub use net::{Address, tls};
pub use operator::explain;
pub use server::driver;
pub use server::pack::PACK_TRUSTED;
pub use shared::requests::OperatorRequest;
