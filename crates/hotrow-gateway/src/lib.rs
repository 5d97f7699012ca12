//! The gateway: PostgreSQL's protocol on both sides. Everything that waits is here; what is decided, is decided in
//! `hotrow-core`.
//!
//! | to follow a request | read |
//! |---|---|
//! | a client connects | `gateway`, `handshake` |
//! | its messages | `session`: `simple` and `extended` make units, `submit` sends them to lanes |
//! | what may be packed | `pool` asks the catalogue, `statements` remembers |
//! | a lane | `lane`: `inbox`, `writer`, `replies`, `connect` around `hotrow_core::lane` |
//! | the answer | `unit` puts it together, `merged` where calls were merged, `mailbox` keeps the order |
//! | passed through | `session`: `hold`, `forward`, `relay`; `held` keeps the connections |

pub mod config;
pub mod explain;
pub mod metrics;

mod budget;
mod control;
mod gateway;
mod handshake;
mod held;
mod lane;
mod mailbox;
mod merged;
mod net;
mod pool;
mod session;
mod statements;
mod unit;
mod upstream;

pub use gateway::{Gateway, Inside, ListenError};
pub use net::Address;
