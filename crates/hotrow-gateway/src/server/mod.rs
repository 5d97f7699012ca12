//! Connections to the server: where it is, how the gateway logs in, and which connections are kept for sessions.

pub mod connect;
pub mod database;
pub mod driver;
pub mod held;
pub mod login;
pub mod pack;
pub mod permits;
pub mod upstream;
