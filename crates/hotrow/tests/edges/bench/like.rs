//! `hotrow doctor --json` and `hotrow bench --like`: the benchmark understands the report that the doctor writes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use hotrow_testkit::{config, hotrow, new_database, server};
use serde_json::Value;

const CLIENTS: usize = 4;

#[tokio::test]
#[ignore = "long: make test-all"]
async fn a_report_of_the_doctor_becomes_a_load_of_the_same_shape() {
    let (database, administrator) = new_database().await;
    administrator
        .batch_execute("create table item (id int primary key, stock int); insert into item values (7, 0)")
        .await
        .unwrap();
    let is_over = Arc::new(AtomicBool::new(false));
    let mut clients = Vec::new();
    for _ in 0..CLIENTS {
        let client = hotrow_testkit::connect(config(server().port()).dbname(&database)).await;
        let is_over = is_over.clone();
        clients.push(tokio::spawn(async move {
            let update = client.prepare("update item set stock = stock - 1 where id = $1").await.unwrap();
            while !is_over.load(Relaxed) {
                client.execute(&update, &[&7]).await.unwrap();
            }
        }));
    }
    let folder = tempfile::tempdir().unwrap();
    let (report, out) = (folder.path().join("report.json"), folder.path().join("out"));
    let upstream = format!("postgres://postgres@127.0.0.1:{}/{database}", server().port());
    let mut doctor = tokio::process::Command::from(hotrow());
    doctor.args(["doctor", "--seconds", "3", "--upstream", &upstream, "--json"]).arg(&report);
    let examined = doctor.output().await.unwrap();
    is_over.store(true, Relaxed);
    for client in clients {
        client.await.unwrap();
    }
    assert!(examined.status.success(), "{}", String::from_utf8_lossy(&examined.stderr));

    let mut bench = tokio::process::Command::from(hotrow());
    bench.args(["bench", "--quick", "--like"]).arg(&report).arg("--out").arg(&out);
    let measured = bench.output().await.unwrap();
    assert!(measured.status.success(), "{}", String::from_utf8_lossy(&measured.stderr));

    let read = |path| -> Value { serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap() };
    let (report, result) = (read(report), read(out.join("report.json")));
    let gain = &result["scenarios"][0]["gains"][0];
    assert_eq!(gain["predicted"]["low"], report["prediction"]["low"], "{gain}");
    // The doctor's role sees the sessions of other tests and its own database's administrator.
    let clients = gain["clients"].as_u64().unwrap();
    assert!(clients >= CLIENTS as u64 && clients < 10, "{}", report["workload"]);
    assert!(report["workload"]["transactions"].as_f64().unwrap() > 0.0, "{}", report["workload"]);
    assert!(report["workload"]["writing"].as_f64().unwrap() > 0.5, "{}", report["workload"]);
}
