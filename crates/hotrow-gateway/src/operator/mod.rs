//! What operators see and do: the admin console, pauses, and what the gateway would do with a statement.

pub mod console;
pub mod explain;
mod pause;
