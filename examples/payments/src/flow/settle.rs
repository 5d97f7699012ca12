//! The outcome of an attempt: the first task writes it, once. Then any task writes its consequences.

use jiff::tz::TimeZone;
use jiff::{Timestamp, civil::Date};
use serde_json::json;

use super::Payments;
use crate::database::{Error, Value};
use crate::gateway::Decision;
use crate::ids::event_of;
use crate::machine::{AttemptState, Kind, Outcome};
use crate::records::Attempt;

const SETTLE_ATTEMPT: &str = include_str!("../../sql/settle_attempt.sql");
const SETTLE_INTENT: &str = include_str!("../../sql/settle_intent.sql");
const INSERT_EVENT: &str = include_str!("../../sql/insert_event.sql");
const FINISH_ATTEMPT: &str = include_str!("../../sql/finish_attempt.sql");

/// The type of the event of an outcome.
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
    /// Writes the outcome if there is none yet. Returns the attempt with its outcome.
    pub async fn settle(&self, mut attempt: Attempt, decision: Decision) -> Result<Attempt, Error> {
        let day = today();
        // Before the outcome is written: recount_close.sql says why.
        let epoch = self.open_epoch(&attempt, day).await?;
        loop {
            let state = AttemptState::from(decision.outcome);
            let values: [Value<'_>; 5] = [&attempt.id, &attempt.version, &state.word(), &decision.code, &day];
            if self.database.execute(SETTLE_ATTEMPT, &values).await? == 1 {
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
                return Err(Error::Nonsense(format!("attempt {} does not exist any more", attempt.id)));
            };
            attempt = now;
            if let Some(outcome) = attempt.state.outcome() {
                if outcome != decision.outcome {
                    // A gateway that reports two outcomes: a person has to look.
                    tracing::error!(attempt = %attempt.id, was = outcome.word(), now = decision.outcome.word(),
                        "a gateway reports another outcome for a settled attempt");
                }
                // The task that wrote the outcome adds it to the totals. Both may write the rest.
                self.follow(&attempt, outcome).await?;
                return Ok(attempt);
            }
        }
    }

    /// Writes all consequences of an outcome except the totals. They are the same for all tasks, and are written once.
    pub(super) async fn follow(&self, attempt: &Attempt, outcome: Outcome) -> Result<(), Error> {
        let under_way = attempt.kind.under_way();
        let (state, sums) = attempt.leads_to(outcome);
        let (authorization, gateway) = attempt.holds(outcome);
        // Before the payment's step: the next attempt begins after that step, so the events of one payment are in order even if
        // a program crashes in between. The event's ID is derived from the attempt's; a second insert waits for the first.
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
        let values: [Value<'_>; 8] = [
            &attempt.intent,
            &attempt.intent_version,
            &under_way.word(),
            &state.word(),
            &sums.captured,
            &sums.refunded,
            &authorization,
            &gateway,
        ];
        self.database.execute(SETTLE_INTENT, &values).await?;
        self.log(attempt, attempt.intent_version + 1, under_way, state).await?;
        self.notifications.write(event, kind, &payload).await
    }

    /// Records that nothing is left to do for an attempt.
    pub async fn finish(&self, attempt: &Attempt) -> Result<(), Error> {
        self.database.execute(FINISH_ATTEMPT, &[&attempt.id]).await.map(drop)
    }

    /// Does everything possible for an unfinished attempt. If it was settled before, it is returned: whether it was added to
    /// the day's totals is unknown, so the day must be recounted before the attempt is finished.
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
