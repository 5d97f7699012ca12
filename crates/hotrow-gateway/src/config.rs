//! What the gateway runs with: resolved once by the program, passed as values.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use hotrow_core::limits;
use tokio_postgres::config::Host;

use crate::net::Address;

/// The server behind the gateway.
#[derive(Clone, Debug)]
pub struct Upstream {
    /// Where it listens.
    pub address: Address,
    /// The user of the gateway's own commands, and the one the password is for.
    pub user: String,
    /// The password, if the URL had one.
    pub password: Option<Vec<u8>>,
    /// The database of the gateway's own commands.
    pub database: String,
}

/// Why an upstream URL can't be used.
#[derive(Debug, thiserror::Error)]
pub enum UpstreamError {
    /// It is neither a URL nor a keyword string.
    #[error(
        "the upstream is neither a libpq URL nor a keyword string: {0}; write for example postgres://user@127.0.0.1:5432/shop or 'host=/run/postgresql user=shop'"
    )]
    Syntax(String),
    /// It names several servers or none.
    #[error("the upstream must name exactly one host, and this names {0}")]
    Hosts(usize),
    /// TLS is asked for.
    #[error(
        "sslmode={0} asks for TLS towards the server, which this version does not speak; use sslmode=disable or prefer, or a Unix socket"
    )]
    Tls(&'static str),
}

impl FromStr for Upstream {
    type Err = UpstreamError;

    fn from_str(text: &str) -> Result<Self, UpstreamError> {
        let config = tokio_postgres::Config::from_str(text).map_err(|error| {
            UpstreamError::Syntax(
                std::error::Error::source(&error).map_or(error.to_string(), ToString::to_string),
            )
        })?;
        if config.get_ssl_mode() == tokio_postgres::config::SslMode::Require {
            return Err(UpstreamError::Tls("require"));
        }
        let port = config.get_ports().first().copied().unwrap_or(5432);
        let address = match config.get_hosts() {
            [] => match config.get_hostaddrs() {
                [address] => Address::Tcp(address.to_string(), port),
                addresses => return Err(UpstreamError::Hosts(addresses.len())),
            },
            [Host::Tcp(host)] => Address::Tcp(host.clone(), port),
            [Host::Unix(directory)] => Address::Unix(directory.join(format!(".s.PGSQL.{port}"))),
            hosts => return Err(UpstreamError::Hosts(hosts.len())),
        };
        let user = config.get_user().map_or_else(current_user, str::to_owned);
        Ok(Upstream {
            address,
            database: config.get_dbname().unwrap_or(&user).to_owned(),
            user,
            password: config.get_password().map(<[u8]>::to_vec),
        })
    }
}

fn current_user() -> String {
    std::env::var("PGUSER").or_else(|_| std::env::var("USER")).unwrap_or_else(|_| "postgres".to_owned())
}

/// Where the gateway listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Listen {
    /// A loopback address.
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
    /// It is open to the network.
    #[error(
        "{0} can be reached from other machines, and clients are not asked for a password yet: listen on 127.0.0.1, [::1] or a Unix socket"
    )]
    NotLoopback(SocketAddr),
}

impl FromStr for Listen {
    type Err = ListenError;

    fn from_str(text: &str) -> Result<Self, ListenError> {
        if text.starts_with('/') {
            return Ok(Listen::Unix(PathBuf::from(text)));
        }
        let text = text.replace("localhost:", "127.0.0.1:");
        let address = SocketAddr::from_str(&text).map_err(|_| ListenError::Syntax(text.clone()))?;
        if !address.ip().is_loopback() {
            return Err(ListenError::NotLoopback(address));
        }
        Ok(Listen::Tcp(address))
    }
}

/// All that the gateway runs with.
#[derive(Clone, Debug)]
pub struct Config {
    /// The server.
    pub upstream: Upstream,
    /// Where clients connect.
    pub listen: Vec<Listen>,
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
    /// How long the gateway asks what became of a commit.
    pub resolve_timeout: Duration,
    /// How long a stop waits for what is under way.
    pub drain_timeout: Duration,
    /// How long a unit may be about to wait in a lane before it is refused.
    pub queue_wait: Duration,
    /// How long what the catalogue said is believed.
    pub catalogue_age: Duration,
    /// Bytes of one message from a client.
    pub message_bytes_max: usize,
}

impl Config {
    /// The defaults of [`limits`] for this server and these addresses.
    pub fn new(upstream: Upstream, listen: Vec<Listen>) -> Self {
        Config {
            upstream,
            listen,
            pack: true,
            lanes: limits::LANES,
            clients_max: limits::CLIENTS_MAX,
            held_connections_max: limits::HELD_CONNECTIONS_MAX,
            held_wait: Duration::from_millis(limits::HELD_WAIT_MS),
            held_idle: Duration::from_millis(limits::HELD_IDLE_MS),
            lane_lock_timeout: Duration::from_millis(limits::LANE_LOCK_TIMEOUT_MS),
            server_wait: Duration::from_millis(limits::SERVER_WAIT_MS),
            resolve_timeout: Duration::from_millis(limits::RESOLVE_TIMEOUT_MS),
            drain_timeout: Duration::from_millis(limits::DRAIN_TIMEOUT_MS),
            queue_wait: Duration::from_millis(limits::QUEUE_WAIT_MS),
            catalogue_age: Duration::from_millis(limits::CATALOGUE_AGE_MS),
            message_bytes_max: limits::MESSAGE_BYTES_MAX,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_and_keyword_strings() {
        let url: Upstream = "postgres://ann:pw@db:6000/shop".parse().unwrap();
        assert_eq!(url.address, Address::Tcp("db".into(), 6000));
        assert_eq!((url.user.as_str(), url.database.as_str()), ("ann", "shop"));
        assert_eq!(url.password.as_deref(), Some(&b"pw"[..]));
        let socket: Upstream = "host=/run/postgresql user=ann".parse().unwrap();
        assert_eq!(socket.address, Address::Unix("/run/postgresql/.s.PGSQL.5432".into()));
        assert_eq!(socket.database, "ann");
        assert!("mysql://x".parse::<Upstream>().is_err());
        assert!("postgres://a,b/x".parse::<Upstream>().is_err());
        assert!("postgres://a/x?sslmode=require".parse::<Upstream>().is_err());
    }

    #[test]
    fn only_loopback_is_listened_on() {
        assert!("127.0.0.1:6432".parse::<Listen>().is_ok());
        assert!("[::1]:6432".parse::<Listen>().is_ok());
        assert!("localhost:6432".parse::<Listen>().is_ok());
        assert_eq!("/tmp/s".parse::<Listen>().unwrap(), Listen::Unix("/tmp/s".into()));
        assert!(matches!("0.0.0.0:6432".parse::<Listen>(), Err(ListenError::NotLoopback(_))));
        assert!(matches!("6432".parse::<Listen>(), Err(ListenError::Syntax(_))));
    }
}
