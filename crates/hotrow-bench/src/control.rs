//! The benchmark's own connections to the server: they set up the rows, read them, ask for settings and hold snapshots. Never
//! makes a load.

use crate::endpoint::Endpoint;
use crate::error::{Error, refused};
use crate::scenario::{Scenario, Technique};
use crate::verdict::Reading;
use serde::Serialize;
use tokio_postgres::Client;

/// One connection, straight to the server.
#[derive(Debug)]
pub struct Control {
    client: Client,
    /// The process that serves it.
    backend: i32,
}

/// A setting of the server that bears on the figures.
#[derive(Debug, Clone, Serialize)]
pub struct Setting {
    /// Its name.
    pub name: String,
    /// Its value, with its unit.
    pub value: String,
}

/// What decides how fast a commit is and when the server does other work.
const SETTINGS: &str = "
    fsync synchronous_commit full_page_writes wal_sync_method wal_level wal_compression commit_delay commit_siblings
    max_wal_size checkpoint_timeout shared_buffers max_connections autovacuum default_transaction_isolation huge_pages
";

impl Control {
    /// Connects.
    pub async fn connect(endpoint: &Endpoint) -> Result<Self, Error> {
        let client = endpoint.connect().await?;
        // Rows that a hung transaction of the load keeps locked must not hang the benchmark.
        client.batch_execute("set lock_timeout = '30s'").await.map_err(refused("set lock_timeout"))?;
        let backend = client.query_one("select pg_backend_pid()", &[]).await;
        let backend = backend.map_err(refused("say which process serves this"))?.get(0);
        Ok(Self { client, backend })
    }

    /// Connects anew, after the statement that is under way, if any, has been ended with its session: it may have minutes to go.
    ///
    /// A cancel request could arrive late, and hit the statement after.
    pub async fn start_over(&mut self, endpoint: &Endpoint) -> Result<(), Error> {
        const PATIENCE_MS: i64 = 10_000;
        let next = Self::connect(endpoint).await?;
        let end = "select pg_terminate_backend($1, $2)";
        let ended = next.client.execute(end, &[&self.backend, &PATIENCE_MS]).await;
        ended.map_err(refused("end the benchmark's own session"))?;
        *self = next;
        Ok(())
    }

    /// Makes sure that a schema that the benchmark creates, and drops at the end, does not exist.
    pub async fn expect_no_schema(&self, name: &str, exists: Error) -> Result<(), Error> {
        let found = self.one(&format!("select coalesce(to_regnamespace('{name}')::text, '')")).await?;
        if found.is_empty() { Ok(()) } else { Err(exists) }
    }

    /// Creates the schema `hotrow_bench` for a scenario, and says meanwhile how many of many rows there are.
    pub async fn set_up(&self, scenario: &Scenario, rows: u32, say: impl Fn(u32)) -> Result<(), Error> {
        const PIECE: usize = 500_000;
        self.set("hotrow_bench.rows", rows).await?;
        self.execute(scenario.set_up, "set up the scenario's tables").await?;
        let filled = if scenario.fill.is_empty() { 0 } else { rows };
        for first in (1..=filled).step_by(PIECE) {
            let last = rows.min(first.saturating_add(PIECE as u32 - 1));
            self.set("hotrow_bench.first", first).await?;
            self.set("hotrow_bench.last", last).await?;
            self.execute(scenario.fill, "fill the scenario's tables").await?;
            if last < rows {
                say(last);
            }
        }
        Ok(())
    }

    /// Drops the schema again.
    pub async fn tear_down(&self) -> Result<(), Error> {
        self.execute("drop schema if exists hotrow_bench cascade", "drop the schema hotrow_bench").await
    }

    /// Drops the schema pack again.
    pub async fn tear_down_pack(&self) -> Result<(), Error> {
        self.execute("drop schema if exists hotrow cascade", "drop the schema hotrow").await
    }

    /// Puts the rows back, clears away what the run before left behind, and makes ready what this technique needs.
    pub async fn before_run(
        &self,
        scenario: &Scenario,
        technique: &Technique,
        run: u32,
    ) -> Result<(), Error> {
        self.set("hotrow_bench.run", run).await?;
        self.execute(scenario.before_run, "put the rows back").await?;
        self.execute(technique.prepare, "make the technique ready").await?;
        for table in scenario.tables {
            self.execute(&format!("vacuum (analyze) {table}"), "vacuum the tables").await?;
        }
        Ok(())
    }

