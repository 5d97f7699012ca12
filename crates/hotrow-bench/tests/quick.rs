//! Every scenario in its quick size against real servers, and what must not pass for a figure; no figure is judged here.

#![allow(clippy::unwrap_used, reason = "a test whose surroundings can't be set up has failed")]

use clap::Parser;
use hotrow_bench::{Args, Error, Outcome};
use hotrow_postgres::PrivateServer;
use serde_json::Value;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

#[derive(Parser)]
struct Command {
    #[command(flatten)]
    args: Args,
}

/// A folder for a report, and for a program that stands in for the gateway.
struct Bench {
    folder: TempDir,
}

impl Bench {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    fn run(&self, arguments: &[&str]) -> Result<Outcome, Error> {
        let out = self.folder.path().join("out");
        let fixed = ["bench", "--quick", "--out", out.to_str().unwrap()];
        let command = Command::try_parse_from(fixed.iter().chain(arguments)).unwrap();
        hotrow_bench::run(command.args)
    }

    fn report(&self) -> Value {
        let text = std::fs::read_to_string(self.folder.path().join("out/report.json")).unwrap();
        serde_json::from_str(&text).unwrap()
    }

    /// A program that is started as the gateway is.
    fn program(&self, script: &str) -> String {
        let path = self.folder.path().join("gateway");
        std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        path.to_str().unwrap().to_owned()
    }

    /// One that leads its clients straight to the server, by saying that it listens where the server does.
    fn stand_in(&self) -> String {
        self.program("server=${3#*@}\necho \"hotrow: listening on ${server%%/*}\"\nexec sleep 600")
    }
}

/// Runs a scenario with the stand-in, and expects a figure from every technique that the machine has the program for.
fn every_technique_gives_a_figure(scenario: &str) -> Value {
    let bench = Bench::new();
    let outcome = bench.run(&[scenario, "--gateway-program", &bench.stand_in()]).unwrap();
    assert_eq!(outcome.failures, Vec::<String>::new());
    assert!(outcome.markdown.contains(&format!("## {scenario}")), "{}", outcome.markdown);
    assert!(bench.folder.path().join("out/plot.svg").is_file());
    let report = bench.report();
    assert_eq!(report["server"]["private"], true);
    for technique in report["scenarios"][0]["techniques"].as_array().unwrap() {
        for cell in technique["cells"].as_array().unwrap() {
            let elsewhere = technique["through"] == "pg-bouncer" || technique["through"] == "redis";
            let skipped = cell["outcome"] == "skipped" && elsewhere;
            assert!(skipped || cell["per_second"]["median"].as_f64().unwrap() > 0.0, "{technique}");
            assert!(skipped || cell["latency"]["max_us"].as_u64().unwrap() > 0, "{technique}");
        }
    }
    report["scenarios"][0].clone()
}

#[test]
fn hot_row() {
    let scenario = every_technique_gives_a_figure("hot-row");
    let round = |technique: usize| &scenario["techniques"][technique]["cells"][1]["rounds"][0];
    assert_eq!(scenario["techniques"][1]["name"], "try-lock");
    assert!(round(1)["done"].as_u64().unwrap() > 0, "nothing was sold: {}", round(1));
    assert_eq!(scenario["techniques"][2]["name"], "nowait");
    assert!(round(2)["done"].as_u64().unwrap() > 0, "nothing was sold: {}", round(2));
    assert_eq!(round(0)["turned_away"], 0, "the plain statement turns nobody away");
}

#[test]
fn single() {
    every_technique_gives_a_figure("single");
}

#[test]
fn spread() {
    every_technique_gives_a_figure("spread");
}

#[test]
fn reads() {
    every_technique_gives_a_figure("reads");
}

#[test]
fn pass_through() {
    every_technique_gives_a_figure("pass-through");
}

#[test]
fn open_loop() {
    let scenario = every_technique_gives_a_figure("open-loop");
    let due =
        |technique: usize| scenario["techniques"][technique]["cells"][0]["due_per_second"].as_u64().unwrap();
    assert_eq!(due(0), due(1), "both are to be measured at the same rate");
    assert_eq!(due(2), 1_000);
}

