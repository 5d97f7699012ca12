//! The rows that requests name: evenly spread, or by Zipf's law.

use fastrand::Rng;

/// A distribution of requests over rows, numbered from 0.
#[derive(Debug)]
pub enum Keys {
    /// Each row is as likely as any other.
    Even(u64),
    /// The share of row n is proportional to 1 / (n + 1)^exponent. The sums of the shares, in order.
    Zipf(Vec<f64>),
}

impl Keys {
    /// This number of rows. With the exponent 0 they are evenly spread.
    pub fn new(rows: u32, exponent: f64) -> Self {
        if exponent == 0.0 || rows == 1 {
            return Self::Even(rows.into());
        }
        let mut sum = 0.0;
        let sums = (1..=rows).map(|rank| {
            sum += f64::from(rank).powf(-exponent);
            sum
        });
        Self::Zipf(sums.collect())
    }

    /// The row of the next request.
    pub fn next(&self, random: &mut Rng) -> u64 {
        match self {
            Self::Even(rows) => random.u64(0..*rows),
            Self::Zipf(sums) => {
                let point = random.f64() * sums.last().copied().unwrap_or(0.0);
                sums.partition_point(|sum| *sum < point).min(sums.len() - 1) as u64
            }
        }
    }
}

/// The node that has a row: consecutive rows are on unrelated nodes.
pub fn node_of(row: u64, nodes: usize) -> usize {
    let mixed = row.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (((mixed >> 32) * nodes as u64) >> 32) as usize
}

#[cfg(test)]
mod tests {
    use super::{Keys, node_of};
    use fastrand::Rng;

    #[test]
    fn the_first_row_of_zipf_has_its_share() {
        let (keys, mut random) = (Keys::new(1_000, 1.0), Rng::with_seed(1));
        let first = (0..100_000).filter(|_| keys.next(&mut random) == 0).count() as f64 / 100_000.0;
        let expected = 1.0 / (1..=1_000).map(|rank| 1.0 / f64::from(rank)).sum::<f64>();
        assert!((first - expected).abs() < 0.01, "{first} instead of {expected}");
    }

    #[test]
    fn every_node_has_its_part_of_the_rows() {
        let mut counts = [0; 10];
        (0..100_000).for_each(|row| counts[node_of(row, 10)] += 1);
        assert!(counts.iter().all(|count| (9_000..11_000).contains(count)), "{counts:?}");
    }
}
