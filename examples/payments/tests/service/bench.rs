//! Tests the benchmark of the payment service with the real programs. The benchmark checks its own runs, so the tests
//! only require that it gives figures.

use std::process::Command;

use hotrow_testkit::program;
use serde_json::Value;

/// The techniques of a scenario, run in its quick size.
fn bench(arguments: &[&str]) -> Vec<Value> {
    outcome(lab().args(arguments))
}

fn lab() -> Command {
    let mut lab = Command::new(program("hotrow-lab"));
    lab.arg("bench");
    lab
}

fn outcome(bench: &mut Command) -> Vec<Value> {
    let out = tempfile::tempdir().unwrap();
    let ended = bench.args(["--quick", "--out"]).arg(out.path()).output().unwrap();
    let (printed, said) = (String::from_utf8_lossy(&ended.stdout), String::from_utf8_lossy(&ended.stderr));
    assert!(ended.status.success(), "{said}");
    assert_eq!(printed, std::fs::read_to_string(out.path().join("report.md")).unwrap());
    assert!(said.contains(out.path().to_str().unwrap()), "{said}");
    let report = std::fs::read_to_string(out.path().join("report.json")).unwrap();
    let report: Value = serde_json::from_str(&report).unwrap();
    report["scenarios"][0]["techniques"].as_array().unwrap().clone()
}

fn round(technique: &Value) -> &Value {
    let cell = &technique["cells"][0];
    assert_eq!(cell["outcome"], "measured", "{technique}");
    &cell["rounds"][0]
}

#[test]
#[ignore = "long: make test-all"]
fn every_technique_gives_its_figures() {
    for technique in bench(&["payments"]) {
        let server = &round(&technique)["server"];
        assert!(server["flush_us"].as_f64().unwrap() > 0.0, "{technique}");
        assert!(server["commits_per_unit"].as_f64().unwrap() > 0.0, "{technique}");
        assert!(server["waits"].is_object(), "{technique}");
        let is_read = technique["name"].as_str().unwrap().ends_with("-slot");
        let spent = server["walsender_us_per_unit"].as_f64();
        assert_eq!(spent.is_some_and(|spent| spent > 0.0), is_read, "{technique}");
    }
}

#[test]
#[ignore = "long: make test-all"]
fn flushes_take_longer_also_with_a_standby() {
    if Command::new("cc").arg("--version").output().is_err() {
        return; // the next test
    }
    // The waits are samples: with few payments on a busy machine, none of them may fall on a wait for the standby.
    let shows_standby = || {
        let techniques = bench(&["disks-payments", "--techniques", "hotrow-4-ms,hotrow-standby"]);
        let waits_for_standby = |technique: &Value, delay_us: f64| {
            let server = &round(technique)["server"];
            assert!(server["flush_us"].as_f64().unwrap() > delay_us, "{technique}");
            server["waits"].as_object().unwrap().contains_key("IPC:SyncRep")
        };
        assert!(!waits_for_standby(&techniques[0], 4_000.0), "it has no standby: {}", techniques[0]);
        waits_for_standby(&techniques[1], 1_500.0)
    };
    assert!((0..4).any(|_| shows_standby()), "no sample shows a wait for the standby");
}

#[test]
#[ignore = "long: make test-all"]
fn without_a_compiler_no_flush_is_delayed_and_the_report_says_so() {
    let nothing = tempfile::tempdir().unwrap();
    let mut bench = lab();
    bench.args(["disks-payments", "--techniques", "direct-1.5-ms,hotrow-1.5-ms"]);
    let techniques = outcome(bench.env("PATH", nothing.path()));
    assert_eq!(techniques.len(), 2);
    for technique in techniques {
        let cell = &technique["cells"][0];
        assert_eq!(cell["outcome"], "skipped", "{technique}");
        let reason = cell["reason"].as_str().unwrap();
        assert!(reason.starts_with("cc, which compiles") && reason.contains("apt install gcc"), "{reason}");
    }
}

#[test]
#[ignore = "long: make test-all"]
fn the_doctor_predicts_the_gain_of_the_service() {
    for technique in bench(&["predictions-payments"]) {
        let predicted = &round(&technique)["prediction"]["high"];
        assert_eq!(predicted.is_f64(), technique["name"] == "direct", "{technique}");
    }
}

#[test]
#[ignore = "long: make test-all"]
fn open_loops_have_latencies() {
    for technique in bench(&["payments-open-loop"]) {
        let round = round(&technique);
        assert!(round["done"].as_u64().unwrap() > 0, "{technique}");
        assert!(round["latency"]["p99_us"].as_f64().unwrap() > 0.0, "{technique}");
    }
}

#[test]
#[ignore = "long: make test-all"]
fn the_books_agree_after_a_payment_gateway_is_killed() {
    for technique in bench(&["match-day"]) {
        assert!(round(&technique)["done"].as_u64().unwrap() > 0, "{technique}");
    }
}
