//! Connections to PostgreSQL servers, and questions about their catalog.
//!
//! | module | contents |
//! |---|---|
//! | `config` | the server that a URL names: hosts, user, TLS |
//! | `net` | sockets, plain or under TLS |
//! | `connect` | makes a connection: tries the hosts, logs in; sends cancel requests |
//! | `description` | the server's description of a prepared statement, and whether two are alike |
//! | `login` | the login of a user, whose secrets are kept |
//! | `upstream` | one connection, and queries of the gateway on it |
//! | `driver` | a driver's client over such a connection, for commands |
//! | `asker` | facts about tables and functions |
//! | `pack` | whether the functions of the hotrow schema can be trusted |
//! | `lock` | a mutex |

pub mod asker;
pub mod config;
pub mod connect;
pub mod description;
pub mod driver;
pub mod lock;
pub mod login;
pub mod net;
pub mod pack;
pub mod upstream;
