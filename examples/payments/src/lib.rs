//! A payment service on PostgreSQL, written like many others: about ten statements per payment, each with its own commit,
//! on a plain driver and a pool. It does not depend on Hotrow. To use Hotrow, only the port of its database URL changes.
//!
//! | to understand | read |
//! |---|---|
//! | the steps that a payment can take | `machine`: pure |
//! | how a payment moves, and survives any crash | `flow`, with the statements in `sql/` |
//! | the choice of a payment gateway | `routing` |
//! | requests to a payment gateway, and its answers | `gateway` |
//! | requests and answers | `api`, `requests` for idempotency keys; `openapi.json` |
//! | work in the background | `worker`; `notifications` for messages to dependent services |
//! | the payment gateways of the demo and the tests | `simulated`: a program of its own |

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
