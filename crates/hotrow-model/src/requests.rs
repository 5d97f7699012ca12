//! Idempotency: a repeated request gets its recorded answer, also a refusal. Commands are judged elsewhere.

use std::collections::BTreeMap;

use crate::{Answer, Command, Fault, Id};

/// All answers that were given under a request ID.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Requests {
    recorded: BTreeMap<Id, (Command, Answer)>,
}

impl Requests {
    /// The recorded answer of this request. Reusing an ID for another command is an error.
    pub fn look_up(&self, command: &Command) -> Result<Option<Answer>, Fault> {
        let Some((recorded, answer)) = command.request().and_then(|id| self.recorded.get(&id)) else {
            return Ok(None);
        };
        if *recorded != command.canonical() {
            return Err(Fault::RequestReused);
        }
        Ok(Some(answer.clone()))
    }

    /// Records the answer of a request that has an ID.
    pub fn record(&mut self, command: &Command, answer: &Answer) {
        if let Some(id) = command.request() {
            self.recorded.insert(id, (command.canonical(), answer.clone()));
        }
    }
}
