//! The benchmark's own connections to the server: they create the rows, read rows and settings, and hold snapshots. They
//! make no load.

use crate::endpoint::Endpoint;
use crate::error::{Error, refused};
use crate::scenario::{Scenario, Technique};
use crate::verdict::Reading;
use serde::Serialize;
use tokio_postgres::Client;

/// One direct connection to the server.
#[derive(Debug)]
pub struct Control {
    client: Client,
    /// The ID of its backend process.
    backend: i32,
}

/// A setting of the server that influences the figures.
#[derive(Debug, Clone, Serialize)]
pub struct Setting {
    pub name: String,
    /// The value with its unit.
    pub value: String,
}

/// The names of the schemas of scenarios: `hotrow_bench`, and one per tenant.
pub const SCHEMAS: &str = "^hotrow_bench(_[0-9]+)?$";

/// The name of the hotrow schema's schema.
pub const PACK: &str = "^hotrow$";

/// Settings that influence the speed of a commit and the times of the server's background work.
const SETTINGS: &str = "
    fsync synchronous_commit full_page_writes wal_sync_method wal_level wal_compression commit_delay commit_siblings
    max_wal_size checkpoint_timeout shared_buffers max_connections autovacuum default_transaction_isolation huge_pages
";

impl Control {
    pub async fn connect(endpoint: &Endpoint) -> Result<Self, Error> {
        let client = endpoint.connect().await?;
        // If a hung transaction of the load keeps rows locked, the benchmark must not hang too.
        client.batch_execute("set lock_timeout = '30s'").await.map_err(refused("set lock_timeout"))?;
        let backend = client.query_one("select pg_backend_pid()", &[]).await;
        let backend = backend.map_err(refused("report the process of a connection"))?.get(0);
        Ok(Self { client, backend })
    }

    /// Connects again, after it has terminated the old session with its current statement, which could run for minutes. A
    /// cancel request could arrive late and stop the following statement.
    pub async fn reconnect(&mut self, endpoint: &Endpoint) -> Result<(), Error> {
        const PATIENCE_MS: i64 = 10_000;
        let next = Self::connect(endpoint).await?;
        let end = "select pg_terminate_backend($1, $2)";
        let ended = next.client.execute(end, &[&self.backend, &PATIENCE_MS]).await;
        ended.map_err(refused("terminate the benchmark's own session"))?;
        *self = next;
        Ok(())
    }

    /// Checks that the schemas that the benchmark creates, and drops at the end, do not exist.
    pub async fn expect_no_schemas(&self, names: &str, exists: Error) -> Result<(), Error> {
        let query = format!("select count(*)::text from pg_namespace where nspname ~ '{names}'");
        if self.one(&query).await? == "0" { Ok(()) } else { Err(exists) }
    }

    /// Creates the schema `hotrow_bench` for a scenario, and reports the number of rows while it creates many.
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

    /// Drops the schemas.
    pub async fn tear_down(&self) -> Result<(), Error> {
        let drop = format!(
            "do $$ declare name text; begin
                for name in select nspname from pg_namespace where nspname ~ '{SCHEMAS}' loop
                    execute format('drop schema %I cascade', name);
                end loop;
            end $$"
        );
        self.execute(&drop, "drop the schema hotrow_bench").await
    }

    /// Drops the hotrow schema.
    pub async fn tear_down_pack(&self) -> Result<(), Error> {
        self.execute("drop schema if exists hotrow cascade", "drop the schema hotrow").await
    }

    /// Restores the rows, removes the remains of the previous run, and runs the SQL that this technique needs.
    pub async fn before_run(
        &self,
        scenario: &Scenario,
        technique: &Technique,
        run: u32,
    ) -> Result<(), Error> {
        self.set("hotrow_bench.run", run).await?;
        self.execute(scenario.before_run, "restore the rows").await?;
        self.execute(technique.prepare, "prepare the technique").await?;
        for table in scenario.tables {
            self.execute(&format!("vacuum (analyze) {table}"), "vacuum the tables").await?;
        }
        Ok(())
    }

    /// Writes all pages to disk, so that no run pays for the previous one.
    pub async fn checkpoint(&self) -> Result<(), Error> {
        self.execute("checkpoint", "write a checkpoint").await
    }

    /// Reports the flushes of this session now, so that no run counts them as its own.
    pub async fn report_flushes(&self) -> Result<(), Error> {
        self.execute(include_str!("../sql/watch/report_own_flushes.sql"), "report its flushes").await
    }

