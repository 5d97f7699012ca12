//! What Hotrow offers over HTTP: the schema pack as JSON, health, metrics. Knows nothing of the gateway's inside; it is
//! handed a way to become its client, so that calls over HTTP are merged with everybody's.
//!
//! | to follow a request | read |
//! |---|---|
//! | a connection | `server`: limits, timeouts, both versions of HTTP, the graceful stop; `idle`: when it is closed |
//! | who may | `auth` |
//! | which call | `api`, then `counters`, `sales`, `reservations`, `feeds`, `queues`, `orders`, `takes`, `receipts`, `health` |
//! | what it says | `input`: names, bodies, idempotency keys; `seconds`, `time`, `document`: values in it |
//! | to the database | `clients`: sessions of the gateway that requests share; the statements are in `sql/` |
//! | the answer | `answer` for rows, `columns` for their values, `problem` for everything else |
//!
//! `page` shows people what is in the queues, by the same calls.
//!
//! The document for clients is `openapi.json`, beside this file.

mod answer;
mod api;
mod auth;
mod clients;
mod columns;
mod counters;
mod document;
mod feeds;
mod health;
mod idle;
mod input;
mod metrics;
mod orders;
mod page;
mod problem;
mod queues;
mod receipts;
mod reservations;
mod sales;
mod seconds;
mod server;
mod sqlstate;
mod takes;
mod time;

pub use api::{Upstream, router};
pub use auth::{TokenError, Tokens};
pub use clients::Connector;
pub use metrics::serve_metrics;
pub use server::{Bounds, serve};
