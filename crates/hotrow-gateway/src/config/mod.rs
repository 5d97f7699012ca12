//! What the gateway runs with: resolved once by the program, passed as values.

pub mod conninfo;
mod hosts;
mod pool_table;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use hosts::Hosts;
use hotrow_auth::{Credential, Password, Proven};
use hotrow_core::{console, limits};
pub use pool_table::PoolTable;
use tokio_postgres::config::ChannelBinding;

use crate::net::tls;

/// The server behind the gateway.
#[derive(Clone, Debug)]
pub struct Upstream {
    /// Where it listens: one host, or several of which one is the primary.
    pub hosts: Hosts,
    /// The user of the gateway's own commands, and the one the password is for.
    pub user: String,
    /// The password, if the URL had one.
    pub password: Option<Password>,
    /// The database of the gateway's own commands.
    pub database: String,
    /// How it is asked for TLS; none for not at all.
    pub tls: Option<tls::Client>,
    /// Whether a log-in is bound to its certificate.
    pub channel_binding: ChannelBinding,
}

/// Why an upstream URL can't be used.
#[derive(Debug, thiserror::Error)]
pub enum UpstreamError {
    /// It is neither a URL nor a keyword string.
    #[error(
        "the upstream is neither a libpq URL nor a keyword string: {0}; write for example postgres://user@127.0.0.1:5432/shop or 'host=/run/postgresql user=shop'"
    )]
    Syntax(String),
    /// It names no server.
    #[error(
        "the upstream names no host; write for example host=127.0.0.1, or host=a,b for a primary and its standby"
    )]
    NoHost,
    /// Hosts and ports don't go together.
    #[error("the upstream names {ports} ports for {hosts} hosts: give one port for all, or one for each")]
    Ports {
        /// How many ports.
        ports: usize,
        /// How many hosts.
        hosts: usize,
    },
    /// Hosts are to be taken at random.
    #[error(
        "load_balance_hosts=random can't be used: the gateway's hosts are one primary and its standbys, tried in order"
    )]
    LoadBalance,
    /// Only a standby will do.
    #[error("target_session_attrs=read-only can't be used: the gateway writes; use any or read-write")]
    ReadOnly,
    /// Its words about TLS can't be followed.
    #[error("TLS with the upstream: {0}")]
    Tls(#[from] tls::Error),
}

impl Upstream {
    /// By what the gateway itself logs in, and clients who are let in without a proof.
    pub fn credential(&self) -> Credential {
        Credential::new(None, Proven::Nothing, self.password.clone())
    }
}

impl FromStr for Upstream {
    type Err = UpstreamError;

    /// Reads the URL, and the certificates that it names.
    fn from_str(text: &str) -> Result<Self, UpstreamError> {
        let (rest, parameters) = conninfo::split(text, &tls::client::TLS_PARAMETERS);
        let config = tokio_postgres::Config::from_str(&rest).map_err(|error| {
            UpstreamError::Syntax(
                std::error::Error::source(&error).map_or(error.to_string(), ToString::to_string),
            )
        })?;
        let hosts = Hosts::new(&config)?;
        let tls = tls::Client::load(&parameters, hosts.in_turn())?;
        let user = config.get_user().map_or_else(current_user, str::to_owned);
        Ok(Upstream {
            hosts,
            database: config.get_dbname().unwrap_or(&user).to_owned(),
            user,
            password: config.get_password().map(|password| Password::new(password.to_vec())),
            tls,
            channel_binding: config.get_channel_binding(),
        })
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

/// Why an address can't be listened on.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    /// It is no address.
    #[error(
        "{0:?} is neither HOST:PORT nor the path of a Unix socket; write for example 127.0.0.1:6432 or /run/hotrow/.s.PGSQL.6432"
    )]
    Syntax(String),
}

impl FromStr for Listen {
    type Err = ListenError;

    fn from_str(text: &str) -> Result<Self, ListenError> {
        if text.starts_with('/') {
            return Ok(Listen::Unix(PathBuf::from(text)));
        }
        let text = text.replace("localhost:", "127.0.0.1:");
        let address = SocketAddr::from_str(&text).map_err(|_| ListenError::Syntax(text.clone()))?;
        Ok(Listen::Tcp(address))
    }
}

/// A setting as people see it.
#[derive(Clone, Debug)]
pub struct Shown {
    /// Its name.
    pub name: &'static str,
    /// What it is, without passwords.
    pub value: String,
    /// What it is if nobody says anything.
    pub default: String,
    /// Its unit.
    pub unit: &'static str,
    /// Only a new start changes it.
    pub needs_restart: bool,
}

