//! Reconciliation: does everything possible for attempts that are due. Never asks for money.

use std::collections::BTreeSet;

use jiff::civil::Date;
use tokio::task::JoinSet;

use super::{Worker, at_once};
use crate::database::{Error, Value};
use crate::records::Attempt;

const CLAIM_ATTEMPTS: &str = include_str!("../../sql/claim_attempts.sql");

/// The number of attempts whose payment gateways are asked at the same time.
const ASKED: i64 = 100;
/// The number of decided attempts that are claimed at once. Each look recounts the days of its attempts. Attempts that are
/// settled during a recount are left for a later look, which must claim more than the service settles during a long recount.
/// Otherwise this never ends.
const DECIDED: i64 = 1000;

impl Worker {
    /// Looks once at attempts with an unknown outcome, and returns how many were due. Each waits for a payment gateway.
    pub(super) async fn undecided(&self) -> Result<usize, Error> {
        let attempts = self.claim(true, ASKED).await?;
        let found = attempts.len();
        self.bring_home(attempts).await;
        Ok(found)
    }

    /// Looks once at decided attempts whose consequences may be incomplete, and returns how many were due.
    pub(super) async fn decided(&self) -> Result<usize, Error> {
        let attempts = self.claim(false, DECIDED).await?;
        let found = attempts.len();
        let settled = self.bring_home(attempts).await;
        // Whether they were added to their days is unknown: each day is recounted once for all of them.
        let day =
            |attempt: &Attempt| (attempt.merchant.clone(), attempt.settled_on, attempt.currency.clone());
        let days: BTreeSet<(String, Option<Date>, String)> = settled.iter().map(day).collect();
        for (merchant, day, currency) in days {
            if let Some(day) = day {
                self.payments.recount(&merchant, day, &currency).await?;
            }
        }
        let mut tasks = JoinSet::new();
        for attempt in settled {
            let payments = self.payments.clone();
            tasks.spawn(async move { payments.finish(&attempt).await });
        }
        tasks.join_all().await.into_iter().collect::<Result<(), Error>>()?;
        Ok(found)
    }

    async fn claim(&self, undecided: bool, most: i64) -> Result<Vec<Attempt>, Error> {
        let values: [Value<'_>; 3] = [&self.reconcile_after, &most, &undecided];
        let rows = self.payments.database.rows(CLAIM_ATTEMPTS, &values).await?;
        rows.iter().map(Attempt::try_from).collect()
    }

    /// Does everything possible for attempts, and returns those that were decided before, which lack only their day.
    async fn bring_home(&self, attempts: Vec<Attempt>) -> Vec<Attempt> {
        let bring_home = |attempt| {
            let payments = self.payments.clone();
            async move { payments.bring_home(attempt).await }
        };
        let settled = at_once("an attempt", attempts.into_iter().map(bring_home)).await;
        settled.into_iter().flatten().collect()
    }
}
