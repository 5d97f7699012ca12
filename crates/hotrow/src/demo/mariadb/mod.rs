//! The sale on a MariaDB server.
//!
//! | file | contents |
//! |---|---|
//! | `connection` | one buyer's connection: log in, buy |
//! | `sale` | the table, and the users of the gateway and the buyers |

mod connection;
mod sale;

pub use connection::{Connection, Target, purchase_sql};
pub use sale::{OPTIONS, Sale, gateway_url, users};