    /// Writes all pages out, so that no run pays for the one before.
    pub async fn checkpoint(&self) -> Result<(), Error> {
        self.execute("checkpoint", "make a checkpoint").await
    }

    /// What the rows say now.
    pub async fn read(&self, scenario: &Scenario) -> Result<Reading, Error> {
        let row = self.client.query_one(scenario.reading, &[]).await.map_err(refused("read the rows"))?;
        let column = |name| row.try_get(name).map_err(refused("count the rows"));
        Ok(Reading { done: column("done")?, broken: column("broken")? })
    }

    /// How far the server's log has been written, in bytes.
    pub async fn wal_position(&self) -> Result<u64, Error> {
        let query = "select (pg_current_wal_insert_lsn() - '0/0')::bigint";
        let row = self.client.query_one(query, &[]).await.map_err(refused("say where its log ends"))?;
        Ok(u64::try_from(row.get::<_, i64>(0)).unwrap_or(0))
    }

    /// The extensions that can be created.
    pub async fn extensions(&self) -> Result<Vec<String>, Error> {
        let query = "select name::text from pg_available_extensions";
        let rows = self.client.query(query, &[]).await.map_err(refused("list its extensions"))?;
        Ok(rows.iter().map(|row| row.get(0)).collect())
    }

    /// The server's version.
    pub async fn version(&self) -> Result<String, Error> {
        self.one("select current_setting('server_version')").await
    }

    /// How many clients the server takes besides the connections it has: reserved ones and those of the gateways stay free.
    pub async fn room(&self) -> Result<u32, Error> {
        const FOR_GATEWAYS: i32 = 30;
        let query = "select current_setting('max_connections')::int
                         - current_setting('superuser_reserved_connections')::int
                         - (select count(*) from pg_stat_activity where backend_type = 'client backend')::int";
        let row = self.client.query_one(query, &[]).await.map_err(refused("count its connections"))?;
        let free: i32 = row.get(0);
        Ok(u32::try_from(free - FOR_GATEWAYS).unwrap_or(0))
    }

    /// The settings that bear on the figures, as far as this version has them.
    pub async fn settings(&self) -> Result<Vec<Setting>, Error> {
        let query = "select name, current_setting(name) from pg_settings where name = any($1)
                     order by array_position($1, name)";
        let names: Vec<&str> = SETTINGS.split_ascii_whitespace().collect();
        let rows = self.client.query(query, &[&names]).await.map_err(refused("show its settings"))?;
        Ok(rows.iter().map(|row| Setting { name: row.get(0), value: row.get(1) }).collect())
    }

    /// Keeps a number where the scenario's SQL finds it.
    async fn set(&self, name: &str, number: u32) -> Result<(), Error> {
        self.client
            .execute("select set_config($1, $2, false)", &[&name, &number.to_string()])
            .await
            .map(drop)
            .map_err(refused("keep a number for the scenario's SQL"))
    }

    async fn execute(&self, sql: &str, what: &'static str) -> Result<(), Error> {
        self.client.batch_execute(sql).await.map_err(refused(what))
    }

    async fn one(&self, query: &str) -> Result<String, Error> {
        let row = self.client.query_one(query, &[]).await;
        Ok(row.map_err(refused("answer a question about itself"))?.get(0))
    }
}

/// A snapshot that a transaction holds on a connection of its own, as a long report or a forgotten session does. It ends when
/// this is dropped.
#[derive(Debug)]
pub struct Snapshot {
    client: Client,
}

impl Snapshot {
    /// Takes it.
    pub async fn hold(endpoint: &Endpoint) -> Result<Self, Error> {
        const TAKE: &str = "set idle_in_transaction_session_timeout = 0;
            begin isolation level repeatable read read only;
            select from pg_class limit 1";
        let client = endpoint.connect().await?;
        client.batch_execute(TAKE).await.map_err(refused("hold a snapshot"))?;
        Ok(Self { client })
    }

    /// Releases it. An error means that it was lost before.
    pub async fn release(self) -> Result<(), Error> {
        self.client.batch_execute("commit").await.map_err(refused("keep a snapshot"))
    }
}

/// Installs the schema pack, on a connection of its own that is closed before the first run.
pub async fn install_pack(upstream: &Endpoint) -> Result<(), Error> {
    let mut client = upstream.connect().await?;
    // The benchmark calls as the owner. No role is made that would stay behind on the server.
    let user = client.query_one("select current_user::text", &[]).await.map_err(refused("name its user"))?;
    hotrow_sql::migrate(&mut client, user.get(0)).await.map(drop).map_err(Error::Pack)
}
