//! The gateway: PostgreSQL's protocol on both sides. This crate contains the tasks of sessions and lanes, and the I/O with clients.
//! Decisions are in `hotrow-core`, and connections to servers in `hotrow-connect`.
//!
//! | module | contents |
//! |---|---|
//! | `front` | a client connects: listeners, encryption, the startup packet, the login; the gateway's own periodic work |
//! | `authentication` | which users can connect, and how they prove their identity |
//! | `console` | the commands of the admin console, as texts and as values |
//! | `operator` | the admin console, pauses |
//! | `shared` | state that all clients share: the configuration, the pools, the sessions' handles |
//! | `session` | a client's messages: units go to lanes, other messages are passed through on a connection that the session holds |
//! | `pool` | clients that the server cannot tell apart: their lanes, the catalog's facts about their statements, waiting calls |
//! | `lane` | one connection with one queue: batches are written, units answered or given back. `lane::postgres` speaks the protocol |
//! | `lanes` | what other crates see of `lane` to run lanes of another kind of database |
//! | `mailbox` | a client's answers on their way to its socket: lanes and the session put them in |
//! | `statements` | the statements of a pool and the decisions about them |
//! | `server` | connections to the server that sessions hold, and the state of its databases and replicas |
//! | `hot_keys` | the keys with the most units |
//! | `net` | TLS for clients, the budget for messages, notifications of tasks |
//! | `config`, `metrics`, `traces` | the settings, the metrics, the spans of batches |

pub mod config;
pub mod console;
pub mod metrics;
pub mod traces;

mod authentication;
mod front;
mod hot_keys;
mod lane;
mod mailbox;
mod net;
mod operator;
mod pool;
mod server;
mod session;
mod shared;
mod statements;

/// The task of a lane, and what a kind of database provides for it: `lane/backend.rs`.
pub mod lanes {
    pub use crate::lane::task::*;
}

pub use authentication::Error as AuthenticationError;
pub use front::sockets::{InheritedSocket, Listener, OWN, Sockets};
pub use front::{Gateway, InternalClients, ListenError, StartError};
pub use net::peer::{Peer, TlsPeer};
pub use net::tls;
pub use operator::view;
pub use shared::requests::OperatorRequest;
