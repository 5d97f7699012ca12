//! An address that clients connect to, as read from a URL; the one place where a password is held, and none is ever printed.

use crate::error::{Error, refused};
use std::fmt;
use tokio_postgres::config::Host;
use tokio_postgres::{Client, NoTls};

/// Where to connect, as whom, and to which database.
#[derive(Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// A name, an address, or the folder of a Unix socket.
    pub host: String,
    /// Its port.
    pub port: u16,
    user: String,
    /// The database.
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

    /// The same user and database at another address: a gateway before this server.
    pub fn at(&self, host: &str, port: u16) -> Self {
        Self { host: host.to_owned(), port, ..self.clone() }
    }

    /// The same for clients that insist on TLS, as long as they use libpq.
    pub fn with_tls(&self) -> Self {
        Self { tls: true, ..self.clone() }
    }

    /// How to connect to it from this program.
    pub fn config(&self) -> tokio_postgres::Config {
        let mut config = tokio_postgres::Config::new();
        config.host(&self.host).port(self.port).user(&self.user).dbname(&self.database);
        config.application_name("hotrow-bench");
        if let Some(password) = &self.password {
            config.password(password);
        }
        config
    }

    /// A connection of this program's own.
    pub async fn connect(&self) -> Result<Client, Error> {
        self.client().await.map_err(refused("connect"))
    }

    /// A connection for a load, with the driver's own error.
    pub async fn client(&self) -> Result<Client, tokio_postgres::Error> {
        let (client, connection) = self.config().connect(NoTls).await?;
        // Its end shows up as an error of the next statement.
        tokio::spawn(connection);
        Ok(client)
    }

    /// How to connect to it from a program that wants a URL in its environment. Names with letters that a URL has to escape are not
    /// needed here: this is for servers and gateways that the benchmark has started.
    pub fn url(&self) -> String {
        format!("postgres://{}@{}:{}/{}", self.user, self.host, self.port, self.database)
    }

    /// How to connect to it from a program that uses libpq, out of sight of other users of the machine.
    ///
    /// TLS is off unless it is what a technique is about, so that all others pay the same for the wire.
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

    /// The line of PgBouncer's `[databases]` that sends every database here, as this user.
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
    fn no_password_is_shown_by_what_is_printed() {
        let endpoint = Endpoint::parse("postgres://ann:cret@db.example/shop").unwrap();
        assert!(!format!("{endpoint:?}").contains("cret"));
        let error = Endpoint::parse("mysql://ann:cret@db.example/shop").unwrap_err();
        assert!(!error.to_string().contains("cret"), "{error}");
    }

    #[test]
    fn what_is_missing_is_said() {
        assert!(Endpoint::parse("postgres://db.example/shop").unwrap_err().to_string().contains("no user"));
        assert!(Endpoint::parse("host=db.example").unwrap_err().to_string().contains("postgres://"));
    }
}
