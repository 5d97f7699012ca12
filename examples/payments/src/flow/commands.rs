//! The commands of merchants. Each can be repeated with the same IDs.

use uuid::Uuid;

use super::{Payments, Stop};
use crate::database::Value;
use crate::ids::attempt_after;
use crate::machine::{Command, Outcome, State, begin};
use crate::records::{Attempt, Intent};

const INSERT_INTENT: &str = include_str!("../../sql/insert_intent.sql");

/// The result of a command.
#[derive(Clone, Debug)]
pub struct Done {
    /// The payment as it is now.
    pub intent: Intent,
    /// The attempt that was made for this command, if any.
    pub attempt: Option<Attempt>,
}

impl Payments {
    /// Creates a payment, and confirms it if `confirm` is set. `again` means that this may have been tried before.
    pub async fn create(
        &self,
        intent: Intent,
        confirm: bool,
        attempt: Uuid,
        again: bool,
    ) -> Result<Done, Stop> {
        let values: [Value<'_>; 7] = [
            &intent.id,
            &intent.merchant,
            &intent.customer,
            &intent.mode.word(),
            &intent.amount,
            &intent.currency,
            &intent.capture_at_once,
        ];
        let written = self.database.execute(INSERT_INTENT, &values).await?;
        let intent = if written == 1 { intent } else { self.intent(intent.id).await? };
        if !confirm {
            return Ok(Done { intent, attempt: None });
        }
        if again {
            return self.command(intent.id, Command::Confirm, attempt, true).await;
        }
        self.carry_out(intent, Command::Confirm, attempt).await
    }

    /// Runs a command on an existing payment.
    pub async fn command(
        &self,
        id: Uuid,
        command: Command,
        mut attempt: Uuid,
        again: bool,
    ) -> Result<Done, Stop> {
        // Earlier tries made these IDs in this order. The last of them has the result.
        while again && let Some(before) = self.attempt(attempt).await? {
            if before.state.outcome() != Some(Outcome::NotExecuted) {
                let mut intent = self.intent(before.intent).await?;
                // The task that decided the attempt may not have written the payment yet.
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
                let name = self.route(intent.mode, &tried).ok_or(Stop::NoGateway)?.name;
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
    /// Changes to the state that follows from the attempt.
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
