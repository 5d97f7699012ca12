//! The private server that all tests share, a separate database for each test, and sessions on it.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use hotrow_postgres::PrivateServer;
use hotrow_sql::{DEFAULT_ROLE, Installed};
use tokio::runtime::Runtime;
use tokio_postgres::{Client, NoTls, SimpleQueryMessage};

/// Time limit of a test's waits. Only a fault makes them take so long.
const PATIENCE: Duration = Duration::from_secs(30);

/// The database with the hotrow schema of which tests get copies: an installation costs more than a copy of its result.
const MODEL: &str = "pack_model";

/// A database. The server stops after the last database and its sessions are dropped.
pub struct Database {
    server: Arc<PrivateServer>,
    name: String,
}

impl Database {
    /// A database without the hotrow schema.
    pub fn empty() -> Self {
        Self::copy_of("template1")
    }

    /// A database with the hotrow schema.
    pub fn migrated() -> Self {
        Self::copy_of(MODEL)
    }

    fn copy_of(model: &str) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let server = server();
        let name = format!("pack_{}", NUMBER.fetch_add(1, Ordering::Relaxed));
        server.query(&format!("create database {name} template {model}")).unwrap();
        Self { server, name }
    }

    pub fn session(&self, user: &str) -> Session {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let (host, port, name) = (self.server.host(), self.server.port(), &self.name);
        let address = format!("host={host} port={port} user={user} dbname={name}");
        let (client, connection) = runtime.block_on(tokio_postgres::connect(&address, NoTls)).unwrap();
        runtime.spawn(async { drop(connection.await) });
        Session { runtime, client, _server: Arc::clone(&self.server) }
    }

    /// A new role that can log in. A member of the group role can call the functions.
    pub fn login(&self, role: &str, member: bool) -> Session {
        let owner = self.session("postgres");
        let role = format!("{role}_{}", self.name);
        owner.run(&format!("create role {role} login"));
        if member {
            owner.run(&format!("grant {DEFAULT_ROLE} to {role}"));
        }
        self.session(&role)
    }
}

fn server() -> Arc<PrivateServer> {
    static SERVER: Mutex<Weak<PrivateServer>> = Mutex::new(Weak::new());
    let mut shared = SERVER.lock().unwrap_or_else(PoisonError::into_inner);
    shared.upgrade().unwrap_or_else(|| {
        let server = Arc::new(PrivateServer::builder().label("pack").start().unwrap());
        server.query(&format!("create database {MODEL}")).unwrap();
        let model = Database { server: server.clone(), name: MODEL.to_owned() };
        model.session("postgres").migrate(DEFAULT_ROLE).unwrap();
        *shared = Arc::downgrade(&server);
        server
    })
}

/// A connection whose calls block until their answers arrive.
pub struct Session {
    runtime: Runtime,
    pub client: Client,
    // Declared last, because it must be dropped after the connection.
    _server: Arc<PrivateServer>,
}

impl Session {
    /// All rows as text, columns separated by blanks, NULL as `-`; or the SQLSTATE.
    pub fn ask(&self, sql: &str) -> Result<Vec<String>, String> {
        let messages = self
            .runtime
            .block_on(self.client.simple_query(sql))
            .map_err(|error| error.code().map_or_else(|| error.to_string(), |code| code.code().to_owned()))?;
        let rows = messages.iter().filter_map(|message| match message {
            SimpleQueryMessage::Row(row) => Some(row),
            _ => None,
        });
        Ok(rows
            .map(|row| {
                let values: Vec<_> = (0..row.len()).map(|column| row.get(column).unwrap_or("-")).collect();
                values.join(" ")
            })
            .collect())
    }

    pub fn run(&self, sql: &str) {
        self.ask(sql).unwrap_or_else(|code| panic!("{sql}: {code}"));
    }

    /// The single value of the single row.
    pub fn value(&self, sql: &str) -> String {
        let rows = self.ask(sql).unwrap_or_else(|code| panic!("{sql}: {code}"));
        assert_eq!(rows.len(), 1, "{sql}");
        rows.into_iter().next().unwrap()
    }

    /// The message and the hint of the server's error.
    pub fn complaint(&self, sql: &str) -> (String, String) {
        let error = self.runtime.block_on(self.client.simple_query(sql)).unwrap_err();
        let said = error.as_db_error().unwrap();
        (said.message().to_owned(), said.hint().unwrap_or_default().to_owned())
    }

    /// Repeats the query until it is true, because the event happens on the server, by its clock.
    pub fn until(&self, condition: &str) {
        let deadline = Instant::now() + PATIENCE;
        while self.value(&format!("select {condition}")) != "t" {
            assert!(Instant::now() < deadline, "timed out while waiting until {condition}");
            std::thread::sleep(Duration::from_millis(5)); // the condition has no signal
        }
    }

    pub fn migrate(&mut self, role: &str) -> Result<Installed, hotrow_sql::Error> {
        self.runtime.block_on(hotrow_sql::migrate(&mut self.client, role))
    }

    pub fn block_on<T>(&self, future: impl Future<Output = T>) -> T {
        self.runtime.block_on(future)
    }
}
