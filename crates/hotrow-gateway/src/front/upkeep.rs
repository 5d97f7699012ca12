//! The schema pack's upkeep: a round every few seconds, on a connection of the upstream URL's user that is closed
//! afterwards. The pack knows which work is due and whether another gateway does it.

use std::sync::Arc;
use std::time::Duration;

use hotrow_core::limits;

use crate::metrics::METRICS;
use crate::server::login::Login;
use crate::server::pack::{self, KEEP, LIST_QUEUES};
use crate::server::upstream::{Error, Upstream};
use crate::shared::Shared;

/// Makes rounds as long as the process lives. Repeated failures are logged as a warning once, until a round succeeds.
pub async fn run(shared: Arc<Shared>) {
    let mut failed = false;
    loop {
        tokio::time::sleep(Duration::from_millis(limits::UPKEEP_MS)).await;
        match round(&shared).await {
            Ok(()) => failed = false,
            Err(error) if failed || error.is_retryable() => {
                METRICS.upkeep_failures.inc();
                tracing::debug!(%error, "no upkeep of the schema pack")
            }
            Err(error) => {
                METRICS.upkeep_failures.inc();
                tracing::warn!(%error, "the schema pack's upkeep failed; it will be retried");
                failed = true;
            }
        }
    }
}

async fn round(shared: &Shared) -> Result<(), Error> {
    let config = shared.config();
    let server = &config.upstream;
    let database = shared.directory.databases.of(&server.database);
    let Some(_database_use) = database.enter(config.server_wait).await else {
        return Ok(()); // an operator has paused the database
    };
    // The database's owner can choose settings for every role that connects. With another search_path the queries here
    // would run that owner's functions and operators.
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
    measure(&mut upstream, &server.user).await
}

/// Notes the state of the pack's queues for the metrics.
async fn measure(upstream: &mut Upstream, user: &str) -> Result<(), Error> {
    if !pack::is_trusted(upstream, user, LIST_QUEUES).await? {
        return Ok(());
    }
    let rows = upstream.query(include_str!("../../sql/queue_totals.sql"), &[]).await?;
    let number = |index: usize| rows.first()?.get(index)?.as_deref()?.parse().ok();
    METRICS.dead_letters.set(number(0).unwrap_or_default());
    METRICS.oldest_order_seconds.set(number(1).unwrap_or_default());
    METRICS.pack_known.set(1);
    Ok(())
}
