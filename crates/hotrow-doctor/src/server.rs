//! The doctor's connection: read-only, with short time limits, and one query per question.

use std::time::{Duration, Instant};

use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Statement};

use crate::counters::{Counters, StatementCounters};
use crate::error::Error;
use crate::recording::{Abilities, Table};
use crate::row_query::row_query;
use crate::sample::{RowSeen, Sample};

/// Characters of a statement's text that are read.
pub const TEXT_CHARS_MAX: i32 = 4_000;

/// A connection to the server.
pub struct Server {
    client: Client,
    sample: Statement,
    /// What the server offers.
    pub abilities: Abilities,
    /// Number of queries so far.
    pub queries: u32,
    /// The time of the statements that were run so far. It contains the way to the server and back.
    pub own: Duration,
}

impl Server {
    /// Connects and limits the session.
    pub async fn connect(url: &str) -> Result<Self, Error> {
        let client = hotrow_connect::driver::connect(url).await?;
        let begin = include_str!("../sql/begin.sql");
        client.batch_execute(begin).await.map_err(Error::query("its settings"))?;
        let sample =
            client.prepare(include_str!("../sql/sample.sql")).await.map_err(Error::query("sessions"))?;
        let mut server =
            Self { client, sample, abilities: Abilities::default(), queries: 0, own: Duration::ZERO };
        server.abilities = server.ask("its features", include_str!("../sql/abilities.sql"), &[]).await?;
        if let Some(schema) = &server.abilities.statements_schema {
            let find = include_str!("../sql/find_statements.sql");
            server.client.execute(find, &[schema]).await.map_err(Error::query("pg_stat_statements"))?;
        }
        Ok(server)
    }

    /// One sample. `None` if the server took too long, which happens on a server without a free core.
    pub async fn sample(&mut self) -> Result<Option<Sample>, Error> {
        let begun = Instant::now();
        let row = self.client.query_one(&self.sample, &[&TEXT_CHARS_MAX]).await;
        self.own += begun.elapsed();
        self.queries += 1;
        match row {
            Err(error) if error.code() == Some(&SqlState::QUERY_CANCELED) => Ok(None),
            row => from_json("sessions", row.map_err(Error::query("sessions"))?.get(0)).map(Some),
        }
    }

    /// The time of a small piece of work, in microseconds. `None` if the server does not answer.
    pub async fn probe(&mut self) -> Option<f64> {
        let begun = Instant::now();
        let row = self.client.query_one(include_str!("../sql/probe.sql"), &[]).await;
        self.own += begun.elapsed();
        self.queries += 1;
        row.ok()?.try_get(0).ok()
    }

    pub async fn tables(&self, oids: &[u32]) -> Result<Vec<Table>, Error> {
        let oids: Vec<String> = oids.iter().map(ToString::to_string).collect();
        self.ask("tables", include_str!("../sql/tables.sql"), &[&oids]).await
    }

    /// A query for the rows of a table that sessions wait for. `None` if the doctor does not read the table.
    pub async fn prepare_rows(&self, table: &Table) -> Option<Statement> {
        if !(table.readable && table.trusted) {
            return None;
        }
        let text = row_query(table)?;
        self.client.prepare(&text).await.ok()
    }

    /// The rows of a table that sessions wait for, and those of a page. A failure is no rows: the table can be locked.
    pub async fn rows(&mut self, statement: &Statement, table: u32, page: Option<u32>) -> Vec<RowSeen> {
        let begun = Instant::now();
        let first = page.map(|page| format!("({page},0)"));
        let end = page.map(|page| format!("({},0)", page.saturating_add(1)));
        let rows = self.client.query(statement, &[&table.to_string(), &first, &end]).await;
        self.own += begun.elapsed();
        self.queries += 1;
        let row = |row: tokio_postgres::Row| {
            let (page, tuple) = position(row.try_get(0).ok()?)?;
            let sessions: Option<i64> = row.try_get(2).ok()?;
            let sessions = u32::try_from(sessions.unwrap_or(0)).unwrap_or(0);
            Some(RowSeen {
                relation: table,
                page,
                tuple,
                xmin: row.try_get(1).ok()?,
                sessions,
                key: row.try_get(3).ok()?,
            })
        };
        rows.unwrap_or_default().into_iter().filter_map(row).collect()
    }

    /// The counters at this moment.
    pub async fn counters(&mut self) -> Result<Counters, Error> {
        let begun = Instant::now();
        let mut counters: Counters = self.ask("counters", include_str!("../sql/counters.sql"), &[]).await?;
        let abilities = &self.abilities;
        // A view that the role cannot read is as good as none.
        let view = async |exists: bool, text: &str| match exists {
            true => self.ask::<Value>("counters", text, &[]).await.unwrap_or_default(),
            false => Value::Null,
        };
        counters.wal = view(abilities.has_wal, include_str!("../sql/wal.sql")).await;
        counters.io = view(abilities.has_io, include_str!("../sql/io.sql")).await;
        counters.checkpointer =
            view(abilities.has_checkpointer, include_str!("../sql/checkpointer.sql")).await;
        counters.locks = view(abilities.has_locks, include_str!("../sql/locks.sql")).await;
        if abilities.statements_schema.is_some() {
            let text = include_str!("../sql/statements.sql");
            let statements =
                self.ask::<Vec<StatementCounters>>("pg_stat_statements", text, &[&TEXT_CHARS_MAX]).await;
            // The extension can be created without its library being loaded.
            counters.statements = statements.unwrap_or_default();
        }
        self.own += begun.elapsed();
        Ok(counters)
    }

    async fn ask<T: DeserializeOwned>(
        &self,
        what: &'static str,
        text: &str,
        values: &[&(dyn ToSql + Sync)],
    ) -> Result<T, Error> {
        let row = self.client.query_one(text, values).await.map_err(Error::query(what))?;
        let json: Option<String> = row.try_get(0).map_err(Error::query(what))?;
        from_json(what, json.as_deref().unwrap_or("null"))
    }
}

/// The doctor's own statements, which `pg_stat_statements` counts too.
pub const OWN: [&str; 11] = [
    include_str!("../sql/probe.sql"),
    include_str!("../sql/sample.sql"),
    include_str!("../sql/rows.sql"),
    include_str!("../sql/tables.sql"),
    include_str!("../sql/counters.sql"),
    include_str!("../sql/wal.sql"),
    include_str!("../sql/io.sql"),
    include_str!("../sql/checkpointer.sql"),
    include_str!("../sql/locks.sql"),
    include_str!("../sql/statements.sql"),
    include_str!("../sql/find_statements.sql"),
];

fn from_json<T: DeserializeOwned>(what: &'static str, json: &str) -> Result<T, Error> {
    serde_json::from_str(json).map_err(|source| Error::Answer { what, source })
}

/// Reads `(page,tuple)`.
fn position(ctid: &str) -> Option<(u32, u32)> {
    let (page, tuple) = ctid.strip_prefix('(')?.strip_suffix(')')?.split_once(',')?;
    Some((page.parse().ok()?, tuple.parse().ok()?))
}
