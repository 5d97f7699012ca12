//! The private server that all tests of a binary share. A static is never dropped, so the server belongs to a
//! child of the test program. The child stops the server after the test program has ended for any reason.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;

use hotrow_mariadb::PrivateMariaDb;
use hotrow_postgres::{Binaries, PrivateServer};

use tokio_postgres::Client;

use crate::{hotrow, value};

/// Set for the child that owns the server.
const OWNS: &str = "HOTROW_TEST_OWNS_SERVER";
const STARTED: &str = "the shared server listens on ";

/// A server that runs as long as the test program.
pub struct Server {
    port: u16,
    /// The system closes this end of the pipe when this program ends, which tells the child to stop.
    _owner: Child,
}

/// Enables the test program to own its shared server. Each test binary that calls [`server`] needs it in its root.
#[macro_export]
macro_rules! shared_server {
    () => {
        #[test]
        fn owns_the_shared_server() {
            $crate::own_shared_server();
        }
    };
}

/// The server that all tests of this binary share. The first call starts it.
pub fn server() -> &'static Server {
    static SERVER: OnceLock<Server> = OnceLock::new();
    SERVER.get_or_init(Server::start)
}

impl Server {
    fn start() -> Self {
        let mut owner = Command::new(std::env::current_exe().expect("this program has a path"))
            .args(["--exact", "owns_the_shared_server", "--nocapture"])
            .env(OWNS, "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .process_group(0)
            .spawn()
            .expect("this program can run");
        let mut lines = BufReader::new(owner.stdout.take().expect("its output is a pipe")).lines();
        let line = lines
            .by_ref()
            .map_while(Result::ok)
            .find_map(|line| line.split_once(STARTED).map(|(_, port)| port.to_owned()))
            .expect("the server starts: is `hotrow_testkit::shared_server!()` in the binary's main.rs?");
        // The pipe stays open, because the child prints more.
        std::thread::spawn(move || lines.for_each(drop));
        Self { port: line.trim().parse().expect("a port"), _owner: owner }
    }

    /// The port of the server.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The URL for `--upstream`.
    pub fn url(&self) -> String {
        format!("postgres://postgres@127.0.0.1:{}/postgres", self.port)
    }
}

/// Installs the hotrow schema as an operator does.
pub fn migrate(url: &str) {
    let output = hotrow().args(["migrate", "--upstream", url]).output().expect("the program can run");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Installs the hotrow schema on a cluster of Citus and distributes it over this number of shards.
pub fn distribute(url: &str, shards: usize) {
    let shards = shards.to_string();
    let arguments = ["migrate", "--distribute", "--shards", &shards, "--upstream", url];
    let output = hotrow().args(arguments).output().expect("the program can run");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// The path of `psql` or `pgbench`, in the server's folder or on PATH. `None` if only the server was downloaded.
pub fn tool(name: &str) -> Option<PathBuf> {
    Binaries::find().expect("there are binaries").tool(name)
}

/// The path of a program that a test needs, such as `psql`.
///
/// # Panics
///
/// If it is not there.
pub fn needed_tool(name: &str) -> PathBuf {
    tool(name).unwrap_or_else(|| {
        panic!("{name} is neither in the folder of the server's programs nor on PATH: install PostgreSQL's client programs")
    })
}

/// `pg_dump`, if it can read a server of this version: it refuses a server with a newer major version. Otherwise the test says that
/// it was not run.
pub fn pg_dump(server: &PrivateServer) -> Option<PathBuf> {
    let major = |version: &str| version.split(|c: char| !c.is_ascii_digit()).next()?.parse::<u32>().ok();
    let needed = major(server.version());
    let found = tool("pg_dump").filter(|pg_dump| {
        let output = Command::new(pg_dump).arg("--version").output().expect("pg_dump can run");
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        printed.split_whitespace().nth(2).and_then(major) >= needed
    });
    if found.is_none() {
        not_run(&format!("needs pg_dump of version {} or later", needed.unwrap_or_default()));
    }
    found
}

/// Whether the server has the files of this extension. Otherwise the test says that it was not run.
pub async fn has_extension(client: &Client, name: &str) -> bool {
    let look = format!("select count(*) from pg_available_extensions where name = '{name}'");
    let is_there = value(client, &look).await == "1";
    if !is_there {
        not_run(&format!("needs the extension {name} (Debian: postgresql-contrib)"));
    }
    is_there
}

/// Says why a test does less than its name, in the form that `make test-versions` counts.
pub fn not_run(reason: &str) {
    eprintln!("not run: {reason}");
}

/// A private MariaDB server with these options. If none is installed, it says that none of this program's tests can run, and ends it
/// without a failure.
#[expect(
    clippy::explicit_write,
    reason = "the harness keeps what eprintln! prints until the end of a test, which this one has not"
)]
pub fn mariadb(options: &[&str]) -> PrivateMariaDb {
    match PrivateMariaDb::start(options) {
        Err(hotrow_mariadb::Error::NotInstalled) => {
            writeln!(std::io::stderr(), "not run: needs MariaDB (Debian: mariadb-server)").unwrap();
            std::process::exit(0);
        }
        started => started.unwrap(),
    }
}

/// The body of [`shared_server`]. In the child, it starts the server, prints its port, and stops the server after
/// the parent has ended. In the test program, it checks that the child starts a server.
#[expect(clippy::print_stdout, reason = "the parent reads the port from it")]
pub fn own_shared_server() {
    if std::env::var_os(OWNS).is_none() {
        assert!(server().port() > 0);
        return;
    }
    let server =
        PrivateServer::builder().label("itest").setting("max_prepared_transactions", "8").start().unwrap();
    println!("\n{STARTED}{}", server.port());
    std::io::stdin().read_line(&mut String::new()).unwrap();
    drop(server);
    // After this, no process reads the output of the test harness.
    std::process::exit(0);
}
