//! The hotrow schema as JSON over HTTP, health and metrics. The crate does not know the gateway's code: its caller passes a
//! function that connects a client to the gateway. Calls over HTTP are therefore merged with the calls of other clients.
//!
//! | to follow a request | read |
//! |---|---|
//! | a connection | `server`: limits, timeouts, both versions of HTTP, the graceful stop; `idle`: when it is closed; `bounds`: how long clients can take |
//! | access | `auth` |
//! | the route | `api`, `routes`; `health` for routes without a call of the hotrow schema |
//! | the call | `plain`, made from the function's manifest; or its handler, in the area's folder: `sales`, `feeds`, `queues` (and `queues/orders`, `queues/takes`, `queues/receipts`) |
//! | its input | `input`: names, bodies, idempotency keys; `body`: fields that become parameters; `seconds`, `time`, `document`: values in it |
//! | to the database | `clients`: sessions of the gateway that requests share; `calls`: the statements |
//! | the answer | `room`: memory for it; `answer` for rows, `columns` for their values, `problem` for all others, `sqlstate` for errors of the server |
//!
//! `page` is the operations page, for people. Its data are the calls of the API, and the stream `GET /live`: `live` keeps the
//! streams, `live/sampler` makes one event a second for all of them, and `live/history` computes rates. `metrics` has an address
//! of its own.
//!
//! `limits` has every bound. `openapi` puts the document for clients together, from the manifests and the schemas in each area's
//! `openapi.json`.

mod answer;
mod api;
mod auth;
mod body;
mod bounds;
mod calls;
mod clients;
mod columns;
mod document;
mod feeds;
mod health;
mod idle;
mod input;
pub mod limits;
mod live;
mod metrics;
mod openapi;
mod page;
mod plain;
mod problem;
mod queues;
mod room;
mod routes;
mod sales;
mod seconds;
mod server;
mod sqlstate;
mod time;

pub use api::router;
pub use auth::{TokenError, Tokens};
pub use bounds::Bounds;
pub use clients::{Connector, GatewayAccess};
pub use live::{Counters, Source, State};
pub use metrics::{Check, serve_metrics};
pub use openapi::document;
pub use server::serve;
