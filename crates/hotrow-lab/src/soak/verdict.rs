//! Decides whether a series of values grows. No I/O.

use hotrow_bench::statistics::Spread;

/// A series changes only by more than this share.
pub const SHARE: f64 = 0.1;
/// Fewer values have no verdict.
pub const VALUES_MIN: usize = 8;

/// The rule, for the report.
pub const RULE: &str = "A series is **growing** if the median of its last quarter is more than 10 % and more than the tolerance \
    above the median of its second quarter. A table grows only if also its bytes per statement of the round grow by more than 10 %, \
    because a round with more statements leaves larger tables. The statements per second are **falling** if their median is as much \
    below. A series with fewer than 8 values is **too short**.";

/// The direction in which a change of a series is a problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Problem {
    Growing,
    Falling,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Flat,
    Changed(Problem),
    TooShort,
}

impl Verdict {
    pub fn name(self) -> &'static str {
        match self {
            Self::Flat => "flat",
            Self::Changed(Problem::Growing) => "**growing**",
            Self::Changed(Problem::Falling) => "**falling**",
            Self::TooShort => "too short",
        }
    }
}

/// A verdict with the medians of the second and the last quarter.
#[derive(Clone, Copy, Debug)]
pub struct Judged {
    pub verdict: Verdict,
    pub medians: Option<[f64; 2]>,
}

/// The second and the last quarter of a number of values.
pub fn quarters(count: usize) -> [std::ops::Range<usize>; 2] {
    [count / 4..count / 2, count - count / 4..count]
}

/// Judges values in their order. `work` has the statements behind each value if the value depends on them.
pub fn judge(values: &[f64], work: Option<&[f64]>, problem: Problem, tolerance: f64) -> Judged {
    if values.len() < VALUES_MIN {
        return Judged { verdict: Verdict::TooShort, medians: None };
    }
    let medians = medians(values);
    let per_work = work.is_none_or(|work| {
        let each: Vec<_> = values.iter().zip(work).map(|(value, work)| value / work.max(1.0)).collect();
        changes(self::medians(&each), problem, 0.0)
    });
    let changed = changes(medians, problem, tolerance) && per_work;
    let verdict = if changed { Verdict::Changed(problem) } else { Verdict::Flat };
    Judged { verdict, medians: Some(medians) }
}

fn medians(values: &[f64]) -> [f64; 2] {
    quarters(values.len()).map(|quarter| Spread::of(&values[quarter]).map_or(0.0, |spread| spread.median))
}

fn changes([second, last]: [f64; 2], problem: Problem, tolerance: f64) -> bool {
    let change = match problem {
        Problem::Growing => last - second,
        Problem::Falling => second - last,
    };
    change > SHARE * second && change > tolerance
}

#[cfg(test)]
mod tests {
    use super::{Problem, VALUES_MIN, Verdict, judge};

    const GROWING: Verdict = Verdict::Changed(Problem::Growing);

    fn noise(level: f64, share: f64, leak: f64, seed: u64) -> Vec<f64> {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut value = |at: usize| level * (1.0 + share * (random.f64() - 0.5)) + leak * at as f64;
        (0..720).map(&mut value).collect()
    }

    #[test]
    fn a_planted_leak_is_found_and_noise_is_not() {
        for seed in 0..100 {
            let verdict = |leak| judge(&noise(40.0, 0.5, leak, seed), None, Problem::Growing, 4.0).verdict;
            assert_eq!(verdict(0.0), Verdict::Flat, "seed {seed}");
            assert_eq!(verdict(0.03), GROWING, "seed {seed}");
            assert_eq!(verdict(-0.03), Verdict::Flat, "seed {seed}");
        }
    }

    #[test]
    fn a_warm_up_and_a_peak_are_no_leak() {
        let mut values = vec![40.0; 720];
        values[..180].fill(10.0);
        values[700..].fill(400.0);
        assert_eq!(judge(&values, None, Problem::Growing, 4.0).verdict, Verdict::Flat);
        values[600..].fill(400.0);
        assert_eq!(judge(&values, None, Problem::Growing, 4.0).verdict, GROWING);
    }

    #[test]
    fn share_and_tolerance_must_both_be_exceeded() {
        let step = |first: f64, last: f64| [vec![first; 10], vec![last; 10]].concat();
        let verdict = |first, last| judge(&step(first, last), None, Problem::Growing, 4.0).verdict;
        assert_eq!(verdict(10.0, 14.0), Verdict::Flat);
        assert_eq!(verdict(10.0, 14.1), GROWING);
        assert_eq!(verdict(100.0, 109.0), Verdict::Flat);
        assert_eq!(verdict(0.0, 4.1), GROWING);
    }

    #[test]
    fn a_table_that_follows_its_statements_is_flat() {
        let values: Vec<_> = (10..30).map(f64::from).collect();
        let verdict = |work: &[f64]| judge(&values, Some(work), Problem::Growing, 1.0).verdict;
        assert_eq!(verdict(&values), Verdict::Flat);
        assert_eq!(verdict(&[5.0; 20]), GROWING);
    }

    #[test]
    fn fewer_statements_per_second_are_falling() {
        let falling: Vec<_> = (0..20).map(|at| 1_000.0 - 20.0 * f64::from(at)).collect();
        let verdict = |values: &[f64]| judge(values, None, Problem::Falling, 0.0).verdict;
        assert_eq!(verdict(&falling), Verdict::Changed(Problem::Falling));
        let rising: Vec<_> = falling.iter().rev().copied().collect();
        assert_eq!(verdict(&rising), Verdict::Flat);
        assert_eq!(verdict(&falling[..VALUES_MIN - 1]), Verdict::TooShort);
    }
}
