//! A connection to the server itself, for the commands that don't go through a gateway.

use tokio_postgres::{Client, NoTls};

/// The server can't be reached.
#[derive(Debug, thiserror::Error)]
#[error("can't connect to the upstream: {0}; check its address, user and password")]
pub struct Error(tokio_postgres::Error);

/// Connects.
pub async fn connect(upstream: &str) -> Result<Client, Error> {
    let (client, connection) = tokio_postgres::connect(upstream, NoTls).await.map_err(Error)?;
    // What ends the connection fails the question under way, which says so.
    tokio::spawn(async { drop(connection.await) });
    Ok(client)
}