/// All that the gateway runs with.
#[derive(Clone, Debug)]
pub struct Config {
    /// The server.
    pub upstream: Upstream,
    /// Where clients connect.
    pub listen: Vec<Listen>,
    /// What clients are shown that ask for TLS; without it they are told that there is none.
    pub tls: Option<Arc<tls::Server>>,
    /// Whether anything is packed at all.
    pub pack: bool,
    /// Lanes for writes of one pool; as many again for reads.
    pub lanes: usize,
    /// Clients at once.
    pub clients_max: usize,
    /// Upstream connections held by sessions at once.
    pub held_connections_max: usize,
    /// How long a session waits for one.
    pub held_wait: Duration,
    /// How long an unused one is kept.
    pub held_idle: Duration,
    /// How long a statement in a lane waits for an outsider's lock.
    pub lane_lock_timeout: Duration,
    /// How long units that were not sent wait for the server.
    pub server_wait: Duration,
    /// How long a stop waits for what is under way.
    pub drain_timeout: Duration,
    /// How long a unit may be about to wait in a lane before it is refused.
    pub queue_wait: Duration,
    /// How long what the catalogue said is believed.
    pub catalogue_age: Duration,
    /// Bytes of one message from a client.
    pub message_bytes_max: usize,
    /// The list of who may come how; without one, this machine is trusted.
    pub hba_file: Option<PathBuf>,
    /// The list of users and their secrets.
    pub users_file: Option<PathBuf>,
    /// How the server is asked for the secret of a user who isn't in that list; not at all if it is empty.
    pub auth_query: String,
    /// The users of the console.
    pub console: console::Users,
    /// What is different for some databases and users.
    pub tables: Vec<Arc<PoolTable>>,
    /// All settings as they were typed, for people.
    pub shown: Vec<Shown>,
    /// The one of them that is in force here; none in the gateway's own configuration.
    pub table: Option<Arc<PoolTable>>,
}

impl Config {
    /// The configuration for a user in a database: the first table that fits is in force.
    pub fn of(&self, database: &str, user: &str) -> Config {
        let mut config = self.clone();
        if let Some(table) = self.tables.iter().find(|table| table.fits(database, user)) {
            table.apply(&mut config);
            config.table = Some(table.clone());
        }
        config
    }

    /// What a user may do on the console, if anything.
    pub fn console_access(&self, user: &str, is_local: bool) -> Option<console::Access> {
        self.console.access(user, is_local, &self.upstream.user)
    }

    /// The defaults of [`limits`] for this server and these addresses.
    pub fn new(upstream: Upstream, listen: Vec<Listen>) -> Self {
        Config {
            upstream,
            listen,
            tls: None,
            pack: true,
            lanes: limits::LANES,
            clients_max: limits::CLIENTS_MAX,
            held_connections_max: limits::HELD_CONNECTIONS_MAX,
            held_wait: Duration::from_millis(limits::HELD_WAIT_MS),
            held_idle: Duration::from_millis(limits::HELD_IDLE_MS),
            lane_lock_timeout: Duration::from_millis(limits::LANE_LOCK_TIMEOUT_MS),
            server_wait: Duration::from_millis(limits::SERVER_WAIT_MS),
            drain_timeout: Duration::from_millis(limits::DRAIN_TIMEOUT_MS),
            queue_wait: Duration::from_millis(limits::QUEUE_WAIT_MS),
            catalogue_age: Duration::from_millis(limits::CATALOGUE_AGE_MS),
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

    /// How long the gateway asks what became of a commit: longer than for anything else, since nobody can repeat it.
    pub fn resolve_timeout(&self) -> Duration {
        self.server_wait * limits::RESOLVE_WAITS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_and_keyword_strings() {
        let url: Upstream = "postgres://ann:pw@db:6000/shop".parse().unwrap();
        assert_eq!(url.hosts.to_string(), "db:6000");
        assert_eq!((url.user.as_str(), url.database.as_str()), ("ann", "shop"));
        assert_eq!(url.password.as_ref().map(Password::bytes), Some(&b"pw"[..]));
        assert!(!format!("{url:?}").contains("pw"));
        let socket: Upstream = "host=/run/postgresql user=ann".parse().unwrap();
        assert_eq!(socket.hosts.to_string(), "/run/postgresql/.s.PGSQL.5432");
        assert_eq!(socket.database, "ann");
        assert!("mysql://x".parse::<Upstream>().is_err());
    }

    #[test]
    fn tls_is_asked_for_as_libpq_does() {
        let asks = |text: &str| text.parse::<Upstream>().map(|upstream| upstream.tls.is_some());
        assert!(asks("postgres://a/x").unwrap(), "prefer is the default");
        assert!(asks("postgres://a/x?sslmode=require").unwrap());
        assert!(!asks("host=a sslmode=disable").unwrap());
        assert!(!asks("host=/run/postgresql sslmode=require").unwrap(), "a Unix socket needs none");
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
        assert!("0.0.0.0:6432".parse::<Listen>().is_ok(), "who may come there is checked at the start");
        assert!(matches!("6432".parse::<Listen>(), Err(ListenError::Syntax(_))));
    }
}
