//! What a merchant can ask of a payment, each safe to ask again with the same ids.

use uuid::Uuid;

use super::{Payments, Stop};
use crate::ids::attempt_after;
use crate::machine::{Command, Outcome, State, begin};
use crate::records::{Attempt, Intent};

const INSERT_INTENT: &str = include_str!("../../sql/insert_intent.sql");

/// What has become of it.
#[derive(Clone, Debug)]
pub struct Done {
    /// The payment as it is now.
    pub intent: Intent,
    /// The attempt that was made for this command, if there was one.
    pub attempt: Option<Attempt>,
}

impl Payments {
    /// A new payment, confirmed at once if `confirm` says so. `again` if this may have been tried before.
    pub async fn create(
        &self,
        intent: Intent,
        confirm: bool,
        attempt: Uuid,
        again: bool,
    ) -> Result<Done, Stop> {
        let written = self
            .database
            .execute(
                INSERT_INTENT,
                &[
                    &intent.id,
                    &intent.merchant,
                    &intent.customer,
                    &intent.mode.word(),
                    &intent.amount,
                    &intent.currency,
                    &intent.capture_at_once,
                ],
            )
            .await?;
        let intent = if written == 1 { intent } else { self.intent(intent.id).await? };
        if !confirm {
            return Ok(Done { intent, attempt: None });
        }
        if again {
            return self.command(intent.id, Command::Confirm, attempt, true).await;
        }
        self.carry_out(intent, Command::Confirm, attempt).await
    }

    /// A command about a payment that is there.
    pub async fn command(
        &self,
        id: Uuid,
        command: Command,
        mut attempt: Uuid,
        again: bool,
    ) -> Result<Done, Stop> {
        // Those who tried before made these ids in this order, and the last of them is what has become of it.
        while again && let Some(before) = self.attempt(attempt).await? {
            if before.state.outcome() != Some(Outcome::NotExecuted) {
                let mut intent = self.intent(before.intent).await?;
                // Whoever decided the attempt may not have come to the intent yet.
                if intent.version <= before.intent_version {
                    intent.advance(&before);
                }
                return Ok(Done { intent, attempt: Some(before) });
            }
            attempt = attempt_after(attempt);
        }
        let intent = self.intent(id).await?;
        self.carry_out(intent, command, attempt).await
    }

    async fn carry_out(&self, mut intent: Intent, command: Command, mut id: Uuid) -> Result<Done, Stop> {
        let mut tried = Vec::new();
        loop {
            let step = begin(intent.state, intent.sums(), intent.capture_at_once, command)?;
            let mut gateway = None;
            if step.kind.asks_for_money() {
                let name = self.route(intent.mode, &tried).ok_or(Stop::NoGateway)?.name();
                tried.push(name.to_owned());
                gateway = Some(name);
            }
            let attempt = self.begin(&intent, step, id, gateway).await??;
            let attempt = self.ask(&intent, attempt).await?;
            intent.advance(&attempt);
            let elsewhere =
                step.kind.asks_for_money() && attempt.state.outcome() == Some(Outcome::NotExecuted);
            if elsewhere && intent.state == State::Created {
                id = attempt_after(id);
                continue;
            }
            return Ok(Done { intent, attempt: Some(attempt) });
        }
    }
}

impl Intent {
    /// As it is once its attempt has come so far.
    fn advance(&mut self, attempt: &Attempt) {
        self.attempt = Some(attempt.id);
        self.version = attempt.intent_version;
        self.state = attempt.kind.under_way();
        if let Some(outcome) = attempt.state.outcome() {
            let (state, sums) = attempt.leads_to(outcome);
            let (authorization, gateway) = attempt.holds(outcome);
            self.version += 1;
            self.state = state;
            (self.captured, self.refunded) = (sums.captured, sums.refunded);
            (self.authorization, self.gateway) = (authorization, gateway.map(str::to_owned));
        }
    }
}
