//! What Hotrow offers over HTTP: the schema pack as JSON, health, metrics. Knows nothing of the gateway's inside; it is
//! handed a way to become its client, so that calls over HTTP are merged with everybody's.
//!
//! | to follow a request | read |
//! |---|---|
//! | a connection | `server`: limits, timeouts, both versions of HTTP, the graceful stop |
//! | who may | `auth` |
//! | which call | `api`, then `counters`, `sales`, `reservations`, `health` |
//! | what it says | `input`: names, bodies, idempotency keys |
//! | to the database | `clients`: sessions of the gateway that requests share; the statements are in `sql/` |
//! | the answer | `answer` for rows, `problem` for everything else |
//!
//! The document for clients is `openapi.json`, beside this file.

mod answer;
mod api;
mod auth;
mod clients;
mod counters;
mod feeds;
mod health;
mod hold;
mod input;
mod metrics;
mod problem;
mod reservations;
mod sales;
mod server;
mod sqlstate;

pub use api::{Upstream, router};
pub use auth::{TokenError, Tokens};
pub use clients::Connector;
pub use metrics::serve_metrics;
pub use server::{Bounds, serve};
