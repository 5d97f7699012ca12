//! The table of the sale, its stock, and the check after a round. The purchases are in `connection`.

use serde::Serialize;
use tokio_postgres::{Client, Config, NoTls};

use super::connection::Target;
use super::error::Error;

/// Facts about the server for the demo's output.
#[derive(Clone, Debug, Serialize)]
pub struct ServerFacts {
    /// For example 17.2.
    pub version: String,
    /// The setting of that name.
    pub fsync: String,
    /// The setting of that name.
    pub synchronous_commit: String,
}

impl ServerFacts {
    /// Whether a sale is on disk before its buyer gets the answer.
    pub fn durable(&self) -> bool {
        self.fsync == "on" && self.synchronous_commit != "off"
    }
}

/// The row compared with the answers after one round.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Stocktaking {
    /// The stock before the round.
    pub initial: u64,
    /// The stock after the round.
    pub stock: i64,
    /// Sales according to the row.
    pub sold: i64,
    /// Sales according to the buyers' answers.
    pub acknowledged: u64,
}

impl Stocktaking {
    /// Whether stock + sold is the initial stock.
    pub fn complete(&self) -> bool {
        i64::try_from(self.initial).is_ok_and(|initial| self.stock + self.sold == initial)
    }

    /// Whether the row has exactly the acknowledged sales.
    pub fn acknowledged(&self) -> bool {
        i64::try_from(self.acknowledged) == Ok(self.sold)
    }

    /// Whether more was sold than the initial stock.
    pub fn oversold(&self) -> bool {
        self.stock < 0 || i64::try_from(self.initial).is_ok_and(|initial| self.sold > initial)
    }

    /// Whether all three checks pass.
    pub fn agrees(&self) -> bool {
        self.complete() && self.acknowledged() && !self.oversold()
    }
}

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
        let row = self.client.query_one(include_str!("../../sql/demo_server.sql"), &[]).await?;
        // Packagers add their name after the number.
        let version = row.get::<_, &str>(0).split(' ').next().unwrap_or_default().to_owned();
        Ok(ServerFacts { version, fsync: row.get(1), synchronous_commit: row.get(2) })
    }

    /// Creates the schema. Replaces the schema of a demo that was killed, and no other schema.
    pub async fn open(&mut self) -> Result<(), Error> {
        let claimed: bool =
            self.client.query_one(include_str!("../../sql/demo_claim.sql"), &[]).await?.get(0);
        if !claimed {
            return Err(Error::Claimed);
        }
        let leftover = self.client.query_opt(include_str!("../../sql/demo_leftover.sql"), &[]).await?;
        match leftover.map(|row| row.get(0)) {
            Some(true) => self.client.batch_execute(include_str!("../../sql/demo_close.sql")).await?,
            Some(false) => return Err(Error::Taken),
            None => {}
        }
        // Set before the statement: if the demo is stopped during the statement, the schema may exist.
        self.open = true;
        self.client.batch_execute(include_str!("../../sql/demo_open.sql")).await?;
        Ok(())
    }

    /// Sets the stock and resets the sales.
    pub async fn restock(&self, stock: i32) -> Result<(), Error> {
        self.client.execute(include_str!("../../sql/demo_restock.sql"), &[&stock]).await?;
        Ok(())
    }

    /// Compares the row with the answers of a round that began with `initial` items.
    pub async fn take_stock(&self, initial: i32, acknowledged: u64) -> Result<Stocktaking, Error> {
        let row = self.client.query_one(include_str!("../../sql/demo_shelf.sql"), &[]).await?;
        let (stock, sold): (i32, i32) = (row.get(0), row.get(1));
        Ok(Stocktaking {
            initial: u64::from(initial.unsigned_abs()),
            stock: stock.into(),
            sold: sold.into(),
            acknowledged,
        })
    }

    /// Writing transactions that the server has ended up to now.
    pub async fn transactions(&self) -> Result<u64, Error> {
        let count: i64 =
            self.client.query_one(include_str!("../../sql/demo_transactions.sql"), &[]).await?.get(0);
        Ok(count.unsigned_abs())
    }

    /// Drops the schema, if this demo created it, and releases the lock for the next demo.
    pub async fn close(self) -> Result<(), Error> {
        if self.open {
            self.client.batch_execute(include_str!("../../sql/demo_close.sql")).await?;
        }
        self.client.batch_execute(include_str!("../../sql/demo_release.sql")).await?;
        Ok(())
    }
}
