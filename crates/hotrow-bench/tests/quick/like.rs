//! Tests a load like that of a doctor's report, and reports that cannot be used.

use crate::bench::{Bench, REPORT};

fn file(bench: &Bench, text: &str) -> String {
    let path = bench.folder.path().join("report.json");
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn a_load_like_that_of_a_report_is_measured_beside_its_prediction() {
    let bench = Bench::new();
    let report = file(&bench, REPORT);
    let outcome = bench.run(&["--like", &report, "--gateway-program", &bench.stand_in()]).unwrap();
    assert_eq!(outcome.failures, Vec::<String>::new());
    assert!(outcome.markdown.contains("in the predicted range in 1 of 1 workloads"), "{}", outcome.markdown);
    assert!(outcome.markdown.contains("Hot rows took 60 %, 20 % of the writes"), "{}", outcome.markdown);
    let report = bench.report();
    let gain = &report["scenarios"][0]["gains"][0];
    assert_eq!((&gain["clients"], &gain["predicted"]["low"]), (&6.into(), &0.001.into()), "{gain}");
    assert_eq!(report["scenarios"][0]["techniques"][1]["name"], "hotrow");
}

#[test]
fn a_prediction_that_is_wrong_is_said_to_be() {
    let bench = Bench::new();
    let report = file(&bench, &REPORT.replace("0.001", "999"));
    let outcome = bench.run(&["--like", &report, "--gateway-program", &bench.stand_in()]).unwrap();
    assert!(outcome.markdown.contains("in the predicted range in 0 of 1 workloads"), "{}", outcome.markdown);
}

#[test]
fn reports_that_cannot_be_used_are_refused_with_the_next_step() {
    let refused = |text: &str| {
        let bench = Bench::new();
        let report = file(&bench, text);
        bench.run(&["--like", &report]).unwrap_err().to_string()
    };
    for (text, reason) in [
        (
            REPORT.replace("\"version\": 1", "\"version\": 7"),
            "its version is 7, and this program reads version 1",
        ),
        (REPORT.replace("\"version\": 1,", ""), "it has no version"),
        (REPORT.replace("900, \"writing\"", "null, \"writing\""), "the doctor saw no transactions"),
        (REPORT.replace("workload", "load"), "missing field `workload`"),
        ("hello".to_owned(), "expected value"),
    ] {
        let error = refused(&text);
        assert!(
            error.contains(reason) && error.contains("hotrow doctor --upstream URL --json FILE"),
            "{error}"
        );
    }
    assert!(Bench::new().run(&["--like", "nowhere.json"]).unwrap_err().to_string().contains("nowhere.json"));
}
