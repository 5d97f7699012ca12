//! The gateway's configuration: resolved once by the program, passed as a value.

pub mod conninfo;
mod handed_over;
pub mod hosts;
mod parameters;
mod pool_table;
pub mod routes;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

pub use hosts::Hosts;
use hotrow_auth::{Credential, Password, Proven};
use hotrow_core::limits;
pub use pool_table::PoolTable;
use routes::{Route, Routes};
use tokio_postgres::config::ChannelBinding;

use crate::console;
use crate::net::tls;

/// The server behind the gateway.
#[derive(Clone, Debug)]
pub struct UpstreamConfig {
    /// The addresses of its hosts, one of which is the primary.
    pub hosts: Hosts,
    /// The user of the gateway's own commands. The password belongs to this user.
    pub user: String,
    /// The password, if the URL had one.
    pub password: Option<Password>,
    /// The database of the gateway's own commands.
    pub database: String,
    /// How the gateway asks it for TLS; none means never.
    pub tls: Option<tls::Client>,
    /// Whether a log-in is bound to the server's certificate.
    pub channel_binding: ChannelBinding,
    /// Longest time to open a connection to one host.
    pub connect_timeout: Duration,
}

/// Why an upstream URL can't be used.
#[derive(Debug, thiserror::Error)]
pub enum UpstreamError {
    /// It is neither a URL nor a keyword string.
    #[error(
        "the upstream is neither a libpq URL nor a keyword string: {0}; write for example \
         postgres://user@127.0.0.1:5432/shop or 'host=/run/postgresql user=shop'"
    )]
    Syntax(String),
    /// It begins like a URL of something else than PostgreSQL, or like no URL at all.
    #[error(
        "the upstream {0}: write for example postgres://user@127.0.0.1:5432/shop, or keywords such as 'host=/run/postgresql user=shop'"
    )]
    Scheme(String),
    /// It names no host.
    #[error(
        "the upstream names no host; write for example host=127.0.0.1, or host=a,b for a primary and its standby"
    )]
    NoHost,
    /// The number of ports does not match the number of hosts.
    #[error("the upstream names {ports} ports for {hosts} hosts: give one port for all, or one for each")]
    Ports {
        /// Number of ports.
        ports: usize,
        /// Number of hosts.
        hosts: usize,
    },
    /// It asks for a random host.
    #[error(
        "load_balance_hosts=random can't be used: the gateway's hosts are one primary and its standbys, tried in order"
    )]
    LoadBalance,
    /// It has a parameter that would have no effect.
    #[error("the parameter {name} can't be used in a server's URL: {instead}")]
    Parameter {
        /// The parameter.
        name: String,
        /// What to do instead.
        instead: &'static str,
    },
    /// It limits the attempts to connect to no time, or not at all.
    #[error(
        "connect_timeout={0} can't be used: write 1 to {max} seconds",
        max = limits::CONNECT_TIMEOUT_SECONDS_MAX
    )]
    ConnectTimeout(String),
    /// It has two addresses for each host.
    #[error("host and hostaddr can't be used together: write the addresses as host, or leave hostaddr out")]
    TwoAddresses,
    /// It asks for a standby.
    #[error("target_session_attrs=read-only can't be used: the gateway writes; use any or read-write")]
    ReadOnly,
    /// It names more replicas than the gateway reads from.
    #[error("replicas names {0} hosts, and the gateway reads from at most {max}", max = limits::REPLICAS_MAX)]
    Replicas(usize),
    /// It asks for a primary among the replicas.
    #[error(
        "replicas asks for target_session_attrs=read-write: name standbys only, and the primary in upstream"
    )]
    ReplicasWrite,
    /// Its TLS parameters are wrong.
    #[error("TLS with the upstream: {0}")]
    Tls(#[from] tls::Error),
}

