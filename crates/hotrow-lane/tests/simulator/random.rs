//! Thousands of random worlds, each from a seed that is printed on failure. `HOTROW_SEED=n` runs one of them
//! and prints its moves.

use std::time::Duration;

use fastrand::Rng;

use super::faults::Seeded;
use super::schedule::{self, Schedule};
use super::tally::Tally;
use super::workload::Random;

const SEEDS: u64 = 2_500;
/// From this one on, an error undoes its statement only.
const UNDOES_STATEMENTS: u64 = 2_000;

/// Events that the seeds must cause. Without them the tests would test less than expected.
const WANTED: [&str; 40] = [
    "held back",
    "locked ahead: ready",
    "locked ahead: failed",
    "locked ahead: asked, committed",
    "two statements: ready",
    "two statements: failed",
    "two statements: asked, committed",
    "left: ready",
    "left: failed",
    "left: asked, committed",
    "merged: ready",
    "merged: failed",
    "merged: asked, committed",
    "2 under way",
    "answered: ready",
    "answered: asked, committed",
    "again: asked, aborted",
    "again: failed",
    "again: failed and lost",
    "again: not all sent",
    "again: reads only",
    "answered alone",
    "failed alone",
    "parked behind a lock",
    "paused",
    "moved on",
    "too slow",
    "Refused(Cancelled): failed",
    "Refused(Cancelled): failed and lost",
    "Refused(Cancelled)",
    "Refused(NotSent)",
    "Refused(OutcomeUnknown): no id",
    "Refused(OutcomeUnknown): no id, crashed",
    "Refused(OutcomeUnknown): asked, crashed",
    "again: lost in a crash",
    "again: no id, none committed",
    "Refused(OutcomeUnknown): outcome not available",
    "Refused(WrittenElsewhere): changed elsewhere, ready",
    "Refused(OutcomeUnknown): changed elsewhere, lost",
    "Refused(OutcomeUnknown): hidden changes, lost",
];

/// Every fifth world has no faults and no outsiders, which allows stricter checks. Every third one has slow commits.
fn simulate(seed: u64, traced: bool, tally: &mut Tally) {
    let mut rng = Rng::with_seed(seed);
    let calm = seed.is_multiple_of(5);
    let mut workload = Random::new(rng.fork(), calm);
    if seed >= UNDOES_STATEMENTS {
        workload.undo_statements();
    }
    let mut world = workload.world(calm);
    world.trace = traced.then(Vec::new);
    world.commits_take = seed.is_multiple_of(3).then_some(Duration::from_millis(12));
    let budget = if calm { 0 } else { rng.usize(..12) };
    let mut faults =
        Seeded { rng: rng.fork(), pause: rng.usize(2..120), budget, rows: workload.rows.clone() };
    let schedule = schedule::Seeded { rng: rng.fork(), prompt: rng.bool(), sluggish: rng.bool() };
    let wrong = schedule::run_and_check(&mut world, Schedule::Seeded(schedule), &mut faults);
    for line in world.trace.iter().flatten() {
        eprintln!("{line}");
    }
    assert!(wrong.is_empty(), "HOTROW_SEED={seed}: {wrong:#?}");
    tally.add(&world.history);
}

/// Prints the seed even if the lane panics.
struct Named(u64);

impl Drop for Named {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("run it alone with HOTROW_SEED={}", self.0);
        }
    }
}

#[test]
fn random_worlds_keep_every_promise() {
    let wanted = std::env::var("HOTROW_SEED").ok().map(|seed| seed.parse().expect("HOTROW_SEED is a number"));
    let seeds = wanted.map_or(0..SEEDS, |seed: u64| seed..seed + 1);
    let mut tally = Tally::default();
    for seed in seeds {
        let _named = Named(seed);
        simulate(seed, wanted.is_some(), &mut tally);
    }
    if wanted.is_none() {
        tally.require(&WANTED);
    }
}
