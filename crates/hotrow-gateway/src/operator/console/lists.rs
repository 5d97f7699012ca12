//! SHOW LISTS: numbers of databases, pools, clients and connections, in the form of PgBouncer.

use std::collections::HashSet;

use super::answer::{Column, Row, row_of, text};
use crate::operator::view::servers::{ServerState, servers};
use crate::shared::Shared;

pub const COLUMNS: &[Column<(&str, usize)>] =
    &[("list", |(name, _)| text(name)), ("items", |(_, count)| text(count))];

/// The columns that are text.
pub const TEXTS: [&str; 1] = ["list"];

/// One row for each list. The gateway keeps no names of hosts, and has no peers.
pub async fn rows(shared: &Shared) -> Vec<Row> {
    let pools = shared.pools();
    let databases: HashSet<&str> = pools.iter().map(|pool| pool.identity.database()).collect();
    let users: HashSet<&str> = pools.iter().map(|pool| pool.identity.user()).collect();
    let servers = servers(shared).await;
    let idle = servers.iter().filter(|server| server.state == ServerState::Idle).count();
    let sessions = shared.controls.all().len() + shared.controls.consoles();
    let (connected, clients_max) = shared.client_count();
    let lists = [
        ("databases", databases.len()),
        ("users", users.len()),
        ("peers", 0),
        ("pools", pools.len()),
        ("peer_pools", 0),
        ("free_clients", clients_max.saturating_sub(connected)),
        ("used_clients", sessions),
        ("login_clients", connected.saturating_sub(sessions)),
        ("free_servers", idle),
        ("used_servers", servers.len() - idle),
        ("dns_names", 0),
        ("dns_zones", 0),
        ("dns_queries", 0),
        ("dns_pending", 0),
    ];
    lists.iter().map(|list| row_of(COLUMNS, list)).collect()
}
