//! Authentication: which clients are admitted, by which method, and as which user the gateway then logs in to the
//! server. The server and the gateway require passwords. The modules contain the tests, and this file contains the code
//! that they share.
#![expect(clippy::unwrap_used, reason = "the lints' exception for tests stops at #[test]")]

mod garbage;
mod list;
mod methods;
mod query;
mod secrets;
mod upstream;

use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use hotrow_testkit::{Gateway, config, connect, describe, needed_tool, server, try_connect, until, value};
use nix::sys::signal::Signal;
use tokio::sync::OnceCell;
use tokio_postgres::Client;

hotrow_testkit::shared_server!();

/// The server's access file: the tests' own connections are trusted, and all others need a password.
const SERVERS_LIST: &str = "local all all trust
host all postgres 127.0.0.1/32 trust
host all all 127.0.0.1/32 md5
";
/// The user as which the gateway reads secrets.
const GATE: &str = "gate";
const GATES_PASSWORD: &str = "gates-own-password";

/// A server that requires passwords, users of this test, and files for a gateway.
struct Stage {
    direct: Client,
    number: u32,
    folder: tempfile::TempDir,
}

impl Stage {
    async fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(1);
        static ASKS: OnceCell<()> = OnceCell::const_new();
        ASKS.get_or_init(require_passwords).await;
        let direct = connect(&config(server().port())).await;
        let folder = tempfile::tempdir().unwrap();
        Self { direct, number: NUMBER.fetch_add(1, Relaxed), folder }
    }

    /// A name that no other test uses.
    fn name(&self, name: &str) -> String {
        format!("{name}_{}", self.number)
    }

    /// A role that may log in with this password, kept as SCRAM's verifier or md5's hash.
    async fn role(&self, name: &str, encryption: &str, password: &str) -> String {
        let name = self.name(name);
        let sql = format!(
            "set password_encryption = '{encryption}'; create role {name} login password '{password}'"
        );
        self.direct.batch_execute(&sql).await.unwrap();
        name
    }

    /// The secret that the server stores for a role's password.
    async fn secret(&self, role: &str) -> String {
        value(&self.direct, &format!("select rolpassword from pg_authid where rolname = '{role}'")).await
    }

    /// Writes a file for the gateway.
    fn file(&self, name: &str, text: &str) -> String {
        let path = self.folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    }

    fn socket(&self) -> PathBuf {
        self.folder.path().join(".s.PGSQL.5432")
    }

    /// A gateway with this access file. It also listens on a Unix socket.
    fn gateway(&self, list: &str, options: &[&str]) -> Gateway {
        let list = self.file("hba.conf", list);
        let listen = format!("127.0.0.1:0,{}", self.socket().display());
        let options = [&["--hba-file", &list, "--listen", &listen], options].concat();
        Gateway::in_front_of(&upstream(), &options)
    }

    /// A login by psql over the Unix socket: the user, or the error.
    fn by_socket(&self, user: &str, password: &str) -> Result<String, String> {
        psql(self.folder.path().to_str().unwrap(), 5432, user, password)
    }

    /// Replaces a file, and waits until the log reports the reload.
    async fn reload(&self, gateway: &Gateway, name: &str, text: &str) -> String {
        let seen = gateway.log().len();
        self.file(name, text);
        gateway.signal(Signal::SIGHUP);
        let log = || gateway.log().split_off(seen);
        until("the files are read again", || async { log().contains("reloaded") }).await;
        log()
    }
}

fn upstream() -> String {
    format!("postgres://{GATE}:{GATES_PASSWORD}@127.0.0.1:{}/postgres", server().port())
}

/// Makes the shared server require passwords.
async fn require_passwords() {
    let direct = connect(&config(server().port())).await;
    let gate = format!("create role {GATE} superuser login password '{GATES_PASSWORD}'");
    direct.batch_execute(&gate).await.unwrap();
    let file = value(&direct, "show hba_file").await;
    std::fs::write(file, SERVERS_LIST).unwrap();
    value(&direct, "select pg_reload_conf()").await;
    let without_password = config(server().port()).user(GATE).to_owned();
    until("the server requires passwords", || async { try_connect(&without_password).await.is_err() }).await;
}

/// A login by tokio-postgres: the user according to the server, or SQLSTATE and message of the error.
async fn login(port: u16, user: &str, password: &str) -> Result<String, String> {
    let config = config(port).user(user).password(password).to_owned();
    match try_connect(&config).await {
        Ok(client) => Ok(value(&client, "select current_user").await),
        Err(error) => Err(match error.as_db_error() {
            Some(refusal) => format!("{} {}", refusal.code().code(), refusal.message()),
            None => describe(&error),
        }),
    }
}

/// The same by psql, which does not show SQLSTATEs.
fn psql(host: &str, port: u16, user: &str, password: &str) -> Result<String, String> {
    let mut psql = Command::new(needed_tool("psql"));
    psql.args(["-X", "-w", "-At", "-h", host, "-p", &port.to_string(), "-U", user, "-d", "postgres"]);
    psql.args(["-c", "select current_user"]).env("PGPASSWORD", password).env("LC_ALL", "C");
    let output = psql.output().unwrap();
    let text = |bytes| String::from_utf8_lossy(bytes).trim().to_owned();
    if output.status.success() { Ok(text(&output.stdout)) } else { Err(text(&output.stderr)) }
}
