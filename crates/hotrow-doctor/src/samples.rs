//! Samples within a bound, and the time between two of them.

use std::collections::VecDeque;
use std::time::Duration;

/// Samples that are kept. With more, every second one is dropped and the interval doubles.
pub const SAMPLES_MAX: usize = 2_000;
/// Entries of all samples that are kept, such as sessions and locks. With more, every second sample is dropped and the interval
/// doubles.
pub const ENTRIES_MAX: usize = 1_000_000;
/// The share of one core's time that sampling can take, in the server and in the doctor together: one part in this many.
const SHARE: u32 = 50;
/// Samples of which the fastest tells the work of one.
const LAST: usize = 10;
/// The longest pause as long as there are fewer of them, in intervals: the first sample fills the server's caches, and on
/// a busy server it can take so long that no second one would be taken.
const FIRST_PAUSE_MAX: u32 = 5;

/// What has a number of entries.
pub trait Entries {
    /// The number.
    fn entries(&self) -> usize;
}

/// The time of one sample with its other queries.
#[derive(Clone, Copy, Debug)]
pub struct Took {
    /// In the server, with the way there and back.
    pub server: Duration,
    /// The same with the work of the doctor.
    pub total: Duration,
}

/// The samples of a run.
#[derive(Debug)]
pub struct Samples<S> {
    /// Those that are kept.
    pub kept: Vec<S>,
    entries: usize,
    interval: Duration,
    /// The times of the last samples.
    took: VecDeque<Took>,
    /// The estimated work of all samples in the server.
    pub work: Duration,
}

impl<S: Entries> Samples<S> {
    /// Begins with this time between samples.
    pub fn new(interval: Duration) -> Self {
        Self { kept: Vec::new(), entries: 0, interval, took: VecDeque::new(), work: Duration::ZERO }
    }

    /// Adds a sample.
    pub fn add(&mut self, sample: S) {
        self.entries += sample.entries();
        self.kept.push(sample);
        while self.kept.len() > SAMPLES_MAX || (self.entries > ENTRIES_MAX && self.kept.len() > 1) {
            let mut number = 0;
            self.kept.retain(|_| {
                number += 1;
                number % 2 == 1
            });
            self.entries = self.kept.iter().map(Entries::entries).sum();
            self.interval *= 2;
        }
    }

    /// The time until the next sample, after one that took this long. On a busy server most of a sample's time is
    /// waiting for a core, so the fastest of the last samples counts as the work of each.
    pub fn pause(&mut self, took: Took) -> Duration {
        self.took.push_back(took);
        if self.took.len() > LAST {
            self.took.pop_front();
        }
        let fastest = |part: fn(&Took) -> Duration| self.took.iter().map(part).min().unwrap_or_default();
        self.work += fastest(|took| took.server);
        let work = fastest(|took| took.total);
        let slowed = match self.took.len() < LAST {
            true => (work * SHARE).min(self.interval * FIRST_PAUSE_MAX),
            false => work * SHARE,
        };
        self.interval.max(slowed).saturating_sub(took.total)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Sample;

    impl Entries for Sample {
        fn entries(&self) -> usize {
            1
        }
    }

    fn samples() -> Samples<Sample> {
        Samples::new(Duration::from_millis(50))
    }

    /// A sample that took this long in the server.
    fn took(server: Duration) -> Took {
        Took { server, total: server }
    }

    #[test]
    fn with_too_many_samples_every_second_one_is_dropped() {
        let mut samples = samples();
        for _ in 0..=SAMPLES_MAX {
            samples.add(Sample);
        }
        assert_eq!(samples.kept.len(), SAMPLES_MAX / 2 + 1);
        assert_eq!(
            samples.pause(took(Duration::ZERO)),
            Duration::from_millis(100),
            "the interval has doubled"
        );
    }

    #[test]
    fn a_sample_that_takes_long_makes_samples_rare() {
        let mut samples = samples();
        assert_eq!(samples.pause(took(Duration::from_micros(500))), Duration::from_micros(49_500));
        assert_eq!(
            samples.pause(took(Duration::from_millis(10))),
            Duration::from_millis(40),
            "it waited for a core"
        );
        for _ in 0..LAST {
            samples.pause(took(Duration::from_millis(10)));
        }
        assert_eq!(samples.pause(took(Duration::from_millis(10))), Duration::from_millis(490));
        assert_eq!(samples.work, Duration::from_micros(10 * 500) + Duration::from_millis(30));
    }

    #[test]
    fn the_work_of_the_doctor_makes_samples_rare_too() {
        let mut samples = samples();
        let one = Took { server: Duration::from_millis(1), total: Duration::from_millis(3) };
        for _ in 1..LAST {
            samples.pause(one);
        }
        assert_eq!(samples.pause(one), Duration::from_millis(147), "two parts in a hundred are 3 of 150");
        assert_eq!(samples.work, Duration::from_millis(10), "the server's part");
    }

    #[test]
    fn a_slow_first_sample_does_not_decide_the_pause() {
        let mut samples = samples();
        for _ in 1..LAST {
            assert_eq!(samples.pause(took(Duration::from_millis(60))), Duration::from_millis(190));
        }
        assert_eq!(
            samples.pause(took(Duration::from_millis(60))),
            Duration::from_millis(2_940),
            "all took long"
        );
    }
}
