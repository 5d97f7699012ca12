//! Plants a situation in a database of its own: tables, clients that work all the time, and sessions that hold something.
//! Only one situation runs at a time, because the doctor sees all sessions of the server.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use hotrow_doctor::diagnosis::findings::Situation;
use hotrow_doctor::{Args, Recording, Report, diagnose};
use hotrow_postgres::PrivateServer;
use hotrow_testkit::{config, connect, new_database, server, until, value};
use tokio::sync::oneshot;
use tokio_postgres::{Client, Error};

static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Samples in a file that `HOTROW_DOCTOR_RECORD` names, which is a test case of the diagnosis.
const SAMPLES_OF_FILE: usize = 8;

/// A pause of a client between two statements: it shapes the load. No test waits for it.
pub async fn pause(length: Duration) {
    tokio::time::sleep(length).await; // the load's shape
}

/// A situation.
pub struct Planted {
    port: u16,
    database: String,
    administrator: Client,
    runtime: tokio::runtime::Runtime,
    load: Vec<(oneshot::Sender<()>, JoinHandle<()>)>,
    held: Mutex<Vec<Client>>,
    role: String,
    waits_for: usize,
    /// A server of its own, which stops after the sessions have ended.
    _server: Option<PrivateServer>,
    _alone: MutexGuard<'static, ()>,
}

/// A report with the names of its rows.
pub struct Named(Report);

impl std::ops::Deref for Named {
    type Target = Report;

    fn deref(&self) -> &Report {
        &self.0
    }
}

impl Named {
    /// The name of a hot row with its key's values.
    pub fn row(&self, index: usize) -> String {
        let Some(row) = self.hot_rows.get(index) else { return "no row".to_owned() };
        let key: Vec<String> = row
            .key
            .iter()
            .map(|(column, value)| format!("{column} = {}", value.as_deref().unwrap_or("?")))
            .collect();
        format!("{} ({})", row.table, key.join(", "))
    }
}

impl Planted {
    /// Creates the tables in a database of their own.
    pub fn new(tables: &str) -> Self {
        Self::on(None, tables)
    }

    /// The same on a server of its own with this setting.
    pub fn with_server(name: &str, setting: &str, tables: &str) -> Self {
        let server = PrivateServer::builder().label("planted").setting(name, setting).start().unwrap();
        Self::on(Some(server), tables)
    }

    fn on(own: Option<PrivateServer>, tables: &str) -> Self {
        let alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let port = own.as_ref().map_or_else(|| server().port(), PrivateServer::port);
        let (database, administrator) = runtime.block_on(async {
            let (database, administrator) = match &own {
                Some(_) => ("postgres".to_owned(), connect(&config(port)).await),
                None => new_database().await,
            };
            for statement in tables.split(';') {
                administrator.batch_execute(statement).await.unwrap();
            }
            (database, administrator)
        });
        let (load, held) = (Vec::new(), Mutex::default());
        let role = "postgres".to_owned();
        Self {
            port,
            database,
            administrator,
            runtime,
            load,
            held,
            role,
            waits_for: 0,
            _server: own,
            _alone: alone,
        }
    }

    /// The doctor connects as this role, which is created by this statement.
    pub fn with_role(mut self, role: &str, create: &str) -> Self {
        self.runtime.block_on(self.administrator.batch_execute(create)).unwrap();
        role.clone_into(&mut self.role);
        self
    }

    /// Settings of the database for clients that connect later.
    pub fn settings(self, settings: &str) -> Self {
        for setting in settings.split(';') {
            let text = format!("alter database {} set {setting}", self.database);
            self.runtime.block_on(self.administrator.batch_execute(&text)).unwrap();
        }
        self
    }

    /// A session that runs this and then does nothing. Returns its process.
    pub fn hold(&self, text: &str) -> i32 {
        self.runtime.block_on(async {
            let client = self.connect().await;
            let pid = value(&client, "select pg_backend_pid()").await.parse().unwrap();
            client.batch_execute(text).await.unwrap();
            self.held.lock().unwrap().push(client);
            pid
        })
    }

    async fn connect(&self) -> Client {
        connect(config(self.port).dbname(&self.database)).await
    }

