//! Tests what the benchmark refuses or omits, and that it then changes nothing.

use crate::bench::{Bench, schema_exists};
use crate::elsewhere::elsewhere;
use hotrow_bench::Error;
use hotrow_postgres::PrivateServer;
use std::path::{Path, PathBuf};

#[test]
fn a_gateway_that_does_not_start_is_reported_with_its_last_output() {
    let server = PrivateServer::builder().label("bench-upstream").start().unwrap();
    let bench = Bench::new();
    let program = bench.program("echo 'no such upstream' >&2; exit 3");
    let error =
        bench.run(&["single", "--upstream", &server.url(), "--gateway-program", &program]).unwrap_err();
    assert!(matches!(&error, Error::Ended { printed, .. } if printed == "no such upstream"), "{error}");
    assert!(!schema_exists(&server), "the benchmark's schema was left behind");
}

#[test]
fn an_existing_schema_is_left_alone() {
    let server = elsewhere();
    let error =
        Bench::new().run(&["single", "--upstream", &server.url(), "--gateway", &server.url()]).unwrap_err();
    assert!(matches!(error, Error::SchemaExists), "{error}");
    assert!(schema_exists(&server));
}

#[test]
fn an_existing_hotrow_schema_is_left_alone() {
    let server = PrivateServer::builder().label("bench-upstream").start().unwrap();
    server.query("create schema hotrow").unwrap();
    let error =
        Bench::new().run(&["counter", "--upstream", &server.url(), "--gateway", &server.url()]).unwrap_err();
    assert!(matches!(error, Error::PackExists), "{error}");
    assert!(server.query("select to_regnamespace('hotrow')::text").unwrap()[0][0].is_some());
}

#[test]
fn more_clients_than_free_connections_are_omitted_with_a_reason() {
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
fn errors_of_the_command_line_are_reported_before_anything_starts() {
    let refused = |arguments: &[&str]| Bench::new().run(arguments).unwrap_err().to_string();
    let unknown = refused(&["single", "--techniques", "magic"]);
    assert!(unknown.contains("direct, hotrow"), "{unknown}");
    assert!(refused(&["single", "--gateway", "postgres://a@b/c"]).contains("--upstream"));
    assert!(!Path::new("bench-results").exists(), "{:?} was created", PathBuf::from("bench-results"));
}
