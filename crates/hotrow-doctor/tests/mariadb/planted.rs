//! Plants a situation in a database of its own on a MariaDB server: tables, clients that work all the time, and accounts for the
//! doctor. Only one situation exists at a time, because the doctor sees all sessions of the server.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use hotrow_doctor::Args;
use hotrow_doctor::mariadb::diagnosis::diagnose;
use hotrow_doctor::mariadb::recording::Recording;
use hotrow_doctor::mariadb::report::Report;
use hotrow_doctor::mariadb::text::text;
use hotrow_mariadb::{PASSWORD, PrivateMariaDb, USER};
use hotrow_mysql_client::Client;
use hotrow_testkit::{mariadb, until};
use tokio::runtime::Runtime;

static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// The length of an examination.
const SECONDS: u32 = 3;
/// The password of all accounts for the doctor.
const DOCTORS: &str = "doctors-password";

/// The server that all tests of this binary share. Its guard ends it.
fn server() -> &'static PrivateMariaDb {
    static SERVER: OnceLock<PrivateMariaDb> = OnceLock::new();
    SERVER.get_or_init(|| mariadb(&[]))
}

/// A connection with all rights.
pub async fn root(database: &str) -> Client {
    let url = format!("mysql://{USER}:{PASSWORD}@127.0.0.1:{}/{database}", server().port());
    Client::open(&url.parse().unwrap()).await.unwrap()
}

/// A single value.
pub async fn value(client: &mut Client, sql: &str) -> String {
    client.rows(sql).await.unwrap()[0][0].clone().unwrap_or_default()
}

/// A situation.
pub struct Planted {
    pub runtime: Runtime,
    account: String,
    load: Vec<tokio::task::JoinHandle<()>>,
    _alone: MutexGuard<'static, ()>,
}

impl Planted {
    /// Creates these tables in a database of their own, and an account for the doctor with these rights, in which `{db}` is the
    /// database.
    pub fn new(tables: &str, rights: &[&str]) -> Self {
        let alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let account = "'monitor'@'127.0.0.1'".to_owned();
        let mut planted = Planted { runtime, account, load: Vec::new(), _alone: alone };
        planted.as_root("create or replace database planted");
        planted.as_root(&format!("create or replace user {} identified by '{DOCTORS}'", planted.account));
        for table in tables.split(";\n") {
            planted.as_root(table);
        }
        for right in rights {
            planted.as_root(&format!("grant {right} to {}", planted.account).replace("{db}", "planted"));
        }
        planted
    }

    /// Runs a statement with all rights.
    pub fn as_root(&mut self, sql: &str) {
        self.runtime.block_on(async {
            let mut root = root("mysql").await;
            let creates = sql.starts_with("create or replace database");
            let before = if creates { "set foreign_key_checks = 0" } else { "use planted" };
            root.execute(before).await.unwrap();
            root.execute(sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
        });
    }

    /// Clients that do this again and again until the situation ends.
    pub fn clients<F, R>(mut self, count: usize, work: F) -> Self
    where
        F: Fn(usize, Client) -> R + Send + Sync + 'static,
        R: Future<Output = ()> + Send + 'static,
    {
        let work = Arc::new(work);
        for number in 0..count {
            let work = work.clone();
            let task = async move { work(number, root("planted").await).await };
            self.load.push(self.runtime.spawn(task));
        }
        self
    }

    /// Clients that run this text again and again.
    pub fn loads(self, count: usize, text: impl Fn(usize) -> String + Send + Sync + 'static) -> Self {
        self.clients(count, move |number, mut client| {
            let text = text(number);
            async move { while client.execute(&text).await.is_ok() {} }
        })
    }

    /// Waits until this query gives 1.
    pub fn until(&self, what: &str, sql: &str) {
        self.runtime.block_on(async {
            let root = tokio::sync::Mutex::new(root("planted").await);
            until(what, async || value(&mut *root.lock().await, sql).await == "1").await;
        });
    }

    /// Waits until a session waits for a row.
    pub fn until_one_waits(&self) {
        // The tables of InnoDB's locks do not change while they are asked again and again.
        let waits = "select variable_value > 0 from information_schema.global_status
            where variable_name = 'innodb_row_lock_current_waits'";
        self.until("a session waits for a row", waits);
    }

    /// Runs the doctor.
    pub fn examine(&self) -> Report {
        let report = Report::new(&diagnose(&self.record(), true));
        eprintln!("{}", text(&report));
        report
    }

    /// The verdict on a statement.
    pub fn explain(&self, sql: &str) -> String {
        let url = format!("mysql://monitor:{DOCTORS}@127.0.0.1:{}/planted", server().port());
        self.runtime.block_on(hotrow_doctor::mariadb::explain(&url, sql)).unwrap()
    }

    /// Runs the doctor without the diagnosis.
    pub fn record(&self) -> Recording {
        let url = format!("mysql://monitor:{DOCTORS}@127.0.0.1:{}", server().port());
        self.runtime.block_on(hotrow_doctor::mariadb::record(&args(url))).unwrap()
    }
}

/// The arguments for an examination of this server.
pub fn args(url: String) -> Args {
    Args {
        url: Some(url),
        upstream: String::new(),
        shadow: None,
        seconds: SECONDS,
        interval_ms: 100,
        json: None,
        html: None,
        show_keys: false,
    }
}

/// A pause of a client between two statements: it shapes the load. No test waits for it.
pub async fn pause(length: Duration) {
    tokio::time::sleep(length).await; // the load's shape
}

impl Drop for Planted {
    fn drop(&mut self) {
        self.load.iter().for_each(tokio::task::JoinHandle::abort);
        // The sessions end when the server notices; the next situation begins without them.
        self.runtime.block_on(async {
            for task in self.load.drain(..) {
                let _ = task.await; // it was aborted
            }
            let root = tokio::sync::Mutex::new(root("mysql").await);
            let gone = "select count(*) = 0 from information_schema.processlist
                where command <> 'Daemon' and id <> connection_id()";
            until("the sessions have ended", async || value(&mut *root.lock().await, gone).await == "1")
                .await;
        });
    }
}
