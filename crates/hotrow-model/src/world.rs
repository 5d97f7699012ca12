//! Counters, sales and requests together: one command, one answer. A repeated request gets its recorded answer, also a refusal.

use std::collections::BTreeMap;

use crate::counter::Counters;
use crate::sale::Sales;
use crate::{Answer, Command, Fault, Id, Time};

/// The state of counters, sales and requests in the hotrow schema.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct World {
    counters: Counters,
    sales: Sales,
    requests: Requests,
}

impl World {
    /// Runs one call: checks its arguments, returns the recorded answer to a retry, and judges any other call.
    pub fn apply(&mut self, command: &Command, at: Time) -> Result<Answer, Fault> {
        command.check()?;
        if let Some(answer) = self.requests.look_up(command)? {
            return Ok(answer);
        }
        self.sales.expire(at);
        let answer = command.judge(&mut self.counters, &mut self.sales, at);
        self.requests.record(command, &answer);
        Ok(answer)
    }

    /// Judges the calls of one batch one after another at one moment. If one of them raises, all of them fail.
    pub fn apply_batch(&mut self, commands: &[Command], at: Time) -> Result<Vec<Answer>, Fault> {
        let mut next = self.clone();
        let answers = commands.iter().map(|command| next.apply(command, at)).collect::<Result<_, _>>()?;
        *self = next;
        Ok(answers)
    }

    /// Returns whether counters and sales are equal. The recorded requests may differ.
    pub(crate) fn differs_in_requests_only(&self, other: &Self) -> bool {
        self.counters == other.counters && self.sales == other.sales
    }

    /// The number of all reservations.
    pub(crate) fn reservations(&self) -> usize {
        self.sales.reservations()
    }
}

/// All answers that were given under a request ID.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Requests {
    recorded: BTreeMap<Id, (Command, Answer)>,
}

impl Requests {
    /// The recorded answer of this request. Reusing an ID for another command is an error.
    fn look_up(&self, command: &Command) -> Result<Option<Answer>, Fault> {
        let Some((recorded, answer)) = command.request().and_then(|id| self.recorded.get(&id)) else {
            return Ok(None);
        };
        if *recorded != command.canonical() {
            return Err(Fault::RequestReused);
        }
        Ok(Some(answer.clone()))
    }

    /// Records the answer of a request that has an ID.
    fn record(&mut self, command: &Command, answer: &Answer) {
        if let Some(id) = command.request() {
            self.recorded.insert(id, (command.canonical(), answer.clone()));
        }
    }
}