impl UpstreamConfig {
    /// The replicas that a URL or keyword string names, with one host each. Users and databases are those of clients.
    pub fn replicas(text: &str) -> Result<Vec<UpstreamConfig>, UpstreamError> {
        let all: UpstreamConfig = text.parse()?;
        if all.hosts.read_write {
            return Err(UpstreamError::ReplicasWrite);
        }
        let replicas: Vec<_> =
            all.hosts.each().map(|hosts| UpstreamConfig { hosts, ..all.clone() }).collect();
        match replicas.len() {
            0..=limits::REPLICAS_MAX => Ok(replicas),
            count => Err(UpstreamError::Replicas(count)),
        }
    }

    /// The same for a command that has a connection of its own: the driver knows more parameters.
    pub fn for_command(text: &str) -> Result<Self, UpstreamError> {
        if let Some(other) = other_scheme(text) {
            return Err(UpstreamError::Scheme(other));
        }
        let (rest, timeout) = conninfo::split(text, &[parameters::CONNECT_TIMEOUT]);
        let (rest, parameters) = conninfo::split(&rest, &tls::client::TLS_PARAMETERS);
        let config = tokio_postgres::Config::from_str(&rest).map_err(|error| {
            UpstreamError::Syntax(
                std::error::Error::source(&error).map_or(error.to_string(), ToString::to_string),
            )
        })?;
        if !config.get_hosts().is_empty() && !config.get_hostaddrs().is_empty() {
            return Err(UpstreamError::TwoAddresses);
        }
        let hosts = Hosts::new(&config)?;
        let tls = tls::Client::load(&parameters, hosts.in_turn())?;
        let user = config.get_user().map_or_else(current_user, str::to_owned);
        Ok(UpstreamConfig {
            hosts,
            database: config.get_dbname().unwrap_or(&user).to_owned(),
            user,
            password: config.get_password().map(|password| Password::new(password.to_vec())),
            tls,
            channel_binding: config.get_channel_binding(),
            connect_timeout: parameters::connect_timeout(&timeout)?,
        })
    }

    /// Takes over the certificates that `newer` has read, if it names the same.
    fn renew(&mut self, newer: &Self) {
        if let Some(tls) = &mut self.tls {
            *tls = tls.renewed(newer.tls.as_ref());
        }
    }

    /// The credential of the gateway's own log-in, and of clients that connect without a proof.
    pub fn credential(&self) -> Credential {
        Credential::new(None, Proven::Nothing, self.password.clone())
    }
}

impl FromStr for UpstreamConfig {
    type Err = UpstreamError;

    /// Parses the URL and reads the certificates that it names.
    fn from_str(text: &str) -> Result<Self, UpstreamError> {
        let names: Vec<&str> = parameters::names().collect();
        let (rest, found) = conninfo::split(text, &names);
        parameters::check(&found)?;
        UpstreamConfig::for_command(&rest)
    }
}

/// The beginning of a text that is neither a PostgreSQL URL nor a keyword string, without a password.
fn other_scheme(text: &str) -> Option<String> {
    match text.split_once("://") {
        Some(("postgres" | "postgresql", _)) => None,
        Some((scheme, _)) if !scheme.contains('=') => {
            Some(format!("begins with {scheme}:// instead of postgres://"))
        }
        None if !text.contains('=') => Some("has neither postgres:// nor keywords such as host=".to_owned()),
        _ => None,
    }
}

