//! The decisions of the gateway about PostgreSQL's protocol and SQL: how a statement is classified, for which row it contends,
//! what happens with each message, and every bound. Lanes decide in `hotrow_lane`. No I/O, no clock, no threads: the caller
//! passes in everything that a decision needs.
//!
//! | module | what lives there |
//! |---|---|
//! | `admission` | whether a client can join an open pool |
//! | `capacity` | whether a server accepts as many connections as the gateway can open |
//! | `classify` | whether a statement can be packed, with which key, and why |
//! | `distribution` | the shard and the node of a row of a distributed table |
//! | `expect` | replies that the server owes on a held connection, and the meaning of statement names |
//! | `key` | how a statement's key is computed from its parameters |
//! | `limits` | every bound |
//! | `normalise` | the shape of a statement: its text with parameters for literals |
//! | `notifications` | the sessions that share one listening connection |
//! | `pack_mode` | whether units are packed, passed through, or passed through and counted |
//! | `pages` | the addresses of the documentation's pages: the macro `page!` |
//! | `primary` | which host may serve as the primary, by timelines |
//! | `replica` | which replica a session reads from, and what it must have replayed |
//! | `reports` | when the log reports something that happens often |
//! | `session` | what happens with each message of a client and of its server |
//! | `settings` | the settings that clients have changed in their sessions |
//! | `traceparent` | the client's span that a statement belongs to |
//! | `unit` | one client's transaction: its messages for the lane and its reply |
//! | `untrusted` | texts of servers and clients in terminals, logs and suggested commands |
//! | `witness` | the outcome of a transaction in doubt |

pub mod admission;
pub mod capacity;
pub mod classify;
pub mod distribution;
pub mod expect;
pub mod key;
pub mod limits;
pub mod normalise;
pub mod notifications;
pub mod pack_mode;
mod pages;
pub mod primary;
pub mod replica;
pub mod reports;
pub mod session;
pub mod settings;
pub mod traceparent;
pub mod unit;
pub mod untrusted;
pub mod witness;

#[cfg(test)]
hotrow_testkit::shared_server!();
