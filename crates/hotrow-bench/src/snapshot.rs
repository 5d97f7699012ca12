//! A snapshot that somebody holds, as a long report or a forgotten session does; what is done meanwhile is elsewhere.

use crate::endpoint::Endpoint;
use crate::error::Error;
use crate::error::refused;
use tokio_postgres::{Client, NoTls};

/// A transaction of a connection of its own, which ends when this is dropped.
#[derive(Debug)]
pub struct Snapshot {
    client: Client,
}

impl Snapshot {
    /// Takes it.
    pub async fn hold(endpoint: &Endpoint) -> Result<Self, Error> {
        const TAKE: &str = "set idle_in_transaction_session_timeout = 0;
            begin isolation level repeatable read read only;
            select from pg_class limit 1";
        let (client, connection) = endpoint.config().connect(NoTls).await.map_err(refused("connect"))?;
        // Its end shows up as an error of the next statement.
        tokio::spawn(connection);
        client.batch_execute(TAKE).await.map_err(refused("hold a snapshot"))?;
        Ok(Self { client })
    }

    /// Gives it up; an error means that it was lost before.
    pub async fn release(self) -> Result<(), Error> {
        self.client.batch_execute("commit").await.map_err(refused("keep a snapshot"))
    }
}
