//! The hotrow schema's maintenance: a round every few seconds in each database, on a connection of the user of the server's URL
//! that is closed afterwards. The hotrow schema knows which work is due and whether another gateway does it. The connection
//! also shows that the server answers, and how many connections it accepts.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use hotrow_connect::lock::Lock;
use hotrow_connect::login::Login;
use hotrow_connect::pack::{self, KEEP, LIST_QUEUES};
use hotrow_connect::upstream::{Error, Upstream};
use hotrow_core::limits;
use tokio::task::JoinHandle;

use crate::config::routes::{Route, Routes};
use crate::front::capacity::Capacities;
use crate::metrics::METRICS;
use crate::shared::Shared;

/// A server's number and the name of a database there.
type Place = (u64, String);

/// What the last round in each database has found.
type Reports = Arc<Lock<HashMap<Place, Report>>>;

#[derive(Clone, Copy, Debug, Default)]
struct Report {
    /// Failed rounds are logged as a warning once, until a round succeeds.
    has_failed: bool,
    /// The database has the hotrow schema, as far as it is known. Without it there is nothing to maintain.
    has_pack: bool,
    /// The dead letters and the age of the oldest order in seconds, if the database has the hotrow schema's queues.
    queues: Option<(u64, u64)>,
}

/// Makes rounds as long as the process lives. The rounds of one server do not wait for another server.
pub async fn run(shared: Arc<Shared>) {
    let (reports, capacities) = (Reports::default(), Arc::<Capacities>::default());
    let mut rounds: HashMap<u64, JoinHandle<()>> = HashMap::new();
    // The first round is at once, because the gateway is ready only after a server has answered. It does no work: a gateway that
    // cannot stay up would work in each of its lives.
    let mut works = false;
    loop {
        let mut by_server: HashMap<u64, Vec<(String, Arc<Route>)>> = HashMap::new();
        let config = shared.config();
        forget_removed(&reports, &config.routes);
        capacities.retain(|server| config.routes.has_server(server));
        for (name, route) in config.routes.with_maintenance() {
            by_server.entry(route.server.id).or_default().push((name, route));
        }
        rounds.retain(|_, round| !round.is_finished());
        for (server, databases) in by_server {
            let (shared, reports, capacities) = (shared.clone(), reports.clone(), capacities.clone());
            let round = || tokio::spawn(round_of_server(shared, reports, capacities, databases, works));
            rounds.entry(server).or_insert_with(round);
        }
        drop(config);
        tokio::time::sleep(Duration::from_millis(limits::MAINTENANCE_MS)).await;
        works = true;
    }
}

async fn round_of_server(
    shared: Arc<Shared>,
    reports: Reports,
    capacities: Arc<Capacities>,
    databases: Vec<(String, Arc<Route>)>,
    works: bool,
) {
    for (name, route) in databases {
        let place = (route.server.id, route.database(&name).to_owned());
        let mut round = Round::default();
        let result = round.make(&shared, &capacities, &route, &name, works).await;
        let mut all = reports.lock();
        let report = all.entry(place).or_default();
        report.has_pack = round.has_pack.unwrap_or(report.has_pack);
        report.queues = round.queues.or(report.queues);
        match result {
            Ok(()) => report.has_failed = false,
            Err(error) => {
                // An outage is reported as such, and its rounds are made up for.
                if report.has_pack && !error.is_retryable() {
                    METRICS.maintenance_failures.inc();
                }
                if report.has_failed || error.is_retryable() || error.is_full() {
                    tracing::debug!(%error, database = name, "no maintenance of the hotrow schema");
                } else {
                    tracing::warn!(%error, database = name, "the hotrow schema's maintenance failed; it will be retried");
                    report.has_failed = true;
                }
            }
        }
        show(&all);
    }
}

/// What a round has found, also if it failed.
#[derive(Debug, Default)]
struct Round {
    /// Whether the database has the hotrow schema, if the round got that far.
    has_pack: Option<bool>,
    /// The numbers of its queues.
    queues: Option<(u64, u64)>,
}

impl Round {
    async fn make(
        &mut self,
        shared: &Shared,
        capacities: &Capacities,
        route: &Arc<Route>,
        name: &str,
        works: bool,
    ) -> Result<(), Error> {
        let (config, server) = (shared.config(), &route.server.upstream);
        let database = shared.directory.databases.of(route, name);
        let Some(_database_use) = database.enter(config.server_wait).await else {
            return Ok(()); // an operator has paused the database
        };
        // The database's owner can choose settings for every role that connects. With another search_path the queries here
        // would run that owner's functions and operators.
        let pairs = [
            ("user", &*server.user),
            ("database", route.database(name)),
            ("application_name", "hotrow maintenance"),
            ("search_path", "pg_catalog, pg_temp"),
        ];
        let parameters = pairs.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let login = Login::new(&server.user, server.credential());
        let connected = Upstream::connect(server, &parameters, &login, false).await;
        // A server that refuses the login has answered.
        let is_up = connected.as_ref().map_or_else(|error| !error.is_retryable(), |_| true);
        METRICS.servers.set(server.hosts.to_string(), &route.server, is_up);
        let mut upstream = connected?;
        capacities.check(&mut upstream, shared, route).await?;
        if !works {
            return Ok(());
        }
        let has_pack = pack::is_trusted(&mut upstream, &server.user, KEEP).await?;
        self.has_pack = Some(has_pack);
        if !has_pack {
            return Ok(());
        }
        while !shared.is_stopping()
            && !database.is_paused()
            && pack::says_yes(&mut upstream, include_str!("../../sql/maintenance.sql"), &[]).await?
        {}
        self.queues = measure(&mut upstream, &server.user).await?;
        Ok(())
    }
}

/// The dead letters of the hotrow schema's queues, and the age of the oldest order in seconds.
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

/// Notes the state of the hotrow schema's queues in all databases for the metrics.
fn show(all: &HashMap<Place, Report>) {
    let queues = || all.values().filter_map(|report| report.queues);
    if queues().next().is_some() {
        METRICS.dead_letters.set(queues().map(|(dead, _)| dead).sum());
        METRICS.oldest_order_seconds.set(queues().map(|(_, oldest)| oldest).max().unwrap_or_default());
        METRICS.pack_known.set(1);
    }
}
