//! An attempt's outcome: written once, by whoever comes first; then all that follows from it, by whoever is there.

use jiff::tz::TimeZone;
use jiff::{Timestamp, civil::Date};
use serde_json::json;

use super::Payments;
use crate::database::Error;
use crate::gateway::Decision;
use crate::ids::event_of;
use crate::machine::{AttemptState, Kind, Outcome};
use crate::records::Attempt;

const SETTLE_ATTEMPT: &str = include_str!("../../sql/settle_attempt.sql");
const SETTLE_INTENT: &str = include_str!("../../sql/settle_intent.sql");
const INSERT_EVENT: &str = include_str!("../../sql/insert_event.sql");
const FINISH_ATTEMPT: &str = include_str!("../../sql/finish_attempt.sql");

/// What an outcome is called among events.
fn event_type(kind: Kind, outcome: Outcome) -> &'static str {
    match (kind, outcome) {
        (Kind::Authorize, Outcome::Succeeded) => "payment.authorized",
        (Kind::Authorize | Kind::Purchase, Outcome::Declined) => "payment.failed",
        (Kind::Purchase | Kind::Capture, Outcome::Succeeded) => "payment.captured",
        (Kind::Capture, Outcome::Declined) => "payment.capture_declined",
        (Kind::Void, Outcome::Succeeded) => "payment.canceled",
        (Kind::Void, Outcome::Declined) => "payment.cancel_declined",
        (Kind::Refund, Outcome::Succeeded) => "payment.refunded",
        (Kind::Refund, Outcome::Declined) => "payment.refund_declined",
        (_, Outcome::NotExecuted) => "payment.not_executed",
    }
}

fn today() -> Date {
    Timestamp::now().to_zoned(TimeZone::UTC).date()
}

impl Payments {
    /// Writes the outcome if there is none yet; the attempt with the one it has.
    pub async fn settle(&self, mut attempt: Attempt, decision: Decision) -> Result<Attempt, Error> {
        let day = today();
        // Before the outcome is written: recount_close.sql says why.
        let epoch = self.open_epoch(&attempt, day).await?;
        loop {
            let state = AttemptState::from(decision.outcome);
            let written = self
                .database
                .execute(
                    SETTLE_ATTEMPT,
                    &[&attempt.id, &attempt.version, &state.word(), &decision.code, &day],
                )
                .await?;
            if written == 1 {
                attempt.state = state;
                attempt.version += 1;
                attempt.code = decision.code;
                attempt.settled_on = Some(day);
                self.follow(&attempt, decision.outcome).await?;
                if self.add_to_day(&attempt, decision.outcome, day, epoch).await? {
                    self.finish(&attempt).await?;
                }
                return Ok(attempt);
            }
            let Some(now) = self.attempt(attempt.id).await? else {
                return Err(Error::Nonsense(format!("attempt {} is gone", attempt.id)));
            };
            attempt = now;
            if let Some(outcome) = attempt.state.outcome() {
                if outcome != decision.outcome {
                    // A gateway that changes its mind: a person has to look.
                    tracing::error!(attempt = %attempt.id, was = outcome.word(), now = decision.outcome.word(),
                        "a settled attempt is told another outcome");
                }
                // Whoever wrote it adds it to the totals; the rest may be written by both.
                self.follow(&attempt, outcome).await?;
                return Ok(attempt);
            }
        }
    }

    /// All that follows from an outcome but the totals: the same for everybody, and written once.
    pub(super) async fn follow(&self, attempt: &Attempt, outcome: Outcome) -> Result<(), Error> {
        let under_way = attempt.kind.under_way();
        let (state, sums) = attempt.leads_to(outcome);
        let (authorization, gateway) = attempt.holds(outcome);
        // Before the intent's step: the next attempt begins after it, so that events of one payment are in their order
        // whoever dies in between. The event's id follows from the attempt's; a second one waits for the first to commit.
        let event = event_of(attempt.id);
        let payload = json!({
            "payment": attempt.intent,
            "version": attempt.intent_version + 1,
            "state": state,
            "merchant": attempt.merchant,
            "currency": attempt.currency,
            "amount": sums.amount,
            "captured": sums.captured,
            "refunded": sums.refunded,
            "attempt": { "id": attempt.id, "kind": attempt.kind, "amount": attempt.amount,
                "gateway": attempt.gateway, "outcome": outcome, "code": attempt.code },
        });
        let kind = event_type(attempt.kind, outcome);
        self.database.execute(INSERT_EVENT, &[&event, &attempt.intent.to_string(), &kind, &payload]).await?;
        self.database
            .execute(
                SETTLE_INTENT,
                &[
                    &attempt.intent,
                    &attempt.intent_version,
                    &under_way.word(),
                    &state.word(),
                    &sums.captured,
                    &sums.refunded,
                    &authorization,
                    &gateway,
                ],
            )
            .await?;
        self.log(attempt, attempt.intent_version + 1, under_way, state).await?;
        self.notifications.write(&self.database, event, kind, &payload).await
    }

    /// Nothing is left to do.
    pub async fn finish(&self, attempt: &Attempt) -> Result<(), Error> {
        self.database.execute(FINISH_ATTEMPT, &[&attempt.id]).await?;
        Ok(())
    }

    /// Brings an attempt that nobody has finished as far as it can be. If it was settled before, it is given back:
    /// nobody knows whether it was added to the day's totals, so they have to be recounted before it is finished.
    pub async fn bring_home(&self, attempt: Attempt) -> Result<Option<Attempt>, Error> {
        self.take_step(&attempt).await?;
        match attempt.state.outcome() {
            None => {
                self.ask_again(attempt).await?;
                Ok(None)
            }
            Some(outcome) => {
                self.follow(&attempt, outcome).await?;
                Ok(Some(attempt))
            }
        }
    }
}
