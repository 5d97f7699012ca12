//! Every scenario but those over HTTP gives figures in its quick size, with a stand-in for the gateway.

use crate::bench::Bench;
use serde_json::Value;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

/// Runs a scenario with the stand-in, and expects a figure from every technique that the machine has the program for.
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
                || technique["through"] == "redis"
                || technique["through"] == "hotrow-tls"
                || technique["name"] == "pgq"
                || cell["reason"].as_str().is_some_and(|reason| reason.contains("`make peers`"));
            let skipped = cell["outcome"] == "skipped" && elsewhere;
            assert!(skipped || cell["per_second"]["median"].as_f64().unwrap() > 0.0, "{technique}");
            assert!(skipped || cell["latency"]["max_us"].as_u64().unwrap() > 0, "{technique}");
        }
    }
    report["scenarios"][0].clone()
}

/// The same for scenarios that have much to prepare: two at a time, since with more none would have time to run.
fn in_turn(scenario: &str) {
    static TURNS: [Mutex<()>; 2] = [Mutex::new(()), Mutex::new(())];
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let turn = &TURNS[NEXT.fetch_add(1, Relaxed) % TURNS.len()];
    let _turn = turn.lock().unwrap_or_else(PoisonError::into_inner); // somebody else's failure is not this one's
    every_technique_gives_a_figure(scenario);
}

#[test]
fn hot_row() {
    let scenario = every_technique_gives_a_figure("hot-row");
    let round = |technique: usize| &scenario["techniques"][technique]["cells"][1]["rounds"][0];
    assert_eq!(scenario["techniques"][1]["name"], "try-lock");
    assert!(round(1)["done"].as_u64().unwrap() > 0, "nothing was sold: {}", round(1));
    assert_eq!(scenario["techniques"][2]["name"], "nowait");
    assert!(round(2)["done"].as_u64().unwrap() > 0, "nothing was sold: {}", round(2));
    assert_eq!(round(0)["turned_away"], 0, "the plain statement turns nobody away");
}

#[test]
fn single() {
    every_technique_gives_a_figure("single");
}

#[test]
fn spread() {
    every_technique_gives_a_figure("spread");
}

#[test]
fn reads() {
    every_technique_gives_a_figure("reads");
}

#[test]
fn connect() {
    every_technique_gives_a_figure("connect");
}

#[test]
fn pass_through() {
    every_technique_gives_a_figure("pass-through");
}

#[test]
fn open_loop() {
    let scenario = every_technique_gives_a_figure("open-loop");
    let due =
        |technique: usize| scenario["techniques"][technique]["cells"][0]["due_per_second"].as_u64().unwrap();
    assert_eq!(due(0), due(1), "both are to be measured at the same rate");
    assert_eq!(due(2), 1_000);
}

#[test]
fn counter() {
    let scenario = every_technique_gives_a_figure("counter");
    let through: Vec<_> =
        scenario["techniques"].as_array().unwrap().iter().map(|it| &it["through"]).collect();
    assert_eq!(through, ["direct", "direct", "hotrow", "hotrow", "application", "application"]);
}

#[test]
fn counter_open_loop() {
    let scenario = every_technique_gives_a_figure("counter-open-loop");
    let due: Vec<_> = (0..3).map(|it| &scenario["techniques"][it]["cells"][0]["due_per_second"]).collect();
    assert!(due[0].as_u64().unwrap() > 0);
    assert!(due.iter().all(|it| *it == due[0]), "all are to be measured at the same rate: {due:?}");
}

#[test]
fn counter_zipf() {
    assert_eq!(every_technique_gives_a_figure("counter-zipf")["rows"], 10_000);
}

#[test]
fn counter_restart() {
    every_technique_gives_a_figure("counter-restart");
}

#[test]
fn sale() {
    let scenario = every_technique_gives_a_figure("sale");
    for technique in scenario["techniques"].as_array().unwrap() {
        let turns_away = technique["name"] == "nowait" || technique["name"] == "try-lock";
        let turned_away = technique["cells"][0]["rounds"][0]["turned_away"].as_u64().unwrap_or(0);
        assert!(turns_away || turned_away == 0, "{technique}");
    }
}

#[test]
fn sold_out() {
    every_technique_gives_a_figure("sold-out");
}

#[test]
fn platform() {
    every_technique_gives_a_figure("platform");
}

#[test]
fn queue_take() {
    in_turn("queue-take");
}

#[test]
fn queue_lease() {
    in_turn("queue-lease");
}

#[test]
fn queue_batch() {
    in_turn("queue-batch");
}

#[test]
fn queue_enqueue() {
    in_turn("queue-enqueue");
}

#[test]
fn feed_push() {
    in_turn("feed-push");
}

#[test]
fn feed_post() {
    in_turn("feed-post");
}

#[test]
fn feed_consume() {
    in_turn("feed-consume");
}

#[test]
fn feed_busy() {
    in_turn("feed-busy");
}

#[test]
fn queue_held() {
    in_turn("queue-held");
}

#[test]
fn queue_batch_held() {
    in_turn("queue-batch-held");
}
