//! Idempotency: a request that comes again gets the answer that it got, refusals included. Never judges a command.

use std::collections::BTreeMap;

use crate::{Answer, Command, Fault, Id};

/// All answers that were given under a request id.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Requests {
    recorded: BTreeMap<Id, (Command, Answer)>,
}

impl Requests {
    /// The answer that this request got before. The same id for something else is an error.
    pub fn look_up(&self, command: &Command) -> Result<Option<Answer>, Fault> {
        let Some((recorded, answer)) = command.request().and_then(|id| self.recorded.get(&id)) else {
            return Ok(None);
        };
        if *recorded != command.canonical() {
            return Err(Fault::RequestReused);
        }
        Ok(Some(answer.clone()))
    }

    /// Keeps the answer of a request that has an id.
    pub fn record(&mut self, command: &Command, answer: &Answer) {
        if let Some(id) = command.request() {
            self.recorded.insert(id, (command.canonical(), answer.clone()));
        }
    }
}
