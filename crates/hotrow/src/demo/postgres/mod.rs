//! The sale on a PostgreSQL server.
//!
//! | file | contents |
//! |---|---|
//! | `connection` | one buyer's connection: log in, prepare, buy |
//! | `sale` | the table |

mod connection;
mod sale;

pub use connection::{Connection, Target, purchase_sql};
pub use sale::Sale;
