//! The model on loads that the doctor recorded in `hotrow-lab bench predictions`, with the gains that were measured, and on
//! changes of one fact at a time.

use serde::Deserialize;

use super::Prediction;
use super::model::{self, OPTIMISTIC};
use crate::diagnosis::workload::Workload;

/// Twelve workloads in two runs of the benchmark on two cores of an AMD EPYC, and the gains that were measured. Waits, rates
/// and flushes are those of the doctor's reports. `sessions`, and the shares of the hot rows of the transactions, are those
/// of the benchmark, because the doctor did not report them yet. `execution_us` is from another run, and `busy_cores` of the
/// first run is partly from the second.
///
/// Five of them in a third run, on an idle machine of another type (two cores, EPYC, probe 114 µs). The doctor of that run
/// counted commits and changes that sessions reported late; here, the rate of the hot row with 256 clients and the facts of
/// `counter-zipf` are those of the transaction IDs and of a run with the present doctor.
const RECORDED: &str = include_str!("recorded.json");

/// The widest range that still says something.
const WIDTH_MAX: f64 = 2.6;

#[derive(Deserialize)]
struct Recorded {
    run: u32,
    name: String,
    /// The measured gain.
    measured: f64,
    workload: Workload,
}

fn recorded() -> Vec<Recorded> {
    serde_json::from_str(RECORDED).unwrap()
}

fn load(name: &str) -> Workload {
    let of_name = recorded().into_iter().find(|recorded| recorded.name == name);
    of_name.unwrap().workload
}

fn middle(load: &Workload) -> f64 {
    let prediction = Prediction::of(load, None);
    (prediction.low * prediction.high).sqrt()
}

#[test]
fn counters_without_sessions_give_no_prediction() {
    let idle = Workload { sessions: 0.2, transactions: Some(0.3), ..load("hot-row, 8") };
    let Prediction { low, high, assumptions, .. } = Prediction::of(&idle, None);
    assert_eq!((low, high), (1.0, 1.0), "{assumptions:?}");
    assert_eq!(assumptions, ["fewer than one session was seen at work"]);
}

#[test]
fn measured_gains_of_recorded_loads_lie_in_their_ranges() {
    for (number, workloads, within_min) in [(1, 12, 11), (2, 12, 11), (3, 5, 5)] {
        let of_run: Vec<Recorded> =
            recorded().into_iter().filter(|recorded| recorded.run == number).collect();
        let mut within = 0;
        for Recorded { name, measured, workload, .. } in &of_run {
            let Prediction { low, high, .. } = Prediction::of(workload, None);
            let is_within = (low..=high).contains(measured);
            let miss = if is_within { "" } else { ": missed" };
            println!("run {number}, {name}: {low:.2} to {high:.2}, measured {measured:.2}{miss}");
            within += usize::from(is_within);
            assert!(high / low <= WIDTH_MAX, "{name}: {low} to {high} says nothing");
        }
        assert_eq!(of_run.len(), workloads);
        assert!(within >= within_min, "run {number}: only {within} of {workloads} gains lie in their range");
    }
}

#[test]
fn a_longer_flush_and_more_sessions_give_a_hot_row_more() {
    let slow = load("disks-hot-row, 64");
    let faster = Workload { flush_us: Some(100.0), ..slow.clone() };
    assert!(middle(&faster) > middle(&slow), "at the same rate today, a faster flush allows more");
    let fewer = Workload { sessions: 8.0, ..slow.clone() };
    assert!(middle(&fewer) < middle(&slow) / 2.0, "a batch has half of the sessions");
}

#[test]
fn a_batch_is_bounded_by_the_versions_that_fit_the_page() {
    let many = Workload { cores: None, ..load("hot-row, 256") };
    let wide = Workload { batch_max: Some(16.0), ..many.clone() };
    assert!(middle(&wide) < middle(&many) / 1.5);
    let spread = Workload { hot: vec![0.01], ..wide.clone() };
    assert!(
        middle(&spread) > middle(&wide),
        "a batch has few versions of a row with a hundredth of the writes"
    );
}

