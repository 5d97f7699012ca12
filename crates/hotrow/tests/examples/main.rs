//! The programs under examples/, through a gateway that merges their drivers' calls: sellers in this file, workers of a
//! queue in `workers`. `make examples` runs them. `cargo test` does not, because they need all their languages.

#![expect(clippy::unwrap_used, reason = "the lints' exception for tests stops at #[test]")]

mod page;
mod workers;

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::Once;
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use hotrow_testkit::line::Line;
use hotrow_testkit::{Gateway, free_port, migrate, server};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

hotrow_testkit::shared_server!();

const BUYERS: u64 = 10_000;
/// The programs take seconds, and their compilers longer on a busy machine.
const TIME: Duration = Duration::from_secs(180);

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Installs the hotrow schema on the server that this file's tests share.
fn install() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| migrate(&server().url()));
}

/// Starts a program. It may have children, as `go run` has.
fn start(mut command: Command) -> Child {
    let spawned = command.process_group(0).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    spawned.unwrap_or_else(|error| panic!("{command:?}: {error}; examples/README.md has its requirements"))
}

/// Waits for the program's end. Ends its children if they take too long.
fn end(child: Child) -> Output {
    let group = group(&child);
    let (ended, end) = channel();
    thread::spawn(move || ended.send(child.wait_with_output()));
    end.recv_timeout(TIME)
        .unwrap_or_else(|_| {
            killpg(group, Signal::SIGKILL).unwrap();
            panic!("a program took longer than {TIME:?}");
        })
        .unwrap()
}

fn group(child: &Child) -> Pid {
    Pid::from_raw(child.id().cast_signed())
}

/// Runs the program of a folder and checks its output, the rows on the server, and the number of merged calls.
fn sells(folder: &str, program: &str, arguments: &[&str]) {
    install();
    let http = format!("127.0.0.1:{}", free_port());
    let gateway = Gateway::start(&["--http", &http]);
    let item = format!("phone-{folder}");
    let mut command = Command::new(program);
    command
        .args(arguments)
        .current_dir(root().join("examples").join(folder))
        .env("ITEM", &item)
        .env("DATABASE_URL", format!("postgres://postgres@127.0.0.1:{}/postgres", gateway.port()))
        .env("HOTROW_URL", format!("http://{http}"));
    let output = end(start(command));
    let (printed, errors) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(
        output.status.success(),
        "{}\n{printed}{errors}run make examples if something is missing",
        output.status
    );
    let last = printed.lines().last().unwrap_or_default();
    assert!(
        last.starts_with("sold 100 of 100 to 10000 buyers in ")
            && last.ends_with(" s (100 reserved, 9900 sold_out)"),
        "{printed}{errors}"
    );

    let mut direct = Line::connect(server().port(), "public").unwrap().expect("the server accepts the login");
    let sql = format!(
        "select status, count(*), count(distinct buyer), sum(quantity) from hotrow.reservation
         where item = '{item}' group by status"
    );
    let row = ["confirmed", "100", "100", "100"].map(|value| Some(value.to_owned()));
    assert_eq!(direct.query(&sql).rows(), [row], "status, reservations, buyers, phones");

    let merged = gateway.metric("hotrow_merged_units_total");
    assert!(merged > BUYERS * 3 / 4, "only {merged} calls were merged:\n{}", gateway.metrics());
}

#[test]
fn python_psycopg() {
    let python = root().join("target/examples-python/bin/python");
    sells("python", python.to_str().unwrap(), &["sell.py"]);
}

#[test]
fn java_jdbc() {
    sells("java", "java", &["-cp", "target/dependency/*", "Sell.java"]);
}

#[test]
fn node_pg() {
    sells("node", "node", &["sell.js"]);
}

#[test]
fn go_pgx() {
    sells("go", "go", &["run", "."]);
}

#[test]
fn curl_http() {
    sells("curl", "./sell.sh", &[]);
}
