//! Tests queues of other projects with stand-ins for their programs, and reports without these programs.

use crate::bench::Bench;
use hotrow_postgres::PrivateServer;
use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt;

/// The folder in which the benchmark looks for River's program, with a stand-in that does this.
fn river(bench: &Bench, does: &str) -> String {
    let folder = bench.folder.path().join("peers");
    let program = folder.join("go/river");
    fs::create_dir_all(folder.join("go")).unwrap();
    fs::write(&program, format!("#!/bin/sh\ncase $1 in\nversions) echo 'River 0.0';;\n{does}\nesac\n"))
        .unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    folder.to_str().unwrap().to_owned()
}

/// The result of a benchmark of River with this folder.
fn cell(bench: &Bench, peers: &str) -> (Value, Vec<String>) {
    let arguments = ["queue-lease", "--techniques", "river", "--peers", peers];
    let failures = bench.run(&arguments).unwrap().failures;
    (bench.report()["scenarios"][0]["techniques"][0]["cells"][0].clone(), failures)
}

#[test]
fn reported_orders_count_if_the_rows_agree() {
    let bench = Bench::new();
    let peers = river(
        &bench,
        r#"enqueue) psql "$DATABASE_URL" -qc "insert into hotrow_bench.begun values ($3)";;
        work) psql "$DATABASE_URL" -qc "insert into hotrow_bench.worked select
                (select count(*) from hotrow_bench.worked) + n, gen_random_uuid() from generate_series(1, $3) n"
            echo "{\"orders\": $3, \"seconds\": 0.5}";;"#,
    );
    let (cell, failures) = cell(&bench, &peers);
    assert_eq!(failures, Vec::<String>::new());
    // The number for one second after a warm-up that processed 5,001 in half a second, and one more.
    assert_eq!(
        (&cell["rounds"][0]["done"], &cell["per_second"]["median"]),
        (&10_003.into(), &20_006.0.into())
    );
    assert!(cell["latency"].is_null(), "{cell}");
    let report = bench.report();
    assert!(report["tools"].as_array().unwrap().contains(&"River 0.0".into()), "{}", report["tools"]);
}

#[test]
fn orders_that_are_not_in_the_rows_give_no_figure() {
    let bench = Bench::new();
    let peers = river(&bench, r#"work) echo "{\"orders\": $3, \"seconds\": 0.5}";;"#);
    let (cell, failures) = cell(&bench, &peers);
    assert_eq!((&cell["outcome"], failures.len()), (&"failed".into(), 1));
    assert!(failures[0].contains("but the rows show 0"), "{failures:?}");
}

#[test]
fn a_failing_program_gives_no_figure_and_its_last_output() {
    let bench = Bench::new();
    let peers = river(&bench, "enqueue) echo 'no such table' >&2; exit 3;;");
    let (_, failures) = cell(&bench, &peers);
    assert_eq!(failures.len(), 1, "{failures:?}");
    assert!(failures[0].contains("exit status: 3: no such table"), "{failures:?}");
}

#[test]
fn programs_that_are_not_installed_are_omitted_with_a_reason() {
    let bench = Bench::new();
    let outcome = bench.run(&["queue-lease", "--techniques", "river,pg-boss"]).unwrap();
    assert_eq!(outcome.failures, Vec::<String>::new());
    for name in ["river", "pg-boss"] {
        let reason = format!("`{name}` was not run: install its program with `make peers`");
        assert!(outcome.markdown.contains(&reason), "{}", outcome.markdown);
    }

    let peers = river(&bench, "");
    let arguments = ["queue-lease", "--techniques", "pg-boss", "--peers", &peers];
    let markdown = bench.run(&arguments).unwrap().markdown;
    assert!(markdown.contains("`pg-boss` was not run: ") && markdown.contains("cannot run"), "{markdown}");
}

#[test]
fn no_schemas_are_created_on_a_named_server() {
    let (bench, server) = (Bench::new(), PrivateServer::builder().label("bench-upstream").start().unwrap());
    let peers = river(&bench, "");
    let arguments = ["queue-lease", "--techniques", "river", "--peers", &peers, "--upstream", &server.url()];
    let markdown = bench.run(&arguments).unwrap().markdown;
    assert!(markdown.contains("on a private server only"), "{markdown}");
}