#[test]
fn counter() {
    let scenario = every_technique_gives_a_figure("counter");
    let through: Vec<_> =
        scenario["techniques"].as_array().unwrap().iter().map(|it| &it["through"]).collect();
    assert_eq!(through, ["direct", "direct", "hotrow", "hotrow", "application", "application"]);
}

#[test]
fn counter_open_loop() {
    let scenario = every_technique_gives_a_figure("counter-open-loop");
    let due: Vec<_> = (0..3).map(|it| &scenario["techniques"][it]["cells"][0]["due_per_second"]).collect();
    assert!(due[0].as_u64().unwrap() > 0);
    assert!(due.iter().all(|it| *it == due[0]), "all are to be measured at the same rate: {due:?}");
}

#[test]
fn counter_zipf() {
    assert_eq!(every_technique_gives_a_figure("counter-zipf")["rows"], 10_000);
}

#[test]
fn counter_restart() {
    every_technique_gives_a_figure("counter-restart");
}

#[test]
fn sale() {
    let scenario = every_technique_gives_a_figure("sale");
    for technique in scenario["techniques"].as_array().unwrap() {
        let turns_away = technique["name"] == "nowait" || technique["name"] == "try-lock";
        let turned_away = technique["cells"][0]["rounds"][0]["turned_away"].as_u64().unwrap_or(0);
        assert!(turns_away || turned_away == 0, "{technique}");
    }
}

#[test]
fn sold_out() {
    every_technique_gives_a_figure("sold-out");
}

#[test]
fn platform() {
    every_technique_gives_a_figure("platform");
}

/// A server of our own with the scenario's rows, which is not the one that the benchmark looks at.
fn elsewhere() -> PrivateServer {
    let server = PrivateServer::builder().label("bench-elsewhere").start().unwrap();
    let set_up = concat!(include_str!("../sql/inventory.sql"), include_str!("../sql/inventory_fill.sql"));
    let rows = "set hotrow_bench.first = 1; set hotrow_bench.last = 1";
    server.query(&format!("{rows};\n{set_up}")).unwrap();
    server
}

fn schema_exists(server: &PrivateServer) -> bool {
    let rows = server.query("select to_regnamespace('hotrow_bench')::text").unwrap();
    rows[0][0].is_some()
}

#[test]
fn sales_that_are_acknowledged_but_not_in_the_rows_give_no_figure() {
    let server = PrivateServer::builder().label("bench-upstream").start().unwrap();
    let elsewhere = elsewhere();
    let bench = Bench::new();
    let outcome = bench
        .run(&[
            "single",
            "--techniques",
            "direct,hotrow",
            "--upstream",
            &server.url(),
            "--gateway",
            &elsewhere.url(),
        ])
        .unwrap();
    assert_eq!(outcome.failures.len(), 1, "{:?}", outcome.failures);
    assert!(outcome.failures[0].contains("but the rows show 0"), "{:?}", outcome.failures);
    assert_eq!(format!("{:?}", outcome.exit_code()), format!("{:?}", std::process::ExitCode::FAILURE));
    let cell = &bench.report()["scenarios"][0]["techniques"][1]["cells"][0];
    assert_eq!(cell["outcome"], "failed");
    assert!(
        cell.get("per_second").is_none() && !outcome.markdown.contains("| `hotrow` |"),
        "{}",
        outcome.markdown
    );
    assert!(!schema_exists(&server), "the benchmark's schema was left behind");
}

#[test]
fn a_gateway_that_does_not_start_is_reported_with_its_last_words() {
    let server = PrivateServer::builder().label("bench-upstream").start().unwrap();
    let bench = Bench::new();
    let program = bench.program("echo 'no such upstream' >&2; exit 3");
    let error =
        bench.run(&["single", "--upstream", &server.url(), "--gateway-program", &program]).unwrap_err();
    assert!(matches!(&error, Error::Ended { said, .. } if said == "no such upstream"), "{error}");
    assert!(!schema_exists(&server), "the benchmark's schema was left behind");
}

