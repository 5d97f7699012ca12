//! The shop: its table, what is on its shelf, and the check after a round. Never a purchase.

use serde::Serialize;
use tokio_postgres::{Client, Config, NoTls};

use super::connection::Target;
use super::error::Error;

/// What the demo says about the server.
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
    /// Whether a sale is on disk before its buyer hears of it.
    pub fn durable(&self) -> bool {
        self.fsync == "on" && self.synchronous_commit != "off"
    }
}

/// The shelf against the answers after one round.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Stocktaking {
    /// Put on the shelf before the round.
    pub initial: u64,
    /// On the shelf after it.
    pub stock: i64,
    /// Sold, by the row.
    pub sold: i64,
    /// Sold, by what the buyers were told.
    pub acknowledged: u64,
}

impl Stocktaking {
    /// Nothing lost, nothing made up: stock + sold is what there was.
    pub fn complete(&self) -> bool {
        i64::try_from(self.initial).is_ok_and(|initial| self.stock + self.sold == initial)
    }

    /// Each acknowledged sale is in the row, and no other.
    pub fn acknowledged(&self) -> bool {
        i64::try_from(self.acknowledged) == Ok(self.sold)
    }

    /// More was sold than there was.
    pub fn oversold(&self) -> bool {
        self.stock < 0 || i64::try_from(self.initial).is_ok_and(|initial| self.sold > initial)
    }

    /// All three.
    pub fn agrees(&self) -> bool {
        self.complete() && self.acknowledged() && !self.oversold()
    }
}

/// A connection of the demo's own to the server, past the gateway: it sets up the shop and reads it.
pub struct Sale {
    client: Client,
    open: bool,
}

impl Sale {
    /// Connects; the shop is not there yet.
    pub async fn connect(config: &Config, target: &Target) -> Result<Self, Error> {
        let failed = |source| Error::Connect { address: target.address(), source };
        let mut config = config.clone();
        let (client, connection) =
            config.application_name("hotrow demo").connect(NoTls).await.map_err(failed)?;
        // When the connection breaks, the next query says so.
        tokio::spawn(connection);
        Ok(Self { client, open: false })
    }

    /// Version and durability.
    pub async fn server(&self) -> Result<ServerFacts, Error> {
        let row = self.client.query_one(include_str!("../../sql/demo_server.sql"), &[]).await?;
        // Packagers add their own name behind the number.
        let version = row.get::<_, &str>(0).split(' ').next().unwrap_or_default().to_owned();
        Ok(ServerFacts { version, fsync: row.get(1), synchronous_commit: row.get(2) })
    }

    /// Makes the schema; one that a killed demo left behind is replaced, one of someone else's is not touched.
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
        // Set before the statement: if the demo is stopped while it runs, the schema may be there.
        self.open = true;
        self.client.batch_execute(include_str!("../../sql/demo_open.sql")).await?;
        Ok(())
    }

    /// Puts a fresh stock on the shelf.
    pub async fn restock(&self, stock: i32) -> Result<(), Error> {
        self.client.execute(include_str!("../../sql/demo_restock.sql"), &[&stock]).await?;
        Ok(())
    }

    /// Looks at the shelf after a round that started with `initial` and of which so many sales were acknowledged.
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

    /// Writing transactions that the server has ended so far.
    pub async fn transactions(&self) -> Result<u64, Error> {
        let count: i64 =
            self.client.query_one(include_str!("../../sql/demo_transactions.sql"), &[]).await?.get(0);
        Ok(count.unsigned_abs())
    }

    /// Removes the schema, if this demo made it, and lets the next one in.
    pub async fn close(self) -> Result<(), Error> {
        if self.open {
            self.client.batch_execute(include_str!("../../sql/demo_close.sql")).await?;
        }
        self.client.batch_execute(include_str!("../../sql/demo_release.sql")).await?;
        Ok(())
    }
}
