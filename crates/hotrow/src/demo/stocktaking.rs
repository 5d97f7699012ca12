//! The comparison of the row with the buyers' answers after a round.

use serde::Serialize;

/// The row compared with the answers after one round.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Stocktaking {
    /// The stock before the round.
    pub initial: u64,
    /// The stock after the round.
    pub stock: i64,
    /// Sales according to the row.
    pub sold: i64,
    /// Sales according to the buyers' answers.
    pub acknowledged: u64,
}

impl Stocktaking {
    /// The row after a round that began with `initial` items.
    pub fn of(initial: i32, stock: i64, sold: i64, acknowledged: u64) -> Self {
        Self { initial: u64::from(initial.unsigned_abs()), stock, sold, acknowledged }
    }

    /// Whether stock + sold is the initial stock.
    pub fn complete(&self) -> bool {
        i64::try_from(self.initial).is_ok_and(|initial| self.stock + self.sold == initial)
    }

    /// Whether the row has exactly the acknowledged sales.
    pub fn acknowledged(&self) -> bool {
        i64::try_from(self.acknowledged) == Ok(self.sold)
    }

    /// Whether more was sold than the initial stock.
    pub fn oversold(&self) -> bool {
        self.stock < 0 || i64::try_from(self.initial).is_ok_and(|initial| self.sold > initial)
    }

    /// Whether all three checks pass.
    pub fn agrees(&self) -> bool {
        self.complete() && self.acknowledged() && !self.oversold()
    }
}