    /// The current state of the rows.
    pub async fn read(&self, scenario: &Scenario) -> Result<Reading, Error> {
        let row = self.client.query_one(scenario.reading, &[]).await.map_err(refused("read the rows"))?;
        let column = |name| row.try_get(name).map_err(refused("count the rows"));
        Ok(Reading { done: column("done")?, broken: column("broken")? })
    }

    /// The end of the server's WAL, in bytes.
    pub async fn wal_position(&self) -> Result<u64, Error> {
        let query = "select (pg_current_wal_insert_lsn() - '0/0')::bigint";
        let row = self.client.query_one(query, &[]).await.map_err(refused("report the end of its WAL"))?;
        Ok(u64::try_from(row.get::<_, i64>(0)).unwrap_or(0))
    }

    /// The extensions that can be created.
    pub async fn extensions(&self) -> Result<Vec<String>, Error> {
        let query = "select name::text from pg_available_extensions";
        let rows = self.client.query(query, &[]).await.map_err(refused("list its extensions"))?;
        Ok(rows.iter().map(|row| row.get(0)).collect())
    }

    /// The version of the server.
    pub async fn version(&self) -> Result<String, Error> {
        self.one("select current_setting('server_version')").await
    }

    /// The number of connections that are free for clients. Reserved connections and those for gateways are not counted.
    pub async fn room(&self) -> Result<u32, Error> {
        const FOR_GATEWAYS: i32 = 30;
        let query = "select current_setting('max_connections')::int
                         - current_setting('superuser_reserved_connections')::int
                         - (select count(*) from pg_stat_activity where backend_type = 'client backend')::int";
        let row = self.client.query_one(query, &[]).await.map_err(refused("count its connections"))?;
        let free: i32 = row.get(0);
        Ok(u32::try_from(free - FOR_GATEWAYS).unwrap_or(0))
    }

    /// The settings that influence the figures, if this version has them.
    pub async fn settings(&self) -> Result<Vec<Setting>, Error> {
        let query = "select name, current_setting(name) from pg_settings where name = any($1)
                     order by array_position($1, name)";
        let names: Vec<&str> = SETTINGS.split_ascii_whitespace().collect();
        let rows = self.client.query(query, &[&names]).await.map_err(refused("show its settings"))?;
        Ok(rows.iter().map(|row| Setting { name: row.get(0), value: row.get(1) }).collect())
    }

    /// Stores a number in a setting for the scenario's SQL.
    async fn set(&self, name: &str, number: u32) -> Result<(), Error> {
        self.client
            .execute("select set_config($1, $2, false)", &[&name, &number.to_string()])
            .await
            .map(drop)
            .map_err(refused("store a number for the scenario's SQL"))
    }

    async fn execute(&self, sql: &str, what: &'static str) -> Result<(), Error> {
        self.client.batch_execute(sql).await.map_err(refused(what))
    }

    async fn one(&self, query: &str) -> Result<String, Error> {
        let row = self.client.query_one(query, &[]).await;
        Ok(row.map_err(refused("answer a query"))?.get(0))
    }
}

/// A snapshot that a transaction holds on its own connection, as a long report or a forgotten session does. Dropping it ends
/// the transaction.
#[derive(Debug)]
pub struct Snapshot {
    client: Client,
}

impl Snapshot {
    /// Takes the snapshot.
    pub async fn hold(endpoint: &Endpoint) -> Result<Self, Error> {
        const TAKE: &str = "set idle_in_transaction_session_timeout = 0;
            begin isolation level repeatable read read only;
            select from pg_class limit 1";
        let client = endpoint.connect().await?;
        client.batch_execute(TAKE).await.map_err(refused("hold a snapshot"))?;
        Ok(Self { client })
    }

    /// Releases the snapshot. An error means that it was lost before.
    pub async fn release(self) -> Result<(), Error> {
        self.client.batch_execute("commit").await.map_err(refused("hold a snapshot until its release"))
    }
}

/// Installs the hotrow schema on a connection that is closed before the first run.
pub async fn install_pack(upstream: &Endpoint) -> Result<(), Error> {
    let mut client = upstream.connect().await?;
    // The benchmark calls functions as the owner. No role is created, because it would stay on the server.
    let user =
        client.query_one("select current_user::text", &[]).await.map_err(refused("report its user"))?;
    hotrow_sql::migrate(&mut client, user.get(0)).await.map(drop).map_err(Error::Pack)
}
