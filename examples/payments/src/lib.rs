//! A payment service on PostgreSQL, as many are: about ten statements a payment, each committing by itself, on a plain
//! driver and a pool. It knows nothing of Hotrow the gateway; what it gains from it, it gains by changing its port.
//!
//! | to understand | read |
//! |---|---|
//! | what a payment may do | `machine`: pure |
//! | how it moves, and survives any crash | `flow`, with the statements in `sql/` |
//! | which gateway is asked | `routing` |
//! | what a gateway can do | `gateway` |
//! | requests and answers | `api`, `requests` for idempotency keys; `openapi.json` |
//! | what nobody waits for | `worker`; `notifications` for what dependent services are told |
//! | the gateways that the demo and the tests talk to | `simulated`: a program of its own |

mod api;
mod database;
mod flow;
mod gateway;
pub mod http;
mod ids;
mod machine;
mod money;
mod notifications;
mod records;
mod requests;
mod routing;
mod server;
mod settings;
pub mod signature;
pub mod simulated;
mod words;
mod worker;

pub mod program;
