//! Histories of random transactions through two gateways, with and without faults, break no promise of an isolation level.

#![allow(clippy::unwrap_used, reason = "a test that cannot create its environment has failed")]

use hotrow_lab::histories::{Args, Verdict, run};

fn args(seconds: u64) -> (Args, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let args = Args {
        seconds,
        clients: 16,
        seed: Some(hotrow_testkit::seed()),
        no_faults: false,
        direct: false,
        out: folder.path().to_owned(),
        gateway_program: Some(hotrow_testkit::program("hotrow")),
    };
    (args, folder)
}

fn checked(args: &Args) -> Verdict {
    let verdict = run(args).unwrap();
    assert!(!verdict.is_broken, "{}", verdict.markdown);
    assert!(verdict.committed > 50, "{}", verdict.markdown);
    verdict
}

#[test]
#[ignore = "long: make test-all"]
fn histories_with_faults_break_no_promise() {
    let (args, _folder) = args(10);
    checked(&args);
}

#[test]
#[ignore = "long: make test-all"]
fn histories_of_direct_clients_have_only_the_anomalies_that_levels_allow() {
    let (args, _folder) = args(4);
    let verdict = checked(&Args { direct: true, no_faults: true, ..args });
    assert!(verdict.allowed > 0, "the load provokes no anomaly: {}", verdict.markdown);
}
