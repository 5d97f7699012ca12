//! The gateway's configuration: resolved once by the program, passed as a value.

mod handed_over;
mod pool_table;
pub mod routes;
mod table_list;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use hotrow_connect::config::{Hosts, UpstreamConfig};
use hotrow_connect::net::Address;
use hotrow_core::limits;
use hotrow_core::pack_mode::PackMode;
pub use pool_table::PoolTable;
use routes::{Route, Routes};
pub use table_list::TableList;

use crate::console;
use crate::net::tls;
use crate::traces::Traces;

/// Where the gateway listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Listen {
    /// An address and a port.
    Tcp(SocketAddr),
    /// The path of a Unix socket.
    Unix(PathBuf),
}

/// Why the gateway cannot listen on an address.
#[derive(Debug, thiserror::Error)]
pub enum ListenAddressError {
    /// It is not an address.
    #[error(
        "{0:?} is neither HOST:PORT nor the path of a Unix socket; write for example 127.0.0.1:6432 or /run/hotrow/.s.PGSQL.6432"
    )]
    Syntax(String),
}

impl FromStr for Listen {
    type Err = ListenAddressError;

    fn from_str(text: &str) -> Result<Self, ListenAddressError> {
        if text.starts_with('/') {
            return Ok(Listen::Unix(PathBuf::from(text)));
        }
        let text = text.replace("localhost:", "127.0.0.1:");
        let address = SocketAddr::from_str(&text).map_err(|_| ListenAddressError::Syntax(text.clone()))?;
        Ok(Listen::Tcp(address))
    }
}

/// A setting as SHOW CONFIG shows it.
#[derive(Clone, Debug)]
pub struct Shown {
    pub name: &'static str,
    /// Its value, without passwords.
    pub value: String,
    pub default: String,
    pub unit: &'static str,
    /// Whether it takes effect only at the next start.
    pub needs_restart: bool,
}

/// All settings of the gateway.
#[derive(Clone, Debug)]
pub struct Config {
    /// The server of the clients that this configuration is for. In the gateway's own configuration it is the server of
    /// the gateway's own logins.
    pub upstream: UpstreamConfig,
    /// The databases that clients can connect to, and their servers.
    pub routes: Arc<Routes>,
    /// The replicas of `upstream`, with one host each.
    pub replicas: Vec<UpstreamConfig>,
    /// Where clients connect.
    pub listen: Vec<Listen>,
    /// TLS for clients; none means that the gateway declines it.
    pub tls: Option<Arc<tls::Server>>,
    /// Whether units are packed.
    pub pack: PackMode,
    /// Tables whose statements are passed through all the same.
    pub unpacked_tables: TableList,
    /// Whether statements on tables that Citus distributes run in lanes to nodes.
    pub citus_lanes: bool,
    /// Number of lanes for writes of one pool, and of lanes for reads.
    pub lanes: usize,
    /// Largest number of clients at once.
    pub clients_max: usize,
    /// Largest number of upstream connections that sessions hold at once.
    pub held_connections_max: usize,
    /// Longest wait of a session for a connection.
    pub held_wait: Duration,
    /// How long an unused connection stays open.
    pub held_idle: Duration,
    /// Longest wait of a statement in a lane for an outsider's lock.
    pub lane_lock_timeout: Duration,
    /// Longest wait for the server of units that were not sent.
    pub server_wait: Duration,
    /// Longest time that a stop waits for work that is under way.
    pub drain_timeout: Duration,
    /// Longest estimated wait in a lane. A unit that would wait longer is rejected.
    pub queue_wait: Duration,
    /// Longest lag of a replica that serves reads.
    pub replica_lag_max: Duration,
    /// Longest wait of a read for a replica that has the session's last commit.
    pub replica_wait: Duration,
    /// How long facts of the catalog stay valid.
    pub catalog_age: Duration,
    /// How long a new statement waits for its verdict.
    pub verdict_wait: Duration,
    /// Largest message of a client, in bytes.
    pub message_bytes_max: usize,
    /// The access file; without one, only this machine is trusted.
    pub hba_file: Option<PathBuf>,
    /// The users and their secrets.
    pub users_file: Option<PathBuf>,
    /// The query for the secret of a user that is not in users_file; empty for none.
    pub auth_query: String,
    pub console: console::Users,
    /// The `[[pool]]` tables for some databases and users.
    pub tables: Vec<Arc<PoolTable>>,
    /// Where the spans of batches go; none means that batches are not traced.
    pub traces: Option<Traces>,
    /// All settings for SHOW CONFIG.
    pub shown: Vec<Shown>,
    /// The table in force here; none in the gateway's own configuration.
    pub table: Option<Arc<PoolTable>>,
}

