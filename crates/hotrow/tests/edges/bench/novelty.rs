//! `hotrow bench novelty-...` with a real gateway: the report says what the gateway did for the new traffic.

use hotrow_testkit::hotrow;
use serde_json::Value;

#[tokio::test]
#[ignore = "long: make test-all"]
async fn a_report_about_new_traffic_counts_the_gateways_questions_and_its_memory() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let mut bench = tokio::process::Command::from(hotrow());
    bench.args(["bench", "novelty-first-use", "--quick", "--out"]).arg(&out);
    let measured = bench.output().await.unwrap();
    assert!(measured.status.success(), "{}", String::from_utf8_lossy(&measured.stderr));

    let report: Value =
        serde_json::from_str(&std::fs::read_to_string(out.join("report.json")).unwrap()).unwrap();
    let novelty = &report["scenarios"][0]["novelties"][0];
    let gateway = |figure: &str| novelty["gateway"][figure].as_u64().unwrap_or_else(|| panic!("{novelty}"));
    assert!(gateway("statements") > 0 && gateway("bytes_before") > 1 << 20, "{novelty}");
    assert!(gateway("questions") <= gateway("statements"), "{novelty}");
    assert!(novelty["first_use"]["hotrow_us"].as_u64().unwrap() > 0, "{novelty}");
}
