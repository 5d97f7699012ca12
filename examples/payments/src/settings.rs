//! The settings in the environment, read once.

use std::collections::HashSet;
use std::env::{VarError, var};
use std::net::SocketAddr;
use std::time::Duration;

use crate::gateway::Gateway;

/// The reason why the program cannot start.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A setting without a default is missing.
    #[error("{0} is not set: {1}")]
    Missing(&'static str, &'static str),
    /// A setting is invalid.
    #[error("{0}: {1}")]
    Wrong(&'static str, String),
}

/// The settings of the service and of its workers.
#[derive(Clone)]
pub struct Settings {
    /// The address of the database.
    pub database: tokio_postgres::Config,
    /// The most connections to it.
    pub connections: usize,
    /// The address where the service listens.
    pub listen: SocketAddr,
    /// The addresses of the payment gateways: one for all, or one for each.
    pub gateways: Vec<String>,
    /// The secret with which each payment gateway signs its webhooks.
    pub gateway_secrets: Vec<String>,
    /// The time limit for an answer of a payment gateway. It refuses orders that are twice as old.
    pub gateway_limit: Duration,
    /// A program that has worked on a request for this time without an answer is taken to be dead.
    pub key_lease: Duration,
    /// The times after which a worker looks at an unfinished attempt: after its begin, then after each look.
    pub reconcile_after: Vec<Duration>,
    /// The times after which a notification that was not taken is sent again.
    pub notify_again_after: Vec<Duration>,
}

impl Settings {
    /// Reads them from the environment.
    pub fn read() -> Result<Self, Error> {
        let database = needed("DATABASE_URL", "the database, as in postgres://user@host/database")?;
        Ok(Self {
            database: parse("DATABASE_URL", &database)?,
            connections: or("CONNECTIONS", "64")?,
            listen: or("LISTEN", "127.0.0.1:8090")?,
            gateways: text("GATEWAYS_URL", "http://127.0.0.1:8091")?.split(',').map(str::to_owned).collect(),
            gateway_secrets: gateway_secrets(Gateway::ALL.len())?,
            gateway_limit: seconds("GATEWAY_SECONDS", "10")?[0],
            key_lease: seconds("KEY_SECONDS", "60")?[0],
            reconcile_after: seconds("RECONCILE_SECONDS", "60,300,3600,86400")?,
            notify_again_after: seconds("NOTIFY_SECONDS", "60,300,300,600,600,3600,3600,21600")?,
        })
    }
}

/// The secrets with which the payment gateways sign their webhooks. No two share a secret, because each could then report
/// outcomes of the other's attempts.
pub fn gateway_secrets(gateways: usize) -> Result<Vec<String>, Error> {
    const NAME: &str = "GATEWAY_SECRETS";
    let text = needed(NAME, "the secrets for the payment gateways' webhooks, separated by commas")?;
    let secrets: Vec<_> = text.split(',').map(str::to_owned).collect();
    if secrets.len() != gateways {
        return Err(Error::Wrong(NAME, format!("{} secrets, where {gateways} are needed", secrets.len())));
    }
    let different: HashSet<_> = secrets.iter().collect();
    if different.len() < gateways || different.iter().any(|secret| secret.is_empty()) {
        return Err(Error::Wrong(NAME, "each payment gateway needs its own secret".to_owned()));
    }
    Ok(secrets)
}

/// A setting without a default.
pub fn needed(name: &'static str, what: &'static str) -> Result<String, Error> {
    match var(name) {
        Ok(value) if !value.is_empty() => Ok(value),
        Ok(_) | Err(VarError::NotPresent) => Err(Error::Missing(name, what)),
        Err(error) => Err(Error::Wrong(name, error.to_string())),
    }
}

/// A setting with a default.
pub fn text(name: &'static str, default: &str) -> Result<String, Error> {
    match var(name) {
        Ok(value) => Ok(value),
        Err(VarError::NotPresent) => Ok(default.to_owned()),
        Err(error) => Err(Error::Wrong(name, error.to_string())),
    }
}

/// A setting with a default that is not just text.
pub fn or<T: std::str::FromStr<Err: ToString>>(name: &'static str, default: &str) -> Result<T, Error> {
    parse(name, &text(name, default)?)
}

fn parse<T: std::str::FromStr<Err: ToString>>(name: &'static str, value: &str) -> Result<T, Error> {
    value.parse().map_err(|error: T::Err| Error::Wrong(name, error.to_string()))
}

fn seconds(name: &'static str, default: &str) -> Result<Vec<Duration>, Error> {
    let one = |value: &str| {
        let number: f64 = parse(name, value.trim())?;
        Duration::try_from_secs_f64(number).map_err(|error| Error::Wrong(name, error.to_string()))
    };
    text(name, default)?.split(',').map(one).collect()
}
