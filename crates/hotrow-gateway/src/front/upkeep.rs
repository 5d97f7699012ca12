//! The schema pack's upkeep: a round every few seconds, on a connection as the upstream URL's user that is closed after it.
//! What there is to do is the pack's to know, and that nobody else is at it.

use std::sync::Arc;
use std::time::Duration;

use hotrow_core::limits;

use crate::server::login::Login;
use crate::server::pack::{self, KEEP};
use crate::server::upstream::{Error, Upstream};
use crate::shared::Shared;

/// Makes rounds for as long as the process lives. A failure is told once, until a round succeeds again.
pub async fn run(shared: Arc<Shared>) {
    let mut failed = false;
    loop {
        tokio::time::sleep(Duration::from_millis(limits::UPKEEP_MS)).await;
        match round(&shared).await {
            Ok(()) => failed = false,
            Err(error) if failed || error.is_retryable() => {
                tracing::debug!(%error, "no upkeep of the schema pack")
            }
            Err(error) => {
                tracing::warn!(%error, "the schema pack's upkeep failed; it is tried again");
                failed = true;
            }
        }
    }
}

async fn round(shared: &Shared) -> Result<(), Error> {
    let config = shared.config();
    let server = &config.upstream;
    let database = shared.databases.of(&server.database);
    let Some(_database_use) = database.enter(config.server_wait).await else {
        return Ok(()); // paused, as an operator wishes
    };
    // The database's owner can choose settings for every role that connects. A search_path would put functions and operators
    // of that owner into the questions here.
    let pairs = [
        ("user", &*server.user),
        ("database", &server.database),
        ("application_name", "hotrow upkeep"),
        ("search_path", "pg_catalog, pg_temp"),
    ];
    let parameters = pairs.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let login = Login::new(&server.user, server.credential());
    let mut upstream = Upstream::connect(server, &parameters, &login, false).await?;
    if !pack::is_trusted(&mut upstream, &server.user, KEEP).await? {
        return Ok(());
    }
    while !shared.is_stopping()
        && !database.is_paused()
        && pack::says_yes(&mut upstream, include_str!("../../sql/upkeep.sql"), &[]).await?
    {}
    Ok(())
}
