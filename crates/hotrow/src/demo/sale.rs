//! The table of the sale, for both kinds of server.

use super::error::Error;
use super::facts::ServerFacts;
use super::stocktaking::Stocktaking;
use super::{mariadb, postgres};

/// The demo's connection directly to the server, which reads and changes the table.
pub enum Sale {
    /// PostgreSQL.
    Postgres(postgres::Sale),
    /// MariaDB.
    MariaDb(mariadb::Sale),
}

impl Sale {
    /// Version and durability.
    pub async fn server(&self) -> Result<ServerFacts, Error> {
        match self {
            Self::Postgres(sale) => sale.server().await,
            Self::MariaDb(sale) => sale.server().await,
        }
    }

    /// Sets the stock and resets the sales.
    pub async fn restock(&self, stock: i32) -> Result<(), Error> {
        match self {
            Self::Postgres(sale) => sale.restock(stock).await,
            Self::MariaDb(sale) => sale.restock(stock).await,
        }
    }

    /// Compares the row with the answers of a round that began with `initial` items.
    pub async fn take_stock(&self, initial: i32, acknowledged: u64) -> Result<Stocktaking, Error> {
        match self {
            Self::Postgres(sale) => sale.take_stock(initial, acknowledged).await,
            Self::MariaDb(sale) => sale.take_stock(initial, acknowledged).await,
        }
    }

    /// Writing transactions that the server has ended up to now.
    pub async fn transactions(&self) -> Result<u64, Error> {
        match self {
            Self::Postgres(sale) => sale.transactions().await,
            Self::MariaDb(sale) => sale.transactions().await,
        }
    }
}
