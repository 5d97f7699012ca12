//! Sends an order to a payment gateway and records its answer. The consequences of an outcome are in `settle`.

use std::time::Instant;

use super::Payments;
use crate::database::{Error, Value};
use crate::gateway::{Answer, Decision, Gateway, Order, Status};
use crate::machine::{AttemptState, Outcome};
use crate::records::{Attempt, Intent, NO_GATEWAY};
use crate::routing::{Choice, Health, Mode, choose};

const DOUBT_ATTEMPT: &str = include_str!("../../sql/doubt_attempt.sql");

impl Payments {
    /// The payment gateway for a payment of this mode, other than those that were tried.
    pub(super) fn route(&self, mode: Mode, tried: &[String]) -> Option<&Gateway> {
        let mut health = self.health.lock().expect("no thread panics while it holds the health");
        let choice = |(gateway, health): (&Gateway, &Health)| Choice {
            own: gateway.own_mode,
            health: *health,
            tried: tried.iter().any(|tried| tried == gateway.name),
        };
        let mut choices: Vec<_> = self.gateways.iter().zip(health.iter()).map(choice).collect();
        let chosen = choose(&mut choices, mode, fastrand::u32(..), Instant::now());
        for (health, choice) in health.iter_mut().zip(choices) {
            *health = choice.health;
        }
        chosen.map(|index| &self.gateways[index])
    }

    fn note_health(&self, name: &str, answered: bool) {
        let Some(index) = self.gateways.iter().position(|gateway| gateway.name == name) else { return };
        let mut health = self.health.lock().expect("no thread panics while it holds the health");
        let was_left_out = health[index].is_left_out();
        if answered {
            health[index].answered();
        } else {
            health[index].failed(Instant::now());
        }
        if was_left_out != health[index].is_left_out() {
            tracing::warn!(
                gateway = name,
                left_out = !was_left_out,
                "a payment gateway's health has changed"
            );
        }
    }

    /// Sends the attempt's order to its payment gateway. Returns the attempt as it is afterwards.
    pub(super) async fn ask(&self, intent: &Intent, attempt: Attempt) -> Result<Attempt, Error> {
        let decision = if attempt.gateway == NO_GATEWAY {
            Decision { outcome: Outcome::Succeeded, code: None } // no gateway holds anything
        } else {
            match self.order(intent, &attempt).await {
                Answer::Decided(decision) => decision,
                Answer::NotSent(error) => {
                    tracing::info!(attempt = %attempt.id, gateway = attempt.gateway, error, "not sent");
                    let code = Some("gateway_unreachable".to_owned());
                    Decision { outcome: Outcome::NotExecuted, code }
                }
                Answer::Unknown(error) => return self.doubt(attempt, error).await,
            }
        };
        self.settle(attempt, decision).await
    }

    async fn order(&self, intent: &Intent, attempt: &Attempt) -> Answer {
        let Some(gateway) = self.gateway(&attempt.gateway) else {
            return Answer::Unknown("this gateway does not exist any more".to_owned());
        };
        let order = Order {
            reference: attempt.id,
            authorization: attempt.authorization,
            kind: attempt.kind,
            amount: attempt.amount,
            currency: attempt.currency.clone(),
            mode: intent.mode,
            valid_until: attempt.valid_until,
        };
        let answer = gateway.order(&order).await;
        self.note_health(&attempt.gateway, matches!(answer, Answer::Decided(_)));
        answer
    }

    /// Records that the outcome is unknown. A worker or a webhook will resolve it.
    async fn doubt(&self, attempt: Attempt, error: String) -> Result<Attempt, Error> {
        tracing::info!(attempt = %attempt.id, gateway = attempt.gateway, error, "the outcome is not known");
        let code = Some(error);
        let values: [Value<'_>; 3] = [&attempt.id, &attempt.version, &code];
        if self.database.execute(DOUBT_ATTEMPT, &values).await? == 1 {
            let version = attempt.version + 1;
            return Ok(Attempt { state: AttemptState::Unknown, version, code, ..attempt });
        }
        // Another task already knows more, but may not have written the consequences, and this one may go on to another
        // gateway.
        let attempt = self.attempt(attempt.id).await?.unwrap_or(attempt);
        if let Some(outcome) = attempt.state.outcome() {
            self.follow(&attempt, outcome).await?;
        }
        Ok(attempt)
    }

    /// Asks for the outcome of an attempt, and settles the attempt if the outcome is known now.
    pub async fn ask_again(&self, attempt: Attempt) -> Result<Attempt, Error> {
        let decision = if attempt.gateway == NO_GATEWAY {
            Decision { outcome: Outcome::Succeeded, code: None }
        } else {
            let Some(gateway) = self.gateway(&attempt.gateway) else { return Ok(attempt) };
            match gateway.status(attempt.id, attempt.valid_until).await {
                Status::Decided(decision) => decision,
                Status::NeverWill => {
                    let code = Some("never_heard_of".to_owned());
                    Decision { outcome: Outcome::NotExecuted, code }
                }
                Status::Pending | Status::NotYet => return Ok(attempt),
                Status::Silent(error) => {
                    tracing::info!(attempt = %attempt.id, gateway = attempt.gateway, error, "no status");
                    return Ok(attempt);
                }
            }
        };
        self.settle(attempt, decision).await
    }
}
