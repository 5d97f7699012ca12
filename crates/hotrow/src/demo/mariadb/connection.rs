//! One buyer's connection to MariaDB: logs in, and buys with the same text each time.

use std::io;

use hotrow_mysql_client::{Client, OwnError, Upstream};

use super::super::answer::Answer;
use super::super::error::Error;
use super::super::without_comment;

const BUY: &str = include_str!("../../../sql/demo_mariadb_buy.sql");

const FIRST: &str = include_str!("../../../sql/demo_mariadb_first.sql");

/// The purchase's SQL.
pub fn purchase_sql() -> &'static str {
    without_comment(BUY)
}

/// Address and login for buyers.
#[derive(Clone, Debug)]
pub struct Target(Upstream);

impl Target {
    /// The buyers' user at the server of `upstream`.
    pub fn of(upstream: Upstream) -> Self {
        Self(upstream)
    }

    /// The same login at another address.
    pub fn at(&self, host: &str, port: u16) -> Self {
        Self(Upstream { host: host.to_owned(), port, ..self.0.clone() })
    }

    /// Host and port.
    pub fn address(&self) -> String {
        self.0.to_string()
    }
}

/// A connection of a buyer.
pub struct Connection(Client);

impl Connection {
    /// Connects, logs in and runs a first statement, as the connections of an application's pool have done: with it, the gateway
    /// finds the lane for the session.
    pub async fn open(Target(upstream): &Target) -> Result<Self, Error> {
        let opened = async {
            let mut client = Client::open(upstream).await?;
            client.execute(without_comment(FIRST)).await?;
            Ok::<_, OwnError>(Self(client))
        };
        let address = upstream.to_string();
        opened.await.map_err(|error| match error.lost() {
            Ok(source) => Error::Line { address, source },
            Err(answer) => Error::TurnedAway { address, answer },
        })
    }

    /// Buys one item.
    pub async fn buy(&mut self) -> io::Result<Answer> {
        match self.0.execute(purchase_sql()).await {
            Ok(ok) if ok.affected == 1 => Ok(Answer::Sold),
            Ok(_) => Ok(Answer::Refused),
            Err(OwnError::Refused(error)) => Ok(Answer::Failed(error.to_string())),
            Err(error) => Err(error.lost().unwrap_or_else(io::Error::other)),
        }
    }
}
