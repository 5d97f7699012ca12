//! Operators' tools: the admin console, pauses, `explain`, and the data that they show.

pub mod console;
pub mod explain;
mod pause;
pub mod view;
