//! Connections to the server for sessions, and the state of its databases and replicas.

pub mod database;
pub mod held;
pub mod permits;
pub mod problems;
pub mod replica;
pub mod rows;
