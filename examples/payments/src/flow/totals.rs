//! A merchant's day: the row that every payment updates, and how it stays correct if a program crashes in between.

use std::time::Duration;

use jiff::civil::Date;

use super::Payments;
use crate::database::{Error, Value};
use crate::machine::{Kind, Outcome};
use crate::records::{Attempt, get};

const DAY_EPOCH: &str = include_str!("../../sql/day_epoch.sql");
const INSERT_DAY: &str = include_str!("../../sql/insert_day.sql");
const ADD_TO_DAY: &str = include_str!("../../sql/add_to_day.sql");
const RECOUNT_CLOSE: &str = include_str!("../../sql/recount_close.sql");
const RECOUNT_OPEN: &str = include_str!("../../sql/recount_open.sql");

/// A recount takes milliseconds. A task that waits longer leaves the addition to the next recount.
const LOOKS: u32 = 20;
const BETWEEN_LOOKS: Duration = Duration::from_millis(5);

/// The amounts that one attempt adds.
#[derive(Default, PartialEq, Eq, Debug)]
struct Parts {
    declined: i64,
    authorized: i64,
    captured: i64,
    refunded: i64,
}

fn parts(kind: Kind, outcome: Outcome, amount: i64) -> Parts {
    let none = Parts::default();
    match (kind, outcome) {
        (_, Outcome::Declined | Outcome::NotExecuted) => Parts { declined: 1, ..none },
        (Kind::Authorize, _) => Parts { authorized: amount, ..none },
        (Kind::Purchase, _) => Parts { authorized: amount, captured: amount, ..none },
        (Kind::Capture, _) => Parts { captured: amount, ..none },
        (Kind::Refund, _) => Parts { refunded: amount, ..none },
        (Kind::Void, _) => none,
    }
}

impl Payments {
    async fn epoch(&self, merchant: &str, day: Date, currency: &str) -> Result<i64, Error> {
        loop {
            let values: [Value<'_>; 3] = [&merchant, &day, &currency];
            if let Some(row) = self.database.row(DAY_EPOCH, &values).await? {
                return get(&row, "epoch");
            }
            self.database.execute(INSERT_DAY, &values).await?;
        }
    }

    /// The epoch of an open day; none if the day stays closed.
    pub(super) async fn open_epoch(&self, attempt: &Attempt, day: Date) -> Result<Option<i64>, Error> {
        for _ in 0..LOOKS {
            let epoch = self.epoch(&attempt.merchant, day, &attempt.currency).await?;
            if epoch % 2 == 0 {
                return Ok(Some(epoch));
            }
            tokio::time::sleep(BETWEEN_LOOKS).await;
        }
        Ok(None)
    }

    /// Adds an attempt that was just settled. False if the totals are being recounted: then the next recount adds it.
    pub(super) async fn add_to_day(
        &self,
        attempt: &Attempt,
        outcome: Outcome,
        day: Date,
        epoch: Option<i64>,
    ) -> Result<bool, Error> {
        let Some(epoch) = epoch else { return Ok(false) };
        let Parts { declined, authorized, captured, refunded } = parts(attempt.kind, outcome, attempt.amount);
        let values: [Value<'_>; 8] = [
            &attempt.merchant,
            &day,
            &attempt.currency,
            &epoch,
            &declined,
            &authorized,
            &captured,
            &refunded,
        ];
        Ok(self.database.execute(ADD_TO_DAY, &values).await? == 1)
    }

    /// Recounts a day. Attempts that were settled before are in the sums, and are not added again.
    pub async fn recount(&self, merchant: &str, day: Date, currency: &str) -> Result<(), Error> {
        let mut epoch = self.epoch(merchant, day, currency).await?;
        while epoch % 2 != 0 {
            // Another recount, whose program may have crashed. Its sums can be older.
            self.database.execute(RECOUNT_OPEN, &[&merchant, &day, &currency, &epoch]).await?;
            epoch = self.epoch(merchant, day, currency).await?;
        }
        // This changes nothing if another recount has closed the day meanwhile: its sums are then newer.
        self.database.execute(RECOUNT_CLOSE, &[&merchant, &day, &currency, &epoch]).await?;
        self.database.execute(RECOUNT_OPEN, &[&merchant, &day, &currency, &(epoch + 1)]).await.map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_purchase_counts_twice_and_a_void_not_at_all() {
        let both = Parts { authorized: 7, captured: 7, ..Parts::default() };
        assert_eq!(parts(Kind::Purchase, Outcome::Succeeded, 7), both);
        assert_eq!(parts(Kind::Void, Outcome::Succeeded, 7), Parts::default());
        assert_eq!(parts(Kind::Void, Outcome::Declined, 7).declined, 1);
    }
}
