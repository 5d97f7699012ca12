//! A connection to the server for commands that do not go through a gateway.

use hotrow_connect::driver;
use tokio_postgres::Client;

/// The command cannot connect to the server.
#[derive(Debug, thiserror::Error)]
#[error(
    "cannot connect to the server: {0}; check that the server runs, and address, user and password in --upstream"
)]
pub struct Error(driver::Error);

pub async fn connect(upstream: &str) -> Result<Client, Error> {
    driver::connect(upstream).await.map_err(Error)
}
