//! The doctor's connection to a MariaDB server: read-only, with short time limits, and one query per question.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use hotrow_mysql_client::{Client, Upstream};
use hotrow_mysql_core::questions::{Questions, Rows, facts, literal};

use crate::mariadb::error::Error;
use crate::mariadb::recording::{
    Abilities, Counters, Facts, Lock, Recorder, Sample, Session, TableName, Transaction, table_name,
};

/// The longest wait for an answer. The server ends a query before.
const PATIENCE_SECONDS: u64 = 10;
/// The numbers of errors: the query was ended after its time, and a privilege is missing.
const TIMED_OUT: u16 = 1969;
const DENIED: u16 = 1227;

/// A connection to the server.
pub struct Server {
    client: Client,
    pub abilities: Abilities,
    /// The time of the queries so far. It contains the way to the server and back.
    pub own: Duration,
}

impl Server {
    /// Connects, limits the session and looks what the server offers.
    pub async fn connect(upstream: &Upstream) -> Result<Self, Error> {
        let opened = patiently(Client::open(upstream)).await?;
        let client = opened.map_err(Error::Connect)?;
        let mut abilities = Abilities { version: version(client.version()), ..Abilities::default() };
        let mut server = Server { client, abilities: Abilities::default(), own: Duration::ZERO };
        server.ask("the character set", "set names utf8mb4").await?;
        let settings = include_str!("../../sql/mariadb/settings.sql");
        server.ask("its settings", settings.trim_end().trim_end_matches(';')).await?;
        let rows = server.ask("its features", include_str!("../../sql/mariadb/abilities.sql")).await?;
        let [row] = rows.as_slice() else { return Err(Error::Answer("its features")) };
        let text = |place: usize| row.get(place).cloned().flatten();
        let is_set = |place: usize| text(place).as_deref() == Some("1");
        abilities.database = text(0);
        abilities.account = account(&text(1).unwrap_or_default());
        abilities.thread = number(row.get(2));
        abilities.has_binary_log = is_set(3);
        abilities.binlog_format = text(4).unwrap_or_default();
        abilities.rolls_back_on_timeout = is_set(5);
        abilities.tracks_transactions = is_set(6);
        let routines = server.ask("routines", include_str!("../../sql/mariadb/routines.sql")).await?;
        abilities.routines = routines.into_iter().flatten().flatten().collect::<BTreeSet<_>>();
        abilities.sees_sessions = match server.transactions().await {
            Err(error) if error.number() == Some(DENIED) => false,
            transactions => transactions.map(|_| true)?,
        };
        server.abilities = abilities;
        Ok(server)
    }

    /// The rows of a query.
    async fn ask(&mut self, what: &'static str, sql: &str) -> Result<Rows, Error> {
        let begun = Instant::now();
        let rows = patiently(self.client.rows(sql)).await;
        self.own += begun.elapsed();
        rows?.map_err(|error| Error::query(what, error))
    }

    /// The counters at this moment.
    pub async fn counters(&mut self) -> Result<Counters, Error> {
        let rows = self.ask("counters", include_str!("../../sql/mariadb/counters.sql")).await?;
        let counter = |row: Vec<Option<String>>| match row.as_slice() {
            [Some(name), Some(value)] => Some((name.clone(), value.parse().ok()?)),
            _ => None,
        };
        Ok(rows.into_iter().filter_map(counter).collect())
    }

    /// One sample. None if the server took too long, which happens on a server without a free core.
    pub async fn sample(&mut self, recorder: &mut Recorder) -> Result<Option<Sample>, Error> {
        match self.try_sample(recorder).await {
            Err(error) if error.number() == Some(TIMED_OUT) => Ok(None),
            sample => sample.map(Some),
        }
    }

    async fn try_sample(&mut self, recorder: &mut Recorder) -> Result<Sample, Error> {
        if !self.abilities.sees_sessions {
            return Ok(Sample::default());
        }
        // Transactions and locks come from one copy, which the server keeps until nobody has asked for a tenth of a second.
        let transactions = self.transactions().await?;
        let locks = match transactions.iter().any(|transaction| transaction.waits_for.is_some()) {
            true => self.ask("locks", include_str!("../../sql/mariadb/locks.sql")).await?,
            false => Rows::new(),
        };
        let sessions = self.ask("sessions", include_str!("../../sql/mariadb/sessions.sql")).await?;
        let session = |row: Vec<Option<String>>| {
            let [thread, database, state, text, is_cut] = <[_; 5]>::try_from(row).ok()?;
            let is_cut = is_cut.as_deref() == Some("1");
            let statement = text.and_then(|text| recorder.statement(database, &text, is_cut));
            Some(Session { thread: number(Some(&thread)), state: state.unwrap_or_default(), statement })
        };
        Ok(Sample {
            sessions: sessions.into_iter().filter_map(session).collect(),
            transactions,
            locks: locks.into_iter().filter_map(lock).collect(),
        })
    }

