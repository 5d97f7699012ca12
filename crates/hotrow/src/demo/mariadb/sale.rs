//! The table of the sale in MariaDB, its stock, and the check after a round. The server is private: it needs no cleaning.

use hotrow_mariadb::{PASSWORD, USER};
use hotrow_mysql_client::{Client, INSTALL, OwnError, Upstream};
use tokio::sync::Mutex;

use super::super::error::Error;
use super::super::facts::ServerFacts;
use super::super::stocktaking::Stocktaking;
use super::super::without_comment;

/// Options of the server: places for all buyers, the gateway and this connection.
pub const OPTIONS: [&str; 1] = ["--max-connections=600"];

/// The URL for the gateway, with the user that `demo_mariadb_open.sql` creates.
pub fn gateway_url(port: u16) -> String {
    format!("mysql://gate:gates-password@127.0.0.1:{port}")
}

/// The administrator and the buyers' user at this port.
pub fn users(port: u16) -> (Upstream, Upstream) {
    let url = |user, password| format!("mysql://{user}:{password}@127.0.0.1:{port}");
    let upstream = |url: String| url.parse().expect("neither name nor password needs an escape");
    (upstream(url(USER, PASSWORD)), upstream(url("buyer", "buyers-password")))
}

/// The demo's connection directly to the server, which creates and reads the table.
pub struct Sale(Mutex<Client>);

impl Sale {
    /// Connects as an administrator, and creates the table and the users.
    pub async fn open(administrator: &Upstream) -> Result<Self, Error> {
        let mut client = Client::open(administrator).await?;
        client.script(INSTALL).await?;
        client.script(include_str!("../../../sql/demo_mariadb_open.sql")).await?;
        Ok(Self(Mutex::new(client)))
    }

    /// Version and durability.
    pub async fn server(&self) -> Result<ServerFacts, Error> {
        let sql = without_comment(include_str!("../../../sql/demo_mariadb_server.sql"));
        let mut client = self.0.lock().await;
        let mut row = client.rows(sql).await?.into_iter().flatten().map(Option::unwrap_or_default);
        let mut next = || row.next().unwrap_or_default();
        let (binlog_format, sync_binlog, innodb_flush_log_at_trx_commit) = (next(), next(), next());
        let version = plain_version(client.version()).to_owned();
        Ok(ServerFacts::MariaDb { version, binlog_format, sync_binlog, innodb_flush_log_at_trx_commit })
    }

    /// Sets the stock and resets the sales.
    pub async fn restock(&self, stock: i32) -> Result<(), Error> {
        let sql = without_comment(include_str!("../../../sql/demo_mariadb_restock.sql"));
        self.0.lock().await.execute(&sql.replace(":stock", &stock.to_string())).await?;
        Ok(())
    }

    /// Compares the row with the answers of a round that began with `initial` items.
    pub async fn take_stock(&self, initial: i32, acknowledged: u64) -> Result<Stocktaking, Error> {
        let sql = without_comment(include_str!("../../../sql/demo_mariadb_shelf.sql"));
        let [stock, sold] = self.numbers(sql).await?;
        Ok(Stocktaking::of(initial, stock, sold, acknowledged))
    }

    /// Transactions in the binary log up to now.
    pub async fn transactions(&self) -> Result<u64, Error> {
        let sql = without_comment(include_str!("../../../sql/demo_mariadb_transactions.sql"));
        let [count] = self.numbers(sql).await?;
        Ok(count.unsigned_abs())
    }

    /// The numbers in the single row of a query.
    async fn numbers<const COUNT: usize>(&self, sql: &str) -> Result<[i64; COUNT], OwnError> {
        let rows = self.0.lock().await.rows(sql).await?;
        let numbers = rows.into_iter().flatten().filter_map(|value| value?.parse().ok());
        let numbers: Vec<i64> = numbers.collect();
        Ok(numbers.try_into().expect("the query returns this number of numbers"))
    }
}

/// The version without the prefix that MariaDB greets old replicas with, and without the packager's name.
fn plain_version(greeted: &str) -> &str {
    let version = greeted.strip_prefix("5.5.5-").unwrap_or(greeted);
    version.split_inclusive("-MariaDB").next().unwrap_or(version)
}

#[cfg(test)]
mod tests {
    use super::plain_version;

    #[test]
    fn versions_are_shown_without_prefix_and_packager() {
        assert_eq!(plain_version("5.5.5-10.11.19-MariaDB-0+deb12u1-log"), "10.11.19-MariaDB");
        assert_eq!(plain_version("11.4.5-MariaDB"), "11.4.5-MariaDB");
    }
}
