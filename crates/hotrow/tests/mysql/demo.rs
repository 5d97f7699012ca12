//! `hotrow demo --mysql`: a sale on a private server, whose row agrees with the buyers' answers.

use std::process::{Command, Output};

use serde_json::Value;

fn demo(options: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_hotrow")).args(["demo", "--mysql"]).args(options).output().unwrap()
}

#[test]
#[ignore = "long: make test-all"]
fn the_demo_sells_on_mariadb_directly_and_packed() {
    let output = demo(&["--json", "--rounds", "1", "--seconds", "1", "--buyers", "16"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();

    let server = &report["server"];
    let settings = ["binlog_format", "sync_binlog", "innodb_flush_log_at_trx_commit"];
    assert_eq!(settings.map(|name| server[name].as_str().unwrap()), ["ROW", "1", "1"], "{report}");
    assert!(server["version"].as_str().unwrap().ends_with("-MariaDB"), "{report}");

    let check = &report["check"];
    assert_eq!((&check["passed"], &check["acknowledged"]), (&true.into(), &check["sold"]), "{report}");
    let rush = &report["rush"];
    let came = (&rush["stocktaking"]["sold"], &rush["refused"], &rush["failed"]);
    assert_eq!(came, (&100.into(), &1_900.into(), &0.into()), "{report}");

    // Directly, each sale is a transaction in the binary log. Through the gateway, sales share them.
    let per_commit = |side: &str| report["comparison"][side]["sales_per_commit"].as_f64().unwrap();
    assert_eq!(per_commit("direct"), 1.0, "{report}");
    assert!(per_commit("hotrow") > 1.0, "{report}");
}

#[test]
fn the_demo_on_mariadb_takes_no_server_of_the_user() {
    let output = demo(&["--upstream", "mysql://root@127.0.0.1/shop"]);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && error.contains("cannot be used with"), "{error}");
}