    async fn transactions(&mut self) -> Result<Vec<Transaction>, Error> {
        let rows = self.ask("transactions", include_str!("../../sql/mariadb/transactions.sql")).await?;
        let transaction = |row: Vec<Option<String>>| {
            let [id, thread, waits_for, is_running, has_changed, age] = <[_; 6]>::try_from(row).ok()?;
            let is_set = |value: Option<String>| value.as_deref() == Some("1");
            Some(Transaction {
                id: id?,
                thread: number(Some(&thread)),
                waits_for,
                is_running: is_set(is_running),
                has_changed: is_set(has_changed),
                age: number(Some(&age)),
            })
        };
        Ok(rows.into_iter().filter_map(transaction).collect())
    }

    /// The facts about a table.
    pub async fn facts(&mut self, name: &TableName, by_routine: bool) -> Result<Facts, Error> {
        let questions = Questions::about(&name.database, &name.table);
        let definition = if by_routine { &questions.by_routine } else { &questions.definition };
        let answer = self.ask("a table", definition).await?;
        let table = match answer.into_iter().flatten().flatten().next() {
            Some(definition) => {
                let columns = self.ask("a table", &questions.columns).await?;
                Some(facts(definition, columns, &self.ask("a table", &questions.keys).await?))
            }
            None => None,
        };
        let shows_triggers = by_routine || table.is_none() || self.shows_triggers(name).await?;
        Ok(Facts { table, shows_triggers })
    }

    async fn shows_triggers(&mut self, name: &TableName) -> Result<bool, Error> {
        let sql = include_str!("../../sql/mariadb/shows_triggers.sql")
            .replace("{grantee}", &literal(&self.abilities.account))
            .replace("{database}", &literal(&name.database))
            .replace("{table}", &literal(&name.table));
        let answer = self.ask("privileges", &sql).await?;
        Ok(answer.into_iter().flatten().flatten().next().as_deref() == Some("1"))
    }

    /// The columns of an index.
    pub async fn index(&mut self, name: &TableName, index: &str) -> Result<Vec<String>, Error> {
        let sql = include_str!("../../sql/mariadb/index.sql")
            .replace("{database}", &literal(&name.database))
            .replace("{table}", &literal(&name.table))
            .replace("{index}", &literal(index));
        Ok(self.ask("an index", &sql).await?.into_iter().flatten().flatten().collect())
    }
}

async fn patiently<T>(work: impl Future<Output = T>) -> Result<T, Error> {
    let patience = Duration::from_secs(PATIENCE_SECONDS);
    tokio::time::timeout(patience, work).await.map_err(|_| Error::Slow(PATIENCE_SECONDS))
}

/// The version, without what MariaDB puts before it for the replicas of old MySQL servers.
fn version(greeting: &str) -> String {
    greeting.strip_prefix("5.5.5-").unwrap_or(greeting).to_owned()
}

fn number(value: Option<&Option<String>>) -> u64 {
    value.and_then(|text| text.as_deref()?.parse().ok()).unwrap_or_default()
}

fn lock(row: Vec<Option<String>>) -> Option<Lock> {
    let [id, transaction, mode, table, index, data] = <[_; 6]>::try_from(row).ok()?;
    let (id, transaction, mode) = (id?, transaction?, mode.unwrap_or_default());
    Some(Lock { id, transaction, mode, table: table_name(&table?), index, data })
}

/// `'name'@'host'`, as GRANT writes it and the tables of privileges tell it.
fn account(current_user: &str) -> String {
    let (name, host) = current_user.rsplit_once('@').unwrap_or((current_user, "%"));
    format!("'{}'@'{}'", name.replace('\'', "''"), host.replace('\'', "''"))
}

#[cfg(test)]
mod tests {
    use super::account;

    #[test]
    fn accounts_are_written_as_grant_needs_them() {
        assert_eq!(account("monitor@127.0.0.1"), "'monitor'@'127.0.0.1'");
        assert_eq!(account("a@b@%"), "'a@b'@'%'");
        assert_eq!(account("o'x@%"), "'o''x'@'%'");
    }
}
