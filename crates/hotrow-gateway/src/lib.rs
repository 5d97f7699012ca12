//! The gateway: PostgreSQL's protocol on both sides. Everything that waits is here; what is decided, is decided in
//! `hotrow-core`.
//!
//! | to follow a request | read |
//! |---|---|
//! | a client connects | `gateway`, `opening` (encryption), `start_up` (what it asks for), `handshake`; who it is: `authentication`; whether the server lets its user in: `log_ins` |
//! | its messages | `session`: `simple` and `extended` make units, `submit` sends them to lanes |
//! | what may be packed | `catalogue` asks the server, `statements` remembers |
//! | a lane | `lane`: `inbox`, `writer`, `replies`, `connect` around `hotrow_core::lane` |
//! | the answer | `unit` puts it together, `merged` where calls were merged, `mailbox` keeps the order |
//! | the admin console | `console`; `gates` pause, `orders` go to the program |
//! | what the schema pack needs now and then | `upkeep`; whether it is trusted: `pack` |
//! | passed through | `session`: `hold`, `forward`, `relay`; `held` keeps the connections, `login` what opens them |

pub mod config;
pub mod driver;
pub mod explain;
pub mod metrics;
pub mod tls;

mod authentication;
mod budget;
mod catalogue;
mod conninfo;
mod console;
mod control;
mod counts;
mod doing;
mod gate;
mod gates;
mod gateway;
mod handshake;
mod held;
mod hosts;
mod lane;
mod log_ins;
mod login;
mod mailbox;
mod merged;
mod net;
mod opening;
mod orders;
mod pack;
mod peer;
mod places;
mod pool;
mod pools;
mod session;
mod sockets;
mod start_up;
mod statements;
mod stop;
mod unit;
mod upkeep;
mod upstream;
mod waiting;
mod wake;

pub use authentication::Error as AuthenticationError;
pub use gateway::{Gateway, Inside, ListenError, StartError};
pub use net::Address;
pub use orders::Order;
pub use pack::PACK_TRUSTED;
pub use peer::{Peer, TlsPeer};
pub use sockets::{Heirloom, Listener, OWN, Sockets};
