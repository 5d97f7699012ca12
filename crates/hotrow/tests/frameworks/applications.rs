//! Applications of other projects, directly and through a gateway: a smoke test each, how many of its statements the gateway
//! packed, and errors that only happen through the gateway. `make applications` runs this and prints a table. `cargo test`
//! does not, because it downloads the applications.

#![expect(clippy::print_stdout, reason = "the table is what `make applications` is for")]

use std::collections::BTreeSet;

use hotrow_postgres::PrivateServer;
use hotrow_testkit::{Gateway, connect};
use serde::Deserialize;

use crate::counts::{Counted, Counts};
use crate::program::{Program, chosen};
use crate::report::{causes, why};

const PYTHON: &str = "../../target/applications/bin/python";

/// The applications. A name is also that of a database.
const APPLICATIONS: &[Program] = &[
    application("miniflux", &[PYTHON, "miniflux.py"]),
    application("unleash", &[PYTHON, "unleash.py"]),
    application("pg_boss", &["node", "node/pg-boss.js"]),
    application("graphile_worker", &["node", "node/graphile-worker.js"]),
    application("procrastinate", &[PYTHON, "procrastinate_jobs.py"]),
    application("pgqueuer", &[PYTHON, "pgqueuer_jobs.py"]),
    application("mlflow", &[PYTHON, "mlflow_tracking.py"]),
    application("prefect", &[PYTHON, "prefect_runs.py"]),
    application("freeradius", &[PYTHON, "freeradius.py"]),
    application("zabbix", &[PYTHON, "zabbix.py"]),
];

const fn application(name: &'static str, command: &'static [&'static str]) -> Program {
    Program { name, folders: ["applications", "."], command }
}

/// What a smoke test prints.
#[derive(Deserialize)]
struct Printed {
    /// The work that it has checked.
    done: u64,
}

/// An application whose smoke test has passed.
struct Passed {
    name: &'static str,
    done: u64,
    counts: Counted,
}

/// Creates an application's schema and runs its smoke test, both through a gateway. The schema's statements are not counted.
async fn through(server: &PrivateServer, application: &Program) -> Passed {
    let gateway = || Gateway::in_front_of(&server.url(), &["--log", "warn"]);
    let migrated = gateway();
    application.run("setup", migrated.port(), application.name, &[]).await;
    let gateway = gateway();
    let mut counts = Counts::new(&gateway).await;
    let name = application.name;
    let output = application.run_watched("smoke", gateway.port(), name, &[], counts.watch_clients()).await;
    for log in [migrated.log(), gateway.log()] {
        assert!(log.is_empty(), "{name}: the gateway warns:\n{log}");
    }
    let Printed { done } = application.result(&output);
    Passed { name, done, counts: counts.read().await }
}

/// The same directly, on a server of its own. Returns what it has checked.
async fn directly(server: &PrivateServer, application: &Program) -> u64 {
    application.run("setup", server.port(), application.name, &[]).await;
    let output = application.run("smoke", server.port(), application.name, &[]).await;
    application.result::<Printed>(&output).done
}

/// A server with the application's database.
async fn server(application: &Program) -> PrivateServer {
    let start = || PrivateServer::builder().label("applications").start().unwrap();
    let server = tokio::task::spawn_blocking(start).await.unwrap();
    let postgres = connect(&hotrow_testkit::config(server.port())).await;
    postgres.batch_execute(&format!("create database {}", application.name)).await.unwrap();
    server
}

/// The errors in a server's log, without the numbers in them.
fn errors(server: &PrivateServer) -> BTreeSet<String> {
    let log = server.log();
    let after = |line: &str| {
        let error = line.split_once("ERROR:  ")?;
        Some(error.1.replace(|letter: char| letter.is_ascii_digit(), ""))
    };
    log.lines().filter_map(after).collect()
}

fn print_table(all: &[Passed]) {
    println!(
        "\n| application | work checked | statements | packed or merged | share | pinned clients | why |\n|{}",
        "---|".repeat(7)
    );
    for Passed { name, done, counts } in all {
        let statements = counts.sum(|shape| shape.runs);
        let packed = counts.sum(|shape| shape.packed + shape.merged);
        let share = packed as f64 / statements.max(1) as f64 * 100.0;
        let pinned: usize = counts.pinned.values().sum();
        println!("| {name} | {done} | {statements} | {packed} | {share:.0} % | {pinned} | {} |", why(counts));
    }
}

#[tokio::test]
async fn applications() {
    let mut all = Vec::new();
    for application in chosen(APPLICATIONS, |application| application.name) {
        let (direct, behind) = (server(application).await, server(application).await);
        let done = directly(&direct, application).await;
        let passed = through(&behind, application).await;
        assert_eq!(passed.done, done, "{}: the work that was checked", passed.name);
        let only_through: Vec<_> = errors(&behind).difference(&errors(&direct)).cloned().collect();
        assert!(
            only_through.is_empty(),
            "{}: errors only through the gateway: {only_through:#?}",
            passed.name
        );
        println!("{}", passed.name);
        for cause in causes(&passed.counts) {
            println!("    {cause}");
        }
        all.push(passed);
    }
    print_table(&all);
}
