//! The seeds of random tests.

use std::env::var;

/// The seed of a test that runs one random choice: that in `HOTROW_SEED`, which repeats a failure, or the next one. Prints it.
#[expect(clippy::print_stdout, reason = "a failed test shows its output")]
pub fn seed() -> u64 {
    let seed = var("HOTROW_SEED").map_or_else(|_| first_seed(), |seed| seed.parse().expect("a number"));
    println!("HOTROW_SEED={seed}");
    seed
}

/// The first seed of a test that runs many. `make test` sets it, because a bug that a new seed finds would fail a change that
/// has not caused it. Without the variable, each run has a new one.
pub fn first_seed() -> u64 {
    var("HOTROW_TEST_SEED").map_or_else(|_| fastrand::u64(..1 << 32), |seed| seed.parse().expect("a number"))
}

/// The seeds of such a test: this many, or only that in `HOTROW_SEED`.
pub fn seeds(count: u64) -> std::ops::Range<u64> {
    let (first, count) = match var("HOTROW_SEED") {
        Ok(seed) => (seed.parse().expect("a number"), 1),
        Err(_) => (first_seed(), count),
    };
    first..first + count
}

/// How many of its programs a random test plays: an eighth in `make test`, where they would take a third of the time, and all in
/// `make test-all`, which sets `HOTROW_TEST_FULL`.
pub fn programs(all: u64) -> u64 {
    if var("HOTROW_TEST_FULL").is_ok() { all } else { all.div_ceil(8) }
}
