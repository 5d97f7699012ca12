//! The address and the connections of buyers, for both kinds of server.

use std::io;

use super::answer::Answer;
use super::error::Error;
use super::{mariadb, postgres};

/// Address and login for buyers.
#[derive(Clone, Debug)]
pub enum Target {
    /// PostgreSQL, or a gateway in front of it.
    Postgres(postgres::Target),
    /// MariaDB, or a gateway in front of it.
    MariaDb(mariadb::Target),
}

impl Target {
    /// The same login at another address.
    pub fn at(&self, host: &str, port: u16) -> Self {
        match self {
            Self::Postgres(target) => Self::Postgres(target.at(host, port)),
            Self::MariaDb(target) => Self::MariaDb(target.at(host, port)),
        }
    }

    /// Host and port.
    pub fn address(&self) -> String {
        match self {
            Self::Postgres(target) => target.address(),
            Self::MariaDb(target) => target.address(),
        }
    }

    /// The SQL of a purchase.
    pub fn purchase_sql(&self) -> &'static str {
        match self {
            Self::Postgres(_) => postgres::purchase_sql(),
            Self::MariaDb(_) => mariadb::purchase_sql(),
        }
    }
}

/// One buyer's connection.
pub enum Connection {
    /// To PostgreSQL.
    Postgres(postgres::Connection),
    /// To MariaDB.
    MariaDb(mariadb::Connection),
}

impl Connection {
    /// Connects and logs in.
    pub async fn open(target: &Target) -> Result<Self, Error> {
        Ok(match target {
            Target::Postgres(target) => Self::Postgres(postgres::Connection::open(target).await?),
            Target::MariaDb(target) => Self::MariaDb(mariadb::Connection::open(target).await?),
        })
    }

    /// Buys one item.
    pub async fn buy(&mut self) -> io::Result<Answer> {
        match self {
            Self::Postgres(connection) => connection.buy().await,
            Self::MariaDb(connection) => connection.buy().await,
        }
    }
}
