//! An address for clients, read from a URL. Only this file holds a password, and none is ever printed.

use crate::error::{Error, refused};
use std::fmt;
use tokio_postgres::config::Host;
use tokio_postgres::{Client, NoTls};

/// Address, user and database of a connection.
#[derive(Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// A host name, an address, or the folder of a Unix socket.
    pub host: String,
    pub port: u16,
    user: String,
    pub database: String,
    password: Option<String>,
    tls: bool,
}

impl Endpoint {
    /// Reads a URL.
    pub fn parse(url: &str) -> Result<Self, Error> {
        let unusable = |reason: String| Error::Url { url: without_password(url), reason };
        if !url.starts_with("postgres://") && !url.starts_with("postgresql://") {
            return Err(unusable("it does not begin with postgres://".into()));
        }
        let config: tokio_postgres::Config =
            url.parse().map_err(|error: tokio_postgres::Error| unusable(error.to_string()))?;
        let host = match config.get_hosts() {
            [Host::Tcp(name)] => name.clone(),
            [Host::Unix(folder)] => folder.to_string_lossy().into_owned(),
            [] => return Err(unusable("it names no host".into())),
            _ => return Err(unusable("it names more than one host".into())),
        };
        let user = config.get_user().ok_or_else(|| unusable("it names no user".into()))?.to_owned();
        let password = config
            .get_password()
            .map(|password| String::from_utf8(password.to_vec()))
            .transpose()
            .map_err(|_| unusable("its password is not UTF-8".into()))?;
        let database = config.get_dbname().unwrap_or(&user).to_owned();
        let port = config.get_ports().first().copied().unwrap_or(5432);
        Ok(Self { host, port, user, password, database, tls: false })
    }

    /// The same user and database at another address, such as a gateway in front of this server.
    pub fn at(&self, host: &str, port: u16) -> Self {
        Self { host: host.to_owned(), port, ..self.clone() }
    }

    /// The same for libpq clients that require TLS.
    pub fn with_tls(&self) -> Self {
        Self { tls: true, ..self.clone() }
    }

    /// The configuration for a connection of this program.
    pub fn config(&self) -> tokio_postgres::Config {
        let mut config = tokio_postgres::Config::new();
        config.host(&self.host).port(self.port).user(&self.user).dbname(&self.database);
        config.application_name("hotrow-bench");
        if let Some(password) = &self.password {
            config.password(password);
        }
        config
    }

    /// Opens a connection of this program.
    pub async fn connect(&self) -> Result<Client, Error> {
        self.client().await.map_err(refused("connect"))
    }

    /// Opens a connection for a load. The error is the driver's own.
    pub async fn client(&self) -> Result<Client, tokio_postgres::Error> {
        let (client, connection) = self.config().connect(NoTls).await?;
        // If the connection ends, the next statement fails.
        tokio::spawn(connection);
        Ok(client)
    }

    /// The URL for a program that reads one from its environment. It does not escape names, because it is used only for
    /// servers and gateways that the benchmark has started.
    pub fn url(&self) -> String {
        format!("postgres://{}@{}:{}/{}", self.user, self.host, self.port, self.database)
    }

    /// The environment for a program that uses libpq, which hides the password from other users of the machine. TLS is off
    /// unless the technique measures it, so that all others have the same network cost.
    pub fn environment(&self) -> Vec<(&'static str, String)> {
        let mut variables = vec![
            ("PGHOST", self.host.clone()),
            ("PGPORT", self.port.to_string()),
            ("PGUSER", self.user.clone()),
            ("PGDATABASE", self.database.clone()),
            ("PGSSLMODE", if self.tls { "require" } else { "disable" }.into()),
            ("PGGSSENCMODE", "disable".into()),
            ("PGAPPNAME", "hotrow-bench".into()),
        ];
        variables.extend(self.password.clone().map(|password| ("PGPASSWORD", password)));
        variables
    }

    /// The line of PgBouncer's `[databases]` that sends the clients of every database here, as this user.
    pub fn pgbouncer_database(&self) -> String {
        let mut line = format!("* = host={} port={} user={}", self.host, self.port, quoted(&self.user));
        if let Some(password) = &self.password {
            line.push_str(&format!(" password={}", quoted(password)));
        }
        line
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}@{}:{}/{}", self.user, self.host, self.port, self.database)
    }
}

fn quoted(value: &str) -> String {
    format!("'{}'", value.replace('\'', "''"))
}

fn without_password(url: &str) -> String {
    match (url.split_once("://"), url.rsplit_once('@')) {
        (Some((scheme, _)), Some((_, address))) => format!("{scheme}://...@{address}"),
        _ => url.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::Endpoint;

    #[test]
    fn a_url_becomes_what_libpq_reads_from_its_environment() {
        let endpoint = Endpoint::parse("postgres://ann:s%40cret@db.example:6432/shop").unwrap();
        let environment = endpoint.environment();
        for expected in [
            ("PGHOST", "db.example"),
            ("PGPORT", "6432"),
            ("PGUSER", "ann"),
            ("PGPASSWORD", "s@cret"),
            ("PGDATABASE", "shop"),
        ] {
            assert!(environment.contains(&(expected.0, expected.1.to_owned())), "{expected:?} is missing");
        }
    }

    #[test]
    fn a_gateway_keeps_user_and_database() {
        let endpoint = Endpoint::parse("postgres://ann@db.example/shop").unwrap().at("127.0.0.1", 7000);
        assert_eq!(format!("{endpoint:?}"), "ann@127.0.0.1:7000/shop");
    }

    #[test]
    fn printed_endpoints_and_errors_hide_the_password() {
        let endpoint = Endpoint::parse("postgres://ann:cret@db.example/shop").unwrap();
        assert!(!format!("{endpoint:?}").contains("cret"));
        let error = Endpoint::parse("mysql://ann:cret@db.example/shop").unwrap_err();
        assert!(!error.to_string().contains("cret"), "{error}");
    }

    #[test]
    fn errors_name_the_missing_part() {
        assert!(Endpoint::parse("postgres://db.example/shop").unwrap_err().to_string().contains("no user"));
        assert!(Endpoint::parse("host=db.example").unwrap_err().to_string().contains("postgres://"));
    }
}
