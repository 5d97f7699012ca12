//! Operators' tools: the admin console, pauses, and the data that they show.

pub mod console;
mod pause;
pub mod view;
