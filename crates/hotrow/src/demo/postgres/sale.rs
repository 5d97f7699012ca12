//! The table of the sale in PostgreSQL, its stock, and the check after a round. The purchases are in `connection`.

use tokio_postgres::{Client, Config, NoTls};

use super::super::error::Error;
use super::super::facts::ServerFacts;
use super::super::stocktaking::Stocktaking;
use super::connection::Target;

/// The demo's connection directly to the server, which creates and reads the table.
pub struct Sale {
    client: Client,
    open: bool,
}

impl Sale {
    /// Connects; creates nothing yet.
    pub async fn connect(config: &Config, target: &Target) -> Result<Self, Error> {
        let failed = |source| Error::Connect { address: target.address(), source };
        let mut config = config.clone();
        let (client, connection) =
            config.application_name("hotrow demo").connect(NoTls).await.map_err(failed)?;
        // If the connection breaks, the next query fails.
        tokio::spawn(connection);
        Ok(Self { client, open: false })
    }

    /// Version and durability.
    pub async fn server(&self) -> Result<ServerFacts, Error> {
        let row = self.client.query_one(include_str!("../../../sql/demo_server.sql"), &[]).await?;
        // Packagers add their name after the number.
        let version = row.get::<_, &str>(0).split(' ').next().unwrap_or_default().to_owned();
        Ok(ServerFacts::Postgres { version, fsync: row.get(1), synchronous_commit: row.get(2) })
    }

    /// Creates the schema. Replaces the schema of a demo that was killed, and no other schema.
    pub async fn open(&mut self) -> Result<(), Error> {
        let claimed: bool =
            self.client.query_one(include_str!("../../../sql/demo_claim.sql"), &[]).await?.get(0);
        if !claimed {
            return Err(Error::Claimed);
        }
        let leftover = self.client.query_opt(include_str!("../../../sql/demo_leftover.sql"), &[]).await?;
        match leftover.map(|row| row.get(0)) {
            Some(true) => self.client.batch_execute(include_str!("../../../sql/demo_close.sql")).await?,
            Some(false) => return Err(Error::Taken),
            None => {}
        }
        // Set before the statement: if the demo is stopped during the statement, the schema may exist.
        self.open = true;
        self.client.batch_execute(include_str!("../../../sql/demo_open.sql")).await?;
        Ok(())
    }

    /// Sets the stock and resets the sales.
    pub async fn restock(&self, stock: i32) -> Result<(), Error> {
        self.client.execute(include_str!("../../../sql/demo_restock.sql"), &[&stock]).await?;
        Ok(())
    }

    /// Compares the row with the answers of a round that began with `initial` items.
    pub async fn take_stock(&self, initial: i32, acknowledged: u64) -> Result<Stocktaking, Error> {
        let row = self.client.query_one(include_str!("../../../sql/demo_shelf.sql"), &[]).await?;
        let (stock, sold): (i32, i32) = (row.get(0), row.get(1));
        Ok(Stocktaking::of(initial, stock.into(), sold.into(), acknowledged))
    }

    /// Writing transactions that the server has ended up to now.
    pub async fn transactions(&self) -> Result<u64, Error> {
        let count: i64 =
            self.client.query_one(include_str!("../../../sql/demo_transactions.sql"), &[]).await?.get(0);
        Ok(count.unsigned_abs())
    }

    /// Drops the schema, if this demo created it, and releases the lock for the next demo.
    pub async fn close(self) -> Result<(), Error> {
        if self.open {
            self.client.batch_execute(include_str!("../../../sql/demo_close.sql")).await?;
        }
        self.client.batch_execute(include_str!("../../../sql/demo_release.sql")).await?;
        Ok(())
    }
}
