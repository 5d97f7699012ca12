//! A connection to the server itself, for the commands that don't go through a gateway.

use hotrow_gateway::driver;
use tokio_postgres::Client;

/// The server can't be reached.
#[derive(Debug, thiserror::Error)]
#[error("can't connect to the upstream: {0}; check its address, user and password")]
pub struct Error(driver::Error);

/// Connects.
pub async fn connect(upstream: &str) -> Result<Client, Error> {
    driver::connect(upstream).await.map_err(Error)
}
