//! A pool of connections. Each statement takes a connection, is prepared there once, and has its own commit. The pool
//! does not depend on payments.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Config, NoTls, Row, Statement};

/// The time limit for a free connection, for a new one, and for an answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// The reason why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// All connections are busy.
    #[error("no connection to the database became free in time")]
    Busy,
    /// The database is slow or gone.
    #[error("the database did not answer in time")]
    Slow,
    /// The driver or the server reports an error.
    #[error("the database: {}", .0.as_db_error().map_or_else(|| .0.to_string(), ToString::to_string))]
    Driver(#[from] tokio_postgres::Error),
    /// A row in the database that this program did not write.
    #[error("an invalid row: {0}")]
    Nonsense(String),
}

/// A value of a statement.
pub type Value<'a> = &'a (dyn ToSql + Sync);

/// All connections.
pub struct Database {
    config: Config,
    room: Semaphore,
    idle: Mutex<Vec<Session>>,
}

struct Session {
    client: Client,
    prepared: HashMap<&'static str, Statement>,
}

impl Database {
    /// A pool without an open connection.
    pub fn new(config: Config, connections: usize) -> Self {
        Self { config, room: Semaphore::new(connections), idle: Mutex::default() }
    }

    /// Runs a statement and returns the number of rows that it has changed.
    pub async fn execute(&self, sql: &'static str, values: &[Value<'_>]) -> Result<u64, Error> {
        self.run(sql, async |client, statement| client.execute(statement, values).await).await
    }

    /// Runs a statement and returns its rows.
    pub async fn rows(&self, sql: &'static str, values: &[Value<'_>]) -> Result<Vec<Row>, Error> {
        self.run(sql, async |client, statement| client.query(statement, values).await).await
    }

    /// Runs a statement that returns at most one row.
    pub async fn row(&self, sql: &'static str, values: &[Value<'_>]) -> Result<Option<Row>, Error> {
        Ok(self.rows(sql, values).await?.pop())
    }

    /// Runs the statements of a script.
    pub async fn script(&self, text: &str) -> Result<(), Error> {
        let _permit = self.permit().await?;
        Ok(self.session().await?.client.batch_execute(text).await?)
    }

    async fn permit(&self) -> Result<tokio::sync::SemaphorePermit<'_>, Error> {
        let permit = tokio::time::timeout(PATIENCE, self.room.acquire()).await.map_err(|_| Error::Busy)?;
        Ok(permit.expect("the semaphore is never closed"))
    }

    /// A connection is kept only if its statement has succeeded, because an error can leave something behind in it.
    async fn run<T>(
        &self,
        sql: &'static str,
        what: impl AsyncFnOnce(&Client, &Statement) -> Result<T, tokio_postgres::Error>,
    ) -> Result<T, Error> {
        let _permit = self.permit().await?;
        let answer = tokio::time::timeout(PATIENCE, async {
            let mut session = self.session().await?;
            let statement = match session.prepared.get(sql) {
                Some(statement) => statement.clone(),
                None => {
                    let statement = session.client.prepare(sql).await?;
                    session.prepared.insert(sql, statement.clone());
                    statement
                }
            };
            let answer = what(&session.client, &statement).await?;
            self.idle.lock().expect("no thread panics while it holds the list").push(session);
            Ok(answer)
        });
        answer.await.map_err(|_| Error::Slow)?
    }

    /// Takes the connection that was used last, or opens one.
    async fn session(&self) -> Result<Session, tokio_postgres::Error> {
        loop {
            let session = self.idle.lock().expect("no thread panics while it holds the list").pop();
            match session {
                Some(session) if session.client.is_closed() => {}
                Some(session) => return Ok(session),
                None => break,
            }
        }
        let (client, connection) = self.config.connect(NoTls).await?;
        tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "a connection to the database has ended");
            }
        });
        Ok(Session { client, prepared: HashMap::new() })
    }
}