fn current_user() -> String {
    std::env::var("PGUSER").or_else(|_| std::env::var("USER")).unwrap_or_else(|_| "postgres".to_owned())
}

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
    /// the gateway's own log-ins.
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
    pub pack: bool,
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
    /// How long facts of the catalogue stay valid.
    pub catalogue_age: Duration,
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
    pub fn at(mut self, address: crate::net::Address) -> Config {
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
            pack: true,
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
            catalogue_age: Duration::from_millis(limits::CATALOGUE_AGE_MS),
            verdict_wait: Duration::from_millis(limits::VERDICT_WAIT_MS),
            message_bytes_max: limits::MESSAGE_BYTES_MAX,
            hba_file: None,
            users_file: None,
            auth_query: include_str!("../../sql/auth_query.sql").to_owned(),
            console: console::Users::default(),
            tables: Vec::new(),
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
    fn urls_and_keyword_strings() {
        let url: UpstreamConfig = "postgres://ann:pw@db:6000/shop".parse().unwrap();
        assert_eq!(url.hosts.to_string(), "db:6000");
        assert_eq!((url.user.as_str(), url.database.as_str()), ("ann", "shop"));
        assert_eq!(url.password.as_ref().map(Password::bytes), Some(&b"pw"[..]));
        assert!(!format!("{url:?}").contains("pw"));
        let socket: UpstreamConfig = "host=/run/postgresql user=ann".parse().unwrap();
        assert_eq!(socket.hosts.to_string(), "/run/postgresql/.s.PGSQL.5432");
        assert_eq!(socket.database, "ann");
        assert!("mysql://x".parse::<UpstreamConfig>().is_err());
    }

    #[test]
    fn parameters_without_effect_are_refused() {
        let parsed = |text: &str| text.parse::<UpstreamConfig>();
        for (text, word) in [
            ("postgres://a/x?options=-c%20work_mem%3D7MB", "ALTER ROLE"),
            ("host=a options='-c work_mem=7MB'", "ALTER ROLE"),
            ("postgres://a/x?application_name=gate", "application_name"),
            ("host=a keepalives_idle=5", "16 s"),
            ("host=a sslsni=0", "sslmode"),
            ("host=a service=shop", "host="),
            ("host=a gssencmode=require", "passwords"),
            ("host=a connect_timeout=0", "1 to"),
            ("host=a connect_timeout=soon", "seconds"),
            ("host=a hostaddr=10.0.0.1", "hostaddr"),
        ] {
            let error = parsed(text).unwrap_err().to_string();
            assert!(error.contains(word), "{text}: {error}");
        }
        for text in
            ["host=a gssencmode=disable sslcompression=0", "postgres://a/x?keepalives=1", "hostaddr=10.0.0.1"]
        {
            assert!(parsed(text).is_ok(), "{text}");
        }
        assert!(
            UpstreamConfig::for_command("host=a options='-c work_mem=7MB' application_name=gate").is_ok()
        );
        assert_eq!(parsed("host=a connect_timeout=2").unwrap().connect_timeout, Duration::from_secs(2));
    }

    #[test]
    fn tls_is_requested_as_by_libpq() {
        let asks = |text: &str| text.parse::<UpstreamConfig>().map(|upstream| upstream.tls.is_some());
        assert!(asks("postgres://a/x").unwrap(), "prefer is the default");
        assert!(asks("postgres://a/x?sslmode=require").unwrap());
        assert!(!asks("host=a sslmode=disable").unwrap());
        assert!(!asks("host=/run/postgresql sslmode=require").unwrap(), "a Unix socket needs no TLS");
        assert!(asks("postgres://a?sslmode=require&sslnegotiation=direct").unwrap());
        for (wrong, word) in [
            ("postgres://a?sslmode=maybe", "verify-full"),
            ("postgres://a?sslmode=allow", "prefer"),
            ("postgres://a?sslmode=verify-ca", "sslrootcert"),
            ("postgres://a?sslmode=require&sslrootcert=system", "verify-full"),
            ("postgres://a?sslmode=verify-full&sslrootcert=/nowhere.crt", "/nowhere.crt"),
            ("postgres://a?sslcert=/nowhere.crt", "sslkey"),
            ("postgres://a?sslnegotiation=direct", "sslmode=require"),
            ("postgres://a?sslnegotiation=quick", "direct"),
        ] {
            let error = asks(wrong).unwrap_err().to_string();
            assert!(error.contains(word), "{wrong}: {error}");
        }
    }

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
