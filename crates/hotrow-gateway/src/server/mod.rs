//! Connections to the server: hosts, the log-in, and connections for sessions.

pub mod connect;
pub mod database;
pub mod driver;
pub mod held;
pub mod login;
pub mod pack;
pub mod permits;
pub mod problems;
pub mod replica;
pub mod rows;
pub mod upstream;
