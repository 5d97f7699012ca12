//! SHOW POOLS: clients and connections by user and database, in the form of PgBouncer. Programs that read it expect one
//! row for each user and database.

use std::collections::BTreeMap;
use std::time::Duration;

use super::answer::{Column, Row, row_of, text};
use crate::operator::view::clients::{ClientClass, clients};
use crate::operator::view::servers::{ServerState, servers};
use crate::shared::Shared;

/// A user in a database.
#[derive(Debug, Default)]
pub struct PoolRow {
    database: String,
    user: String,
    active: usize,
    waiting: usize,
    longest_wait: Duration,
    servers: [usize; 3],
}

/// The columns. Cancel requests take no connection here, and connections are not tested before use.
pub const COLUMNS: &[Column<PoolRow>] = &[
    ("database", |pool| text(&pool.database)),
    ("user", |pool| text(&pool.user)),
    ("cl_active", |pool| text(pool.active)),
    ("cl_waiting", |pool| text(pool.waiting)),
    ("cl_active_cancel_req", |_| text(0)),
    ("cl_waiting_cancel_req", |_| text(0)),
    ("sv_active", |pool| text(pool.servers[ServerState::Active as usize])),
    ("sv_active_cancel", |_| text(0)),
    ("sv_being_canceled", |_| text(0)),
    ("sv_idle", |pool| text(pool.servers[ServerState::Idle as usize])),
    ("sv_used", |_| text(0)),
    ("sv_tested", |_| text(0)),
    ("sv_login", |pool| text(pool.servers[ServerState::Login as usize])),
    ("maxwait", |pool| text(pool.longest_wait.as_secs())),
    ("maxwait_us", |pool| text(pool.longest_wait.subsec_micros())),
    ("pool_mode", |_| text(POOL_MODE)),
];

/// The columns that are text.
pub const TEXTS: [&str; 3] = ["database", "user", "pool_mode"];

/// A connection belongs to a client for one transaction.
pub const POOL_MODE: &str = "transaction";

/// One row for each user and database.
pub async fn rows(shared: &Shared) -> Vec<Row> {
    pools(shared).await.iter().map(|pool| row_of(COLUMNS, pool)).collect()
}

/// The users and databases of open pools.
pub async fn pools(shared: &Shared) -> Vec<PoolRow> {
    let mut pools = BTreeMap::<(String, String), PoolRow>::new();
    for pool in shared.pools() {
        pools.entry((pool.identity.database().to_owned(), pool.identity.user().to_owned())).or_default();
    }
    for client in clients(shared).await {
        let pool = pools.entry((client.database, client.user)).or_default();
        if client.class == ClientClass::Waiting {
            pool.waiting += 1;
            pool.longest_wait = pool.longest_wait.max(Duration::from_secs_f64(client.since_seconds));
        } else {
            pool.active += 1;
        }
    }
    for server in servers(shared).await {
        pools.entry((server.database, server.user)).or_default().servers[server.state as usize] += 1;
    }
    let named = |((database, user), pool)| PoolRow { database, user, ..pool };
    pools.into_iter().map(named).collect()
}
