//! The schema pack as the benchmark needs it: installed before a scenario; nothing of what is in it.

use crate::endpoint::Endpoint;
use crate::error::Error;
use crate::error::refused;
use tokio_postgres::NoTls;

/// Installs it, on a connection of its own that is closed before the first run.
pub async fn install(upstream: &Endpoint) -> Result<(), Error> {
    let (mut client, connection) = upstream.config().connect(NoTls).await.map_err(refused("connect"))?;
    // Its end shows up as an error of the next statement.
    tokio::spawn(connection);
    // The benchmark calls as the owner: no role has to be made that would stay behind on the server.
    let user = client.query_one("select current_user::text", &[]).await.map_err(refused("name its user"))?;
    hotrow_sql::migrate(&mut client, user.get(0)).await.map(drop).map_err(Error::Pack)
}
