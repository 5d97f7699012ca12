//! Who is let in, by what, and as whom the gateway then logs in at the server. The server asks for passwords, and so does
//! the gateway. The tests are in the modules; here is only what they share.
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

use hotrow_testkit::{Gateway, config, connect, describe, server, tool, try_connect, until, value};
use nix::sys::signal::Signal;
use tokio::sync::OnceCell;
use tokio_postgres::Client;

hotrow_testkit::shared_server!();

/// Lets the tests look at the server; asks all others for what is known of them.
const SERVERS_LIST: &str = "local all all trust
host all postgres 127.0.0.1/32 trust
host all all 127.0.0.1/32 md5
";
/// As whom the gateway asks for secrets.
const GATE: &str = "gate";
const GATES_PASSWORD: &str = "gates-own-password";

/// A server that asks for passwords, users of this test's own, and files for a gateway.
struct Stage {
    direct: Client,
    number: u32,
    folder: tempfile::TempDir,
}

impl Stage {
    async fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(1);
        static ASKS: OnceCell<()> = OnceCell::const_new();
        ASKS.get_or_init(ask_for_passwords).await;
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

    /// What the server keeps of a role's password.
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

    /// A gateway with this list. It listens on a Unix socket, too.
    fn gateway(&self, list: &str, options: &[&str]) -> Gateway {
        let list = self.file("hba.conf", list);
        let listen = format!("127.0.0.1:0,{}", self.socket().display());
        let options = [&["--hba-file", &list, "--listen", &listen], options].concat();
        Gateway::in_front_of(&upstream(), &options)
    }

    /// A log-in over the Unix socket, by psql: `user`, or the words of the refusal.
    fn by_socket(&self, user: &str, password: &str) -> Result<String, String> {
        psql(self.folder.path().to_str().unwrap(), 5432, user, password)
    }

    /// Writes a file anew, and waits until the log says what became of it.
    async fn reload(&self, gateway: &Gateway, name: &str, text: &str) -> String {
        let seen = gateway.log().len();
        self.file(name, text);
        gateway.signal(Signal::SIGHUP);
        let log = || gateway.log().split_off(seen);
        until("the lists are read again", || async { log().contains("reloaded") }).await;
        log()
    }
}

fn upstream() -> String {
    format!("postgres://{GATE}:{GATES_PASSWORD}@127.0.0.1:{}/postgres", server().port())
}

/// Makes the shared server ask.
async fn ask_for_passwords() {
    let direct = connect(&config(server().port())).await;
    let gate = format!("create role {GATE} superuser login password '{GATES_PASSWORD}'");
    direct.batch_execute(&gate).await.unwrap();
    let file = value(&direct, "show hba_file").await;
    std::fs::write(file, SERVERS_LIST).unwrap();
    value(&direct, "select pg_reload_conf()").await;
    let nobody = config(server().port()).user(GATE).to_owned();
    until("the server asks", || async { try_connect(&nobody).await.is_err() }).await;
}

/// A log-in by tokio-postgres: who the server says it is, or SQLSTATE and words of the refusal.
async fn log_in(port: u16, user: &str, password: &str) -> Result<String, String> {
    let config = config(port).user(user).password(password).to_owned();
    match try_connect(&config).await {
        Ok(client) => Ok(value(&client, "select current_user").await),
        Err(error) => Err(match error.as_db_error() {
            Some(refusal) => format!("{} {}", refusal.code().code(), refusal.message()),
            None => describe(&error),
        }),
    }
}

/// The same by psql, which does not tell SQLSTATEs.
fn psql(host: &str, port: u16, user: &str, password: &str) -> Result<String, String> {
    let mut psql = Command::new(tool("psql").expect("psql is installed"));
    psql.args(["-X", "-w", "-At", "-h", host, "-p", &port.to_string(), "-U", user, "-d", "postgres"]);
    psql.args(["-c", "select current_user"]).env("PGPASSWORD", password).env("LC_ALL", "C");
    let output = psql.output().unwrap();
    let text = |bytes| String::from_utf8_lossy(bytes).trim().to_owned();
    if output.status.success() { Ok(text(&output.stdout)) } else { Err(text(&output.stderr)) }
}