#[test]
fn a_gateway_that_dies_under_way_takes_its_figures_with_it() {
    let bench = Bench::new();
    let program = bench.program("echo 'hotrow: listening on 127.0.0.1:1'; echo 'panicked' >&2; exit 4");
    let outcome = bench.run(&["single", "--techniques", "hotrow", "--gateway-program", &program]).unwrap();
    assert_eq!(outcome.failures.len(), 1);
    assert!(outcome.failures[0].contains("had ended (exit status: 4)"), "{:?}", outcome.failures);
    assert!(outcome.failures[0].contains("panicked"), "{:?}", outcome.failures);
}

#[test]
fn a_schema_that_is_there_already_is_left_alone() {
    let server = elsewhere();
    let error =
        Bench::new().run(&["single", "--upstream", &server.url(), "--gateway", &server.url()]).unwrap_err();
    assert!(matches!(error, Error::SchemaExists), "{error}");
    assert!(schema_exists(&server));
}

#[test]
fn a_schema_pack_that_is_there_already_is_left_alone() {
    let server = PrivateServer::builder().label("bench-upstream").start().unwrap();
    server.query("create schema hotrow").unwrap();
    let error =
        Bench::new().run(&["counter", "--upstream", &server.url(), "--gateway", &server.url()]).unwrap_err();
    assert!(matches!(error, Error::PackExists), "{error}");
    assert!(server.query("select to_regnamespace('hotrow')::text").unwrap()[0][0].is_some());
}

#[test]
fn a_run_whose_counter_was_changed_behind_its_back_gives_no_figure() {
    let server = PrivateServer::builder().label("bench-upstream").start().unwrap();
    let bench = Bench::new();
    let spoil = "create function public.spoil() returns trigger language plpgsql as $$
                 begin new.value := new.value + 1; return new; end $$";
    server.query(spoil).unwrap();
    // Each history of the benchmark's own is spoilt as soon as there is a table for it.
    let hook = "create function public.hook() returns event_trigger language plpgsql as $$
                begin
                    if to_regclass('hotrow_bench.application_ledger') is not null then
                        execute 'create or replace trigger spoil before insert on hotrow_bench.application_ledger
                            for each row when (new.version = 2) execute function public.spoil()';
                    end if;
                end $$";
    server.query(hook).unwrap();
    server
        .query(
            "create event trigger hook on ddl_command_end when tag in ('CREATE VIEW')
                execute function public.hook()",
        )
        .unwrap();
    let outcome =
        bench.run(&["counter", "--techniques", "direct,app-batching", "--upstream", &server.url()]).unwrap();
    assert_eq!(outcome.failures.len(), 1, "{:?}", outcome.failures);
    assert!(outcome.failures[0].contains("app-batching"), "{:?}", outcome.failures);
    assert!(outcome.failures[0].contains("no longer add up"), "{:?}", outcome.failures);
    assert!(!schema_exists(&server), "the benchmark's schema was left behind");
    assert!(server.query("select to_regnamespace('hotrow')::text").unwrap()[0][0].is_none());
}

#[test]
fn clients_that_the_server_has_no_room_for_are_left_out_with_a_reason() {
    let server =
        PrivateServer::builder().label("bench-upstream").setting("max_connections", "60").start().unwrap();
    let bench = Bench::new();
    let arguments = ["hot-row", "--techniques", "direct", "--clients", "1,64", "--upstream", &server.url()];
    let outcome = bench.run(&arguments).unwrap();
    assert!(outcome.failures.is_empty());
    let report = bench.report();
    let cells = &report["scenarios"][0]["techniques"][0]["cells"];
    assert_eq!((&cells[0]["outcome"], &cells[1]["outcome"]), (&"measured".into(), &"skipped".into()));
    assert!(
        outcome.markdown.contains("`direct` was not run: the server has room for"),
        "{}",
        outcome.markdown
    );
}

#[test]
fn what_was_typed_wrongly_is_said_before_anything_starts() {
    let refused = |arguments: &[&str]| Bench::new().run(arguments).unwrap_err().to_string();
    let unknown = refused(&["single", "--techniques", "magic"]);
    assert!(unknown.contains("direct, hotrow, pgbouncer"), "{unknown}");
    assert!(refused(&["single", "--gateway", "postgres://a@b/c"]).contains("--upstream"));
    assert!(!Path::new("bench-results").exists(), "{:?} was created", PathBuf::from("bench-results"));
}
