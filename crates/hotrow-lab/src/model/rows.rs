//! The locks of rows on a node: one transaction has a row, the others wait in order.

use std::collections::{HashMap, VecDeque};

/// A transaction, by its number.
pub type Transaction = usize;

/// The rows that some transaction has.
#[derive(Debug, Default)]
pub struct Rows {
    /// For each row the transactions that want it. The first one has it.
    wanted: HashMap<u64, VecDeque<Transaction>>,
}

impl Rows {
    /// Whether the transaction has the row now. Otherwise, it waits, and must not ask again.
    pub fn lock(&mut self, row: u64, transaction: Transaction) -> bool {
        let wanted = self.wanted.entry(row).or_default();
        if wanted.front() != Some(&transaction) {
            wanted.push_back(transaction);
        }
        wanted.front() == Some(&transaction)
    }

    /// Whether the transaction has the row, or could have it at once.
    pub fn is_free(&self, row: u64, transaction: Transaction) -> bool {
        self.wanted.get(&row).and_then(VecDeque::front).is_none_or(|first| *first == transaction)
    }

    /// The transaction neither has the row nor waits for it any more. Returns the transaction that gets it now, and the
    /// number of those that still wait.
    pub fn leave(&mut self, row: u64, transaction: Transaction) -> Option<(Transaction, usize)> {
        let wanted = self.wanted.get_mut(&row)?;
        let had = wanted.front() == Some(&transaction);
        match had {
            true => _ = wanted.pop_front(),
            false => wanted.retain(|other| *other != transaction),
        }
        let next = wanted.front().copied();
        if next.is_none() {
            self.wanted.remove(&row);
            return None;
        }
        let waiting = wanted.len() - 1;
        next.filter(|_| had).map(|next| (next, waiting))
    }
}

#[cfg(test)]
mod tests {
    use super::Rows;

    #[test]
    fn a_row_goes_to_the_transaction_that_has_waited_longest() {
        let mut rows = Rows::default();
        assert!(rows.lock(7, 1) && !rows.lock(7, 2) && !rows.lock(7, 3));
        assert!(rows.lock(7, 1), "it has the row already");
        assert_eq!(rows.leave(7, 2), None, "it only waited");
        assert_eq!(rows.leave(7, 1), Some((3, 0)));
        assert_eq!(rows.leave(7, 3), None);
        assert!(rows.wanted.is_empty());
    }
}
