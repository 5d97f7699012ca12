//! Tests runs that must not give a figure: answers that the rows contradict, and gateways that end.

use crate::bench::{Bench, schema_exists};
use crate::elsewhere::elsewhere;
use hotrow_postgres::PrivateServer;

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
fn a_gateway_that_ends_during_a_run_gives_no_figure() {
    let bench = Bench::new();
    let program = bench.program("echo 'hotrow: listening on 127.0.0.1:1'; echo 'panicked' >&2; exit 4");
    let outcome = bench.run(&["single", "--techniques", "hotrow", "--gateway-program", &program]).unwrap();
    assert_eq!(outcome.failures.len(), 1);
    assert!(outcome.failures[0].contains("had ended (exit status: 4)"), "{:?}", outcome.failures);
    assert!(outcome.failures[0].contains("panicked"), "{:?}", outcome.failures);
}