impl Config {
    /// The configuration for a user of this server in a database with this name: the first matching table is in force.
    pub fn of(&self, route: &Route, database: &str, user: &str) -> Config {
        let mut config = self.clone();
        // A route that a reload has removed still serves the clients that it has.
        let server = &self.routes.current(route).map_or(route, |now| now).server;
        (config.upstream, config.replicas) = (server.upstream.clone(), server.replicas.clone());
        if let Some(table) = self.tables.iter().find(|table| table.fits(database, user)) {
            table.apply(&mut config);
            config.table = Some(table.clone());
        }
        config
    }

    /// The same for a node of a distributed database at this address.
    pub fn at(mut self, address: Address) -> Config {
        self.upstream.hosts = Hosts::of_node(address);
        self
    }

    /// The same for one of the replicas.
    pub fn of_replica(mut self, index: usize) -> Config {
        self.upstream = self.replicas[index].clone();
        self
    }

    /// The console access of a user, if any.
    pub fn console_access(&self, user: &str, is_local: bool) -> Option<console::Access> {
        self.console.access(user, is_local, &self.upstream.user)
    }

    /// The defaults of [`limits`] for this server and these addresses.
    pub fn new(upstream: UpstreamConfig, listen: Vec<Listen>) -> Self {
        Config::with_routes(Routes::single(upstream, Vec::new()), listen)
    }

    /// The same for these servers.
    pub fn with_routes(routes: Routes, listen: Vec<Listen>) -> Self {
        Config {
            upstream: routes.first().server.upstream.clone(),
            replicas: routes.first().server.replicas.clone(),
            routes: Arc::new(routes),
            listen,
            tls: None,
            pack: PackMode::On,
            unpacked_tables: TableList::default(),
            citus_lanes: false,
            lanes: limits::LANES,
            clients_max: limits::CLIENTS_MAX,
            held_connections_max: limits::HELD_CONNECTIONS_MAX,
            held_wait: Duration::from_millis(limits::HELD_WAIT_MS),
            held_idle: Duration::from_millis(limits::HELD_IDLE_MS),
            lane_lock_timeout: Duration::from_millis(limits::LANE_LOCK_TIMEOUT_MS),
            server_wait: Duration::from_millis(limits::SERVER_WAIT_MS),
            drain_timeout: Duration::from_millis(limits::DRAIN_TIMEOUT_MS),
            queue_wait: Duration::from_millis(limits::QUEUE_WAIT_MS),
            replica_lag_max: Duration::from_millis(limits::REPLICA_LAG_MAX_MS),
            replica_wait: Duration::from_millis(limits::REPLICA_WAIT_MS),
            catalog_age: Duration::from_millis(limits::CATALOG_AGE_MS),
            verdict_wait: Duration::from_millis(limits::VERDICT_WAIT_MS),
            message_bytes_max: limits::MESSAGE_BYTES_MAX,
            hba_file: None,
            users_file: None,
            auth_query: include_str!("../../sql/auth_query.sql").to_owned(),
            console: console::Users::default(),
            tables: Vec::new(),
            traces: None,
            shown: Vec::new(),
            table: None,
        }
    }

    /// How long the gateway asks for the outcome of a commit. It asks longer than for anything else, because a client
    /// cannot safely repeat a unit whose outcome is unknown.
    pub fn resolve_timeout(&self) -> Duration {
        self.server_wait * limits::RESOLVE_WAITS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_to_listen_on() {
        assert!("127.0.0.1:6432".parse::<Listen>().is_ok());
        assert!("[::1]:6432".parse::<Listen>().is_ok());
        assert!("localhost:6432".parse::<Listen>().is_ok());
        assert_eq!("/tmp/s".parse::<Listen>().unwrap(), Listen::Unix("/tmp/s".into()));
        assert!("0.0.0.0:6432".parse::<Listen>().is_ok(), "the access file is checked at the start");
        assert!(matches!("6432".parse::<Listen>(), Err(ListenAddressError::Syntax(_))));
    }
}
