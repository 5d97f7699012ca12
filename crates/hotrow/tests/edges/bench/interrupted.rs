//! `hotrow bench` on a user's server, interrupted by the user: it does not wait for running statements, and leaves no
//! objects.

use std::process::Stdio;

use hotrow_testkit::{PATIENCE, config, connect, server, until, value};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::io::AsyncReadExt;
use tokio::process::Command;

#[tokio::test]
#[ignore = "long: make test-all"]
async fn a_fill_of_an_hour_ends_with_the_benchmark() {
    let direct = &connect(&config(server().port())).await;
    let out = tempfile::tempdir().unwrap();
    let mut bench = Command::from(hotrow_testkit::hotrow())
        .args(["bench", "feed-consume", "--techniques", "pack-direct", "--seconds", "1000"])
        .args(["--upstream", &server().url(), "--out"])
        .arg(out.path().join("report"))
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    until("the benchmark fills its tables", || async {
        value(
            direct,
            "select count(*) from pg_stat_activity where state = 'active' and query like '%push_batch(%'",
        )
        .await
            == "2" // including this query itself
    })
    .await;

    kill(Pid::from_raw(bench.id().unwrap().try_into().unwrap()), Signal::SIGINT).unwrap();
    let status =
        tokio::time::timeout(PATIENCE, bench.wait()).await.expect("the benchmark ends at once").unwrap();

    let mut errors = String::new();
    bench.stderr.take().unwrap().read_to_string(&mut errors).await.unwrap();
    assert!(!status.success() && errors.contains("interrupted"), "{status}: {errors}");
    let left = "select concat(to_regnamespace('hotrow'), to_regnamespace('hotrow_bench'))";
    assert_eq!(value(direct, left).await, "");
    until("the benchmark's sessions are gone", || async {
        value(direct, "select count(*) from pg_stat_activity where application_name = 'hotrow-bench'").await
            == "0"
    })
    .await;
    assert!(!out.path().join("report").exists(), "a report was written");
}
