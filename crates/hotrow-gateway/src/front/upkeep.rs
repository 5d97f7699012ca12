//! The schema pack's upkeep: a round every few seconds in each database, on a connection of the user of the server's URL
//! that is closed afterwards. The pack knows which work is due and whether another gateway does it.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use hotrow_core::limits;
use tokio::task::JoinHandle;

use crate::config::routes::{Route, Routes};
use crate::lock::Lock;
use crate::metrics::METRICS;
use crate::server::login::Login;
use crate::server::pack::{self, KEEP, LIST_QUEUES};
use crate::server::upstream::{Error, Upstream};
use crate::shared::Shared;

/// A server's number and the name of a database there.
type Place = (u64, String);

/// What the last round in each database has found.
type Reports = Arc<Lock<HashMap<Place, Report>>>;

#[derive(Clone, Copy, Debug, Default)]
struct Report {
    /// Failed rounds are logged as a warning once, until a round succeeds.
    has_failed: bool,
    /// The dead letters and the age of the oldest order in seconds, if the database has the pack's queues.
    queues: Option<(u64, u64)>,
}

/// Makes rounds as long as the process lives. The rounds of one server do not wait for another server.
pub async fn run(shared: Arc<Shared>) {
    let reports = Reports::default();
    let mut rounds: HashMap<u64, JoinHandle<()>> = HashMap::new();
    loop {
        tokio::time::sleep(Duration::from_millis(limits::UPKEEP_MS)).await;
        let mut by_server: HashMap<u64, Vec<(String, Arc<Route>)>> = HashMap::new();
        let config = shared.config();
        forget_removed(&reports, &config.routes);
        for (name, route) in config.routes.with_upkeep() {
            by_server.entry(route.server.id).or_default().push((name, route));
        }
        rounds.retain(|_, round| !round.is_finished());
        for (server, databases) in by_server {
            let round = || tokio::spawn(round_of_server(shared.clone(), reports.clone(), databases));
            rounds.entry(server).or_insert_with(round);
        }
    }
}

async fn round_of_server(shared: Arc<Shared>, reports: Reports, databases: Vec<(String, Arc<Route>)>) {
    for (name, route) in databases {
        let place = (route.server.id, route.database(&name).to_owned());
        let result = round(&shared, &route, &name).await;
        let mut all = reports.lock();
        let report = all.entry(place).or_default();
        match result {
            Ok(queues) => *report = Report { has_failed: false, queues: queues.or(report.queues) },
            Err(error) => {
                METRICS.upkeep_failures.inc();
                if report.has_failed || error.is_retryable() || error.is_full() {
                    tracing::debug!(%error, database = name, "no upkeep of the schema pack");
                } else {
                    tracing::warn!(%error, database = name, "the schema pack's upkeep failed; it will be retried");
                    report.has_failed = true;
                }
            }
        }
        show(&all);
    }
}

async fn round(shared: &Shared, route: &Arc<Route>, name: &str) -> Result<Option<(u64, u64)>, Error> {
    let (config, server) = (shared.config(), &route.server.upstream);
    let database = shared.directory.databases.of(route, name);
    let Some(_database_use) = database.enter(config.server_wait).await else {
        return Ok(None); // an operator has paused the database
    };
    // The database's owner can choose settings for every role that connects. With another search_path the queries here
    // would run that owner's functions and operators.
    let pairs = [
        ("user", &*server.user),
        ("database", route.database(name)),
        ("application_name", "hotrow upkeep"),
        ("search_path", "pg_catalog, pg_temp"),
    ];
    let parameters = pairs.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let login = Login::new(&server.user, server.credential());
    let mut upstream = Upstream::connect(server, &parameters, &login, false).await?;
    if !pack::is_trusted(&mut upstream, &server.user, KEEP).await? {
        return Ok(None);
    }
    while !shared.is_stopping()
        && !database.is_paused()
        && pack::says_yes(&mut upstream, include_str!("../../sql/upkeep.sql"), &[]).await?
    {}
    measure(&mut upstream, &server.user).await
}

/// The dead letters of the pack's queues, and the age of the oldest order in seconds.
async fn measure(upstream: &mut Upstream, user: &str) -> Result<Option<(u64, u64)>, Error> {
    if !pack::is_trusted(upstream, user, LIST_QUEUES).await? {
        return Ok(None);
    }
    let rows = upstream.query(include_str!("../../sql/queue_totals.sql"), &[]).await?;
    let number = |index: usize| rows.first()?.get(index)?.as_deref()?.parse().ok();
    Ok(Some((number(0).unwrap_or_default(), number(1).unwrap_or_default())))
}

fn forget_removed(reports: &Reports, routes: &Routes) {
    let mut all = reports.lock();
    all.retain(|(server, _), _| routes.has_server(*server));
    show(&all);
}

/// Notes the state of the pack's queues in all databases for the metrics.
fn show(all: &HashMap<Place, Report>) {
    let queues = || all.values().filter_map(|report| report.queues);
    if queues().next().is_some() {
        METRICS.dead_letters.set(queues().map(|(dead, _)| dead).sum());
        METRICS.oldest_order_seconds.set(queues().map(|(_, oldest)| oldest).max().unwrap_or_default());
        METRICS.pack_known.set(1);
    }
}
