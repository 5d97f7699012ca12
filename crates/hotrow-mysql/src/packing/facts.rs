//! The facts about tables, as the gateway's own user reads them.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use hotrow_mysql_client::own::{self, Credentials, OwnError};
use hotrow_mysql_client::socket::SocketError;
use hotrow_mysql_client::{Socket, Upstream};
use hotrow_mysql_core::questions::{Questions, Rows, facts, literal};
use hotrow_mysql_core::table::Table;
use hotrow_mysql_wire::native::Hash;
use tokio::sync::Mutex as AsyncMutex;
use tokio::time::timeout;

use crate::limits;

type Known = HashMap<(String, String), (Instant, Option<Arc<Table>>)>;

/// Facts with their age, and the connection that reads them.
pub struct Facts {
    upstream: Upstream,
    known: Mutex<Known>,
    connection: AsyncMutex<Option<Socket>>,
    /// Held by the session that reads facts. All sessions miss them at the same moment, when they become too old.
    reading: AsyncMutex<()>,
}

const HASHES: &str = include_str!("../../sql/hashes.sql");

impl Facts {
    pub fn new(upstream: Upstream) -> Self {
        Facts {
            upstream,
            known: Mutex::default(),
            connection: AsyncMutex::default(),
            reading: AsyncMutex::default(),
        }
    }

    /// The facts about a table. None if it does not exist, or if they cannot be read.
    pub async fn of(&self, database: &str, table: &str) -> Option<Arc<Table>> {
        let place = (database.to_owned(), table.to_owned());
        if let Some(facts) = self.fresh(&place) {
            return facts;
        }
        let _reading = self.reading.lock().await;
        if let Some(facts) = self.fresh(&place) {
            return facts; // another session has just read them
        }
        let facts = match self.read(database, table).await {
            Ok(facts) => facts.map(Arc::new),
            Err(error) => {
                tracing::warn!(%error, "the facts about a table cannot be read");
                return None;
            }
        };
        let mut known = self.known();
        if known.len() >= limits::TABLES_MAX {
            known.clear();
        }
        known.insert(place, (Instant::now(), facts.clone()));
        facts
    }

    /// Facts that are not too old.
    fn fresh(&self, place: &(String, String)) -> Option<Option<Arc<Table>>> {
        let known = self.known();
        let (since, facts) = known.get(place)?;
        (since.elapsed() < Duration::from_millis(limits::TABLE_AGE_MS)).then(|| facts.clone())
    }

    /// The facts may have changed.
    pub fn forget(&self, database: &str, table: &str) {
        self.known().remove(&(database.to_owned(), table.to_owned()));
    }

    /// The hashes that the server keeps for accounts of this name.
    pub async fn hashes(&self, user: &str) -> Result<Vec<Hash>, OwnError> {
        let rows = self.ask(&HASHES.replace("{user}", &literal(user))).await?;
        let texts = rows.into_iter().flatten().flatten();
        Ok(texts.flat_map(|text| hashes_in(&text)).collect())
    }

    /// The rights that a session of this user has if it logs in now.
    pub async fn rights(&self, user: &str) -> Result<Option<String>, OwnError> {
        let rows = self.ask(&format!("select hotrow.rights_of({})", literal(user))).await?;
        Ok(rows.into_iter().flatten().flatten().next())
    }

    async fn read(&self, database: &str, table: &str) -> Result<Option<Table>, OwnError> {
        let questions = Questions::about(database, table);
        let definition = self.ask(&questions.by_routine).await?;
        let Some(Some(definition)) = definition.into_iter().flatten().next() else { return Ok(None) };
        let columns = self.ask(&questions.columns).await?;
        let keys = self.ask(&questions.keys).await?;
        Ok(Some(facts(definition, columns, &keys)))
    }

    /// Runs a query on the own connection, which is opened again once if it was lost.
    async fn ask(&self, sql: &str) -> Result<Rows, OwnError> {
        let mut connection = self.connection.lock().await;
        // A connection whose question is given up is not used again.
        let socket = connection.take();
        let asked = timeout(Duration::from_millis(limits::FACTS_WAIT_MS), self.ask_on(socket, sql)).await;
        let (socket, answer) = asked.map_err(|_| SocketError::System(io::ErrorKind::TimedOut.into()))??;
        *connection = Some(socket);
        answer
    }

    async fn ask_on(
        &self,
        socket: Option<Socket>,
        sql: &str,
    ) -> Result<(Socket, Result<Rows, OwnError>), OwnError> {
        if let Some(mut socket) = socket {
            match own::rows(&mut socket, false, sql).await {
                Err(OwnError::Socket(_)) => {}
                answer => return Ok((socket, answer)),
            }
        }
        let (socket, greeting) = own::connect(&self.upstream).await?;
        let own = Credentials::own(&self.upstream);
        let mut socket = own::login(socket, &greeting, &self.upstream, &own).await?;
        // Questions for a table would wait for the end of ALTER TABLE, and those for other tables behind them.
        own::rows(&mut socket, false, "set session lock_wait_timeout = 0, max_statement_time = 5").await?;
        let answer = own::rows(&mut socket, false, sql).await;
        Ok((socket, answer))
    }

    fn known(&self) -> std::sync::MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The hashes in a text: a star and 40 hexadecimal digits.
fn hashes_in(text: &str) -> Vec<Hash> {
    let digits = text.split('*').skip(1).filter_map(|rest| rest.get(..40));
    let byte = |digits: &str, at: usize| u8::from_str_radix(digits.get(2 * at..2 * at + 2)?, 16).ok();
    let hashes = digits.filter_map(|digits| {
        let bytes: Option<Vec<u8>> = (0..20).map(|at| byte(digits, at)).collect();
        bytes?.try_into().ok()
    });
    hashes.collect()
}
