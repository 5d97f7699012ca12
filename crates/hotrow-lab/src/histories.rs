//! Histories: clients make random transactions, directly and through gateways that fail, and a checker searches their answers for
//! anomalies that the isolation levels forbid.
//!
//! | file | contents |
//! |---|---|
//! | `history.rs` | a history as plain data |
//! | `check.rs`, `check/` | the checker |

mod check;
mod history;

#[cfg(test)]
mod tests;
