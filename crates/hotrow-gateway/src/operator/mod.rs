//! Operators' tools: the admin console, pauses, and `explain`.

pub mod console;
pub mod explain;
mod pause;