    /// Clients that work until the situation ends. An error ends a client: its session was ended.
    pub fn clients<F>(mut self, count: usize, client: F) -> Self
    where
        F: AsyncFn(usize, Client) -> Result<(), Error> + Copy + Send + 'static,
    {
        let (stop, stopped) = oneshot::channel::<()>();
        let mut config = config(self.port);
        config.dbname(&self.database).application_name("planted");
        let thread = thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            let local = tokio::task::LocalSet::new();
            for number in 0..count {
                let config = config.clone();
                local.spawn_local(async move {
                    // The session's end is the error.
                    drop(client(number, connect(&config).await).await);
                    std::future::pending::<()>().await;
                });
            }
            let _ = local.block_on(&runtime, stopped);
        });
        self.load.push((stop, thread));
        self.waits_for += count;
        self
    }

    /// Clients that run this statement for row 7 until the situation ends. The statement's text has no value.
    pub fn loads(self, count: usize, text: String) -> Self {
        let text: &'static str = text.leak();
        self.clients(count, async move |_, client| {
            let update = client.prepare(text).await?;
            loop {
                client.execute(&update, &[&7]).await?;
            }
        })
    }

    /// The first value of a query in the situation's database.
    pub fn value(&self, query: &str) -> String {
        self.runtime.block_on(value(&self.administrator, query))
    }

    /// Runs a statement in the situation's database.
    pub fn run(&self, text: &str) {
        self.runtime.block_on(self.administrator.batch_execute(text)).unwrap();
    }

    /// Calls of a function by sessions of the doctor that have ended, at least one. Before version 15, counts can be half a second
    /// old, but none is shown before an earlier one.
    pub fn calls(&self, function: &str) -> u64 {
        self.held.lock().unwrap().clear();
        let count = async |text: &str| value(&self.administrator, text).await;
        self.runtime.block_on(async {
            let sessions = "select count(*) from pg_stat_activity where datname = current_database()
                and application_name like 'hotrow%'";
            until("the doctor's sessions have ended", async || count(sessions).await == "0").await;
            let calls = format!(
                "select coalesce(sum(calls), 0) from pg_stat_user_functions where funcname = '{function}'"
            );
            until("a call is counted", async || count(&calls).await != "0").await;
            count(&calls).await.parse().unwrap()
        })
    }

    /// Runs the doctor once and checks its first finding and its report.
    pub fn examine(&self, kind: Situation, check: impl Fn(&Named)) {
        self.examine_for(3, kind, check);
    }

    /// The same, for so many seconds at most.
    pub fn examine_for(&self, seconds: u32, kind: Situation, check: impl Fn(&Named)) {
        self.wait_for_load();
        let recording = self.record(seconds);
        let report = Named(Report::new(&recording, &diagnose(&recording, true), true));
        assert_eq!(report.findings[0].kind, kind, "{}", hotrow_doctor::report::text::text(&report));
        check(&report);
    }

    fn wait_for_load(&self) {
        self.runtime.block_on(until("all clients have sent a statement", async || {
            let text = "select count(*) from pg_stat_activity where datname = current_database()
                and application_name = 'planted' and backend_start < query_start";
            value(&self.administrator, text).await == self.waits_for.to_string()
        }));
    }

    /// Runs the doctor and checks its first finding and its report.
    pub fn must_be_named(self, kind: Situation, check: impl Fn(&Named)) {
        let long = std::env::var("HOTROW_DOCTOR_SECONDS").ok().map(|seconds| seconds.parse().unwrap());
        let (seconds, runs) = long.map_or((3, 1), |seconds| (seconds, 5));
        self.wait_for_load();
        for run in 1..=runs {
            let recording = self.record(seconds);
            let diagnosis = diagnose(&recording, true);
            let report = Named(Report::new(&recording, &diagnosis, true));
            let text = hotrow_doctor::report::text::text(&report);
            if let Some(path) = std::env::var_os("HOTROW_DOCTOR_RECORD") {
                let mut part = recording.clone();
                part.samples.truncate(SAMPLES_OF_FILE);
                std::fs::write(path, serde_json::to_string(&part).unwrap()).unwrap();
            }
            assert_eq!(report.findings[0].kind, kind, "run {run}:\n{text}");
            check(&report);
            shows_no_values(&recording);
        }
    }

    fn record(&self, seconds: u32) -> Recording {
        let args = Args {
            url: None,
            shadow: None,
            upstream: format!("postgres://{}@127.0.0.1:{}/{}", self.role, self.port, self.database),
            seconds,
            interval_ms: 50,
            json: None,
            html: None,
            show_keys: false,
        };
        self.runtime.block_on(hotrow_doctor::record(&args)).unwrap()
    }
}

/// Without `--show-keys`, no value of a key is in any form of the report.
fn shows_no_values(recording: &Recording) {
    let report = Report::new(recording, &diagnose(recording, false), false);
    let forms = [
        hotrow_doctor::report::text::text(&report),
        hotrow_doctor::report::html::html(&report),
        serde_json::to_string(&report).unwrap(),
    ];
    for form in forms {
        for value in ["id = 7", "id = 8", "user7@", "\"id\":\"7\""] {
            assert!(!form.contains(value), "{value} in {form}");
        }
    }
}

impl Drop for Planted {
    fn drop(&mut self) {
        self.held.lock().unwrap_or_else(PoisonError::into_inner).clear();
        for (stop, thread) in self.load.drain(..) {
            let _ = stop.send(());
            let _ = thread.join();
        }
        let text = "select pg_terminate_backend(pid) from pg_stat_activity
            where datname = current_database() and pid <> pg_backend_pid()";
        let ended = self.runtime.block_on(self.administrator.batch_execute(text));
        assert!(ended.is_ok() || thread::panicking(), "{ended:?}");
        if !thread::panicking() {
            self.runtime.block_on(until("the sessions have ended", async || {
                let text = "select count(*) from pg_stat_activity where datname = current_database()";
                value(&self.administrator, text).await == "1"
            }));
        }
    }
}