#[test]
fn cores_that_are_shared_bound_the_gain() {
    let shared = load("hot-row, 64");
    let own = Workload { cores: None, busy_cores: None, local_clients: false, ..shared.clone() };
    assert!(middle(&own) >= middle(&shared));
    let slow = Workload { probe_us: shared.probe_us.map(|probe| 3.0 * probe), ..shared.clone() };
    assert!(middle(&slow) < middle(&shared) / 1.5, "a slower core does less at the same rate of today");
}

#[test]
fn a_crowd_that_waits_for_cores_does_not_pause() {
    let reads = recorded().into_iter().find(|recorded| (recorded.run, &*recorded.name) == (3, "reads, 64"));
    let crowd = reads.unwrap().workload;
    assert!(crowd.busy_cores < Some(0.85 * 2.0), "moments without work are a part of such a load: {crowd:?}");
    let pausing = Workload { core_queue: Some(0.5), ..crowd.clone() };
    assert!(middle(&crowd) > 1.4 && middle(&pausing) < 1.1);
}

#[test]
fn a_flush_without_the_wait_for_a_core_after_it_takes_less() {
    let load = load("disks-spread, 64");
    let waits = Workload { core_wait_us: load.flush_us.map(|flush| 0.7 * flush), ..load.clone() };
    assert!(middle(&waits) > 1.2 * middle(&load));
    let only_waits = Workload { core_wait_us: load.flush_us, ..load.clone() };
    let flush = |case| model::flush_us(&only_waits, case).unwrap();
    assert!(flush(&OPTIMISTIC) >= 0.2 * load.flush_us.unwrap(), "a flush is never free");
}

#[test]
fn each_term_has_an_assumption() {
    let Prediction { assumptions, .. } = Prediction::of(&load("spread, 64"), None);
    for term in [
        "share a commit",
        "executes for",
        "WAL flush takes",
        "each batch takes",
        "gateway computes",
        "client computes",
        "packed as they are",
        "cores",
        "do not pause",
        "a tenth",
    ] {
        assert_eq!(
            assumptions.iter().filter(|line| line.contains(term)).count(),
            1,
            "{term}: {assumptions:#?}"
        );
    }
}

#[test]
fn sessions_that_pause_gain_nothing() {
    let pausing = Workload {
        sessions: 64.0,
        busy: 0.2,
        transactions: Some(640.0),
        writing: 1.0,
        changes: 1.0,
        packable: 1.0,
        pause_us: 99_700.0,
        flush_us: Some(100.0),
        ..Workload::default()
    };
    let prediction = Prediction::of(&pausing, None);
    assert!(!prediction.is_help() && prediction.low > 0.8, "{prediction:?}");
}

#[test]
fn statements_that_compute_compute_in_a_batch_too() {
    let light = load("spread, 64");
    let heavy = Workload { execution_us: Some(2_000.0), transactions: Some(1_000.0), ..light.clone() };
    assert!(middle(&heavy) < 1.2, "{}", middle(&heavy));
    assert!(middle(&light) > 1.2, "{}", middle(&light));
}

#[test]
fn transactions_that_wait_for_their_client_gain_what_a_shorter_queue_saves() {
    let load = load("round-trips, 64");
    let longer = Workload { waiting: 250.0, sessions: 256.0, ..load.clone() };
    assert!(middle(&longer) > middle(&load));
    let slow_client = Workload { transactions: Some(100.0), client_us: 9_000.0, ..load.clone() };
    assert!(!Prediction::of(&slow_client, None).is_help(), "the client holds the lock: {slow_client:?}");
}

#[test]
fn half_of_the_calls_bound_the_gain_by_two() {
    let half = Workload { packable: 0.5, ..load("hot-row, 64") };
    assert!(Prediction::of(&half, None).high <= 2.2, "{:?}", Prediction::of(&half, None));
}
