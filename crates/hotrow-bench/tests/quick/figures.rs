//! Runs a scenario in its quick size with a stand-in for the gateway, and checks its report. It contains no tests.

use crate::bench::Bench;
use serde_json::Value;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

/// A test for each of these scenarios, and their names. The second ones are long together.
macro_rules! quick_tests {
    ($($test:ident)*; long: $($long:ident)*) => {
        const QUICK: &[&str] = &[$(stringify!($test),)* $(stringify!($long)),*];

        $(#[test]
        fn $test() {
            crate::figures::quick(&stringify!($test).replace('_', "-"));
        })*

        $(#[test]
        #[ignore = "long: make test-all"]
        fn $long() {
            crate::figures::quick(&stringify!($long).replace('_', "-"));
        })*
    };
}
pub(crate) use quick_tests;

/// Runs a scenario. Of the scenarios with much preparation, two run at a time, because more would slow each other down too
/// much.
pub fn quick(name: &str) {
    static TURNS: [Mutex<()>; 2] = [Mutex::new(()), Mutex::new(())];
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let takes_turns = name.starts_with("queue-") || name.starts_with("feed-");
    let _turn = takes_turns.then(|| {
        let turn = &TURNS[NEXT.fetch_add(1, Relaxed) % TURNS.len()];
        turn.lock().unwrap_or_else(PoisonError::into_inner) // another test's failure poisons it
    });
    check(name, &every_technique_gives_a_figure(name));
}

/// Runs a scenario with the stand-in, and expects a figure from every technique whose program is installed.
fn every_technique_gives_a_figure(scenario: &str) -> Value {
    let bench = Bench::new();
    let outcome = bench.run(&[scenario, "--gateway-program", &bench.stand_in()]).unwrap();
    assert_eq!(outcome.failures, Vec::<String>::new());
    assert!(outcome.markdown.contains(&format!("## {scenario}")), "{}", outcome.markdown);
    assert!(bench.folder.path().join("out/plot.svg").is_file());
    let report = bench.report();
    assert_eq!(report["server"]["private"], true);
    for technique in report["scenarios"][0]["techniques"].as_array().unwrap() {
        for cell in technique["cells"].as_array().unwrap() {
            let elsewhere = technique["through"] == "pg-bouncer"
                || technique["through"] == "small-pg-bouncer"
                || technique["through"] == "redis"
                || technique["through"] == "hotrow-tls"
                || technique["name"] == "pgq"
                || cell["reason"].as_str().is_some_and(|reason| reason.contains("`make peers`"));
            let skipped = cell["outcome"] == "skipped" && elsewhere;
            assert!(skipped || cell["per_second"]["median"].as_f64().unwrap() > 0.0, "{technique}");
            // pgbench may measure none of a few fast requests. They are counted.
            let latency = |field: &str| cell["latency"][field].as_u64().unwrap();
            let is_timed = || latency("max_us") > 0 || latency("untimed") == latency("samples");
            assert!(skipped || latency("samples") > 0 && is_timed(), "{technique}");
        }
    }
    report["scenarios"][0].clone()
}

/// Checks more facts in the report of a scenario.
fn check(name: &str, scenario: &Value) {
    let techniques = scenario["techniques"].as_array().unwrap();
    let due = |technique: usize| techniques[technique]["cells"][0]["due_per_second"].as_u64().unwrap();
    match name {
        "hot-row" => {
            let round = |technique: usize| &techniques[technique]["cells"][1]["rounds"][0];
            assert_eq!(techniques[1]["name"], "try-lock");
            assert!(round(1)["done"].as_u64().unwrap() > 0, "nothing was sold: {}", round(1));
            assert_eq!(techniques[2]["name"], "nowait");
            assert!(round(2)["done"].as_u64().unwrap() > 0, "nothing was sold: {}", round(2));
            assert_eq!(round(0)["turned_away"], 0, "the plain statement rejects no client");
        }
        "open-loop" => {
            assert_eq!(due(0), due(1), "both must be measured at the same rate");
            assert_eq!(due(2), 1_000);
        }
        "counter" => {
            let through: Vec<_> = techniques.iter().map(|technique| &technique["through"]).collect();
            assert_eq!(through[..4], ["direct", "direct", "hotrow", "hotrow"]);
            assert!(through[4..].iter().all(|through| *through == "application"), "{through:?}");
        }
        "counter-open-loop" => {
            assert!(due(0) > 0);
            assert!(
                (0..3).all(|technique| due(technique) == due(0)),
                "all must be measured at the same rate"
            );
        }
        "counter-zipf" => assert_eq!(scenario["rows"], 10_000),
        _ if name.starts_with("novelty-") => {
            let novelty = &scenario["novelties"][0];
            assert!(novelty["share"]["median"].as_f64().unwrap() > 0.0, "{novelty}");
            assert!(novelty["gateway"].is_null(), "the stand-in has no metrics: {novelty}");
            assert_eq!(novelty["first_use"].is_object(), name == "novelty-first-use", "{novelty}");
        }
        _ if name.starts_with("predictions-") => {
            let gains = scenario["gains"].as_array().unwrap();
            assert_eq!(
                gains.len(),
                techniques[0]["cells"].as_array().unwrap().len(),
                "one for each number of clients"
            );
            for gain in gains {
                assert_eq!(
                    (&gain["predicted"]["high"], &gain["is_within"]),
                    (&1000.0.into(), &true.into()),
                    "{gain}"
                );
                assert!(gain["measured"].as_f64().unwrap() > 0.0, "{gain}");
            }
        }
        "mariadb-disks" => {
            for technique in techniques {
                let p50_us = technique["cells"][0]["latency"]["p50_us"].as_u64().unwrap();
                assert!(p50_us >= 1_500, "a flush was not delayed: {technique}");
            }
        }
        "sale" => {
            for technique in techniques {
                let turns_away = technique["name"] == "nowait" || technique["name"] == "try-lock";
                let turned_away = technique["cells"][0]["rounds"][0]["turned_away"].as_u64().unwrap_or(0);
                assert!(turns_away || turned_away == 0, "{technique}");
            }
        }
        _ => {}
    }
}
