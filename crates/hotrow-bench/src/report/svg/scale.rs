//! Positions and ticks of values on a logarithmic axis. It draws nothing.

/// A logarithmic axis from one pixel position to another.
#[derive(Debug)]
pub(super) struct LogScale {
    low: f64,
    high: f64,
    from: f64,
    to: f64,
}

impl LogScale {
    /// An axis for these values, between round numbers. `None` if no value is above zero.
    pub(super) fn around(values: impl Iterator<Item = f64>, from: f64, to: f64) -> Option<Self> {
        let above_zero: Vec<f64> = values.filter(|value| *value > 0.0 && value.is_finite()).collect();
        let least = above_zero.iter().copied().reduce(f64::min)?;
        let most = above_zero.iter().copied().reduce(f64::max)?;
        let low = round_numbers(least).into_iter().rev().find(|round| *round <= least * 1.000_001)?;
        let high = round_numbers(most).into_iter().find(|round| *round > most)?;
        Some(Self { low, high, from, to })
    }

    /// The pixel position of a value.
    pub(super) fn at(&self, value: f64) -> f64 {
        let share = (value.max(self.low) / self.low).ln() / (self.high / self.low).ln();
        self.from + share * (self.to - self.from)
    }

    /// The values to label: 1, 2 and 5 times each power of ten, or only the powers if there would be too many.
    pub(super) fn ticks(&self, most: usize) -> Vec<f64> {
        let first = self.low.log10().floor() as i32;
        let last = self.high.log10().ceil() as i32;
        let inside = |tick: &f64| *tick >= self.low * 0.999_999 && *tick <= self.high * 1.000_001;
        let ticks = |leading: &'static [f64]| -> Vec<f64> {
            (first..=last)
                .flat_map(|power| leading.iter().map(move |digit| digit * 10_f64.powi(power)))
                .filter(inside)
                .collect()
        };
        let all = ticks(&[1.0, 2.0, 5.0]);
        if all.len() > most { ticks(&[1.0]) } else { all }
    }
}

/// The round numbers near a value, in order.
fn round_numbers(value: f64) -> Vec<f64> {
    let power = value.log10().floor() as i32;
    [power, power + 1]
        .into_iter()
        .flat_map(|power| [1.0, 2.0, 5.0].map(|digit| digit * 10_f64.powi(power)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::LogScale;

    #[test]
    fn the_axis_begins_and_ends_at_round_numbers() {
        let scale = LogScale::around([2_844.0, 75_335.0].into_iter(), 300.0, 0.0).unwrap();
        assert_eq!(scale.ticks(10), [2_000.0, 5_000.0, 10_000.0, 20_000.0, 50_000.0, 100_000.0]);
        assert!((scale.at(2_000.0) - 300.0).abs() < 0.01);
        assert!(scale.at(100_000.0).abs() < 0.01);
        assert!((scale.at(10_000.0) - 176.57).abs() < 0.01, "{}", scale.at(10_000.0));
    }

    #[test]
    fn a_long_axis_has_only_powers_of_ten() {
        let scale = LogScale::around([3.0, 75_335.0].into_iter(), 0.0, 100.0).unwrap();
        assert_eq!(scale.ticks(10), [10.0, 100.0, 1_000.0, 10_000.0, 100_000.0]);
    }

    #[test]
    fn there_is_no_axis_without_a_value_above_zero() {
        assert!(LogScale::around([0.0].into_iter(), 0.0, 1.0).is_none());
    }
}
