//! Begins an attempt: writes it, then the step of the payment. Never asks a payment gateway.

use jiff::Timestamp;
use uuid::Uuid;

use super::Payments;
use crate::database::{Error, Value};
use crate::machine::{AttemptState, Refusal, State, Step};
use crate::records::{Attempt, Intent, NO_GATEWAY};

const INSERT_ATTEMPT: &str = include_str!("../../sql/insert_attempt.sql");
const BEGIN_INTENT: &str = include_str!("../../sql/begin_intent.sql");
pub(super) const INSERT_TRANSITION: &str = include_str!("../../sql/insert_transition.sql");

impl Payments {
    /// Begins an attempt for a payment as it was read. If several tasks try this, one of them succeeds.
    pub(super) async fn begin(
        &self,
        intent: &Intent,
        step: Step,
        id: Uuid,
        gateway: Option<&str>,
    ) -> Result<Result<Attempt, Refusal>, Error> {
        let valid_for = 2 * self.gateway_limit;
        let attempt = Attempt {
            id,
            intent: intent.id,
            intent_version: intent.version + 1,
            kind: step.kind,
            gateway: gateway.or(intent.gateway.as_deref()).unwrap_or(NO_GATEWAY).to_owned(),
            authorization: intent.authorization.unwrap_or(id),
            amount: step.amount,
            merchant: intent.merchant.clone(),
            currency: intent.currency.clone(),
            before: intent.sums(),
            state: AttemptState::Started,
            version: 1,
            code: None,
            settled_on: None,
            valid_until: Timestamp::now() + valid_for,
            tries: 0,
        };
        // Workers look at different times at attempts that a payment gateway left unanswered at the same time.
        let first_look = self.first_look.as_secs_f64() * (0.9 + 0.2 * fastrand::f64());
        let values: [Value<'_>; 14] = [
            &attempt.id,
            &attempt.intent,
            &attempt.intent_version,
            &attempt.kind.word(),
            &attempt.gateway,
            &attempt.authorization,
            &attempt.amount,
            &attempt.merchant,
            &attempt.currency,
            &attempt.before.amount,
            &attempt.before.captured,
            &attempt.before.refunded,
            &attempt.valid_until,
            &first_look,
        ];
        if self.database.execute(INSERT_ATTEMPT, &values).await? == 0 {
            return Ok(Err(Refusal::UnderWay));
        }
        self.take_step(&attempt).await?;
        Ok(Ok(attempt))
    }

    /// Writes the payment's step to the state in which the attempt is under way. The attempt owns this version of the payment,
    /// so any task can write the step, and more than once.
    pub(super) async fn take_step(&self, attempt: &Attempt) -> Result<(), Error> {
        let (before, after) = (attempt.state_before(), attempt.kind.under_way());
        let version = attempt.intent_version - 1;
        let values: [Value<'_>; 5] = [&attempt.intent, &version, &before.word(), &after.word(), &attempt.id];
        self.database.execute(BEGIN_INTENT, &values).await?;
        self.log(attempt, attempt.intent_version, before, after).await
    }

    /// Writes a line of the log.
    pub(super) async fn log(
        &self,
        attempt: &Attempt,
        version: i64,
        before: State,
        after: State,
    ) -> Result<(), Error> {
        let values: [Value<'_>; 5] = [&attempt.intent, &version, &before.word(), &after.word(), &attempt.id];
        self.database.execute(INSERT_TRANSITION, &values).await.map(drop)
    }
}
