//! Looks for a second host of a server that accepts writes, which an old primary does that comes back after a failover. What is
//! written there will be lost, so the log and a metric report it. Only servers with several hosts are asked.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use hotrow_connect::config::UpstreamConfig;
use hotrow_connect::connect;
use hotrow_connect::login::Login;
use hotrow_connect::net::Address;
use hotrow_connect::upstream::Error;
use hotrow_core::limits;
use hotrow_core::replica::History;

use crate::config::routes::Server;
use crate::shared::Shared;

/// A host of a server, by the server's number.
type Place = (u64, Address);

/// Looks as long as the process lives.
pub async fn run(shared: Arc<Shared>) {
    // Hosts that do not let the gateway's own user in. They are not asked again: each attempt is an error in their log.
    let mut closed: HashSet<Place> = HashSet::new();
    loop {
        tokio::time::sleep(Duration::from_millis(limits::RIVALS_MS)).await;
        let config = shared.config();
        closed.retain(|(server, _)| config.routes.has_server(*server));
        for server in config.routes.servers() {
            look(server, &mut closed).await;
        }
    }
}

async fn look(server: &Server, closed: &mut HashSet<Place>) {
    let hosts = &server.upstream.hosts;
    let Some((serving, Some(history))) = hosts.serving() else { return };
    let mut rivals = Vec::new();
    for address in hosts.all().iter().filter(|address| *address != serving) {
        let place = (server.id, address.clone());
        if closed.contains(&place) {
            continue;
        }
        match ask(&server.upstream, address).await {
            Ok(Some(other)) if other.cluster == history.cluster => rivals.push(address.clone()),
            Ok(_) => {}
            Err(error) if error.is_retryable() => {}
            Err(error) => {
                tracing::debug!(%error, server = %address, "a host does not say whether it accepts writes");
                closed.insert(place);
            }
        }
    }
    // Another host may serve by now.
    if hosts.serving().is_some_and(|(now, _)| now == serving) {
        hosts.set_rivals(serving, rivals);
    }
}

async fn ask(server: &UpstreamConfig, address: &Address) -> Result<Option<History>, Error> {
    let pairs = [
        ("user", &*server.user),
        ("database", &*server.database),
        ("application_name", "hotrow"),
        ("search_path", "pg_catalog, pg_temp"),
    ];
    let parameters = pairs.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let login = Login::new(&server.user, server.credential());
    connect::history_of(server, address, &parameters, &login).await
}
