//! The server that a URL or keyword string names: its hosts, the login and TLS.

pub mod conninfo;
pub mod hosts;
mod parameters;

use std::str::FromStr;
use std::time::Duration;

pub use hosts::Hosts;
use hotrow_auth::{Credential, Password, Proven};
use hotrow_core::limits;
use tokio_postgres::config::ChannelBinding;

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
    /// Whether a login is bound to the server's certificate.
    pub channel_binding: ChannelBinding,
    /// Longest time to open a connection to one host.
    pub connect_timeout: Duration,
}

/// Why an upstream URL cannot be used.
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
        "load_balance_hosts=random cannot be used: the gateway's hosts are one primary and its standbys, tried in order"
    )]
    LoadBalance,
    /// It has a parameter that would have no effect.
    #[error("the parameter {name} cannot be used in a server's URL: {instead}")]
    Parameter {
        /// The parameter.
        name: String,
        /// What to do instead.
        instead: &'static str,
    },
    /// It limits the attempts to connect to no time, or not at all.
    #[error(
        "connect_timeout={0} cannot be used: write 1 to {max} seconds",
        max = limits::CONNECT_TIMEOUT_SECONDS_MAX
    )]
    ConnectTimeout(String),
    /// It has two addresses for each host.
    #[error("host and hostaddr cannot be used together: write the addresses as host, or leave hostaddr out")]
    TwoAddresses,
    /// It asks for a standby.
    #[error("target_session_attrs=read-only cannot be used: the gateway writes; use any or read-write")]
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
    pub fn renew(&mut self, newer: &Self) {
        if let Some(tls) = &mut self.tls {
            *tls = tls.renewed(newer.tls.as_ref());
        }
    }

    /// The credential of the gateway's own login, and of clients that connect without a proof.
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
}
