//! Counters, sales and requests together: one command, one answer. `counter.rs` and `sale.rs` judge the commands. A repeated
//! request gets its recorded answer, also a refusal.

use std::collections::BTreeMap;

use crate::counter::Counter;
use crate::sale::Sales;
use crate::{Answer, Command, CounterSettings, Fault, Id, Status, Time};

/// The state of counters, sales and requests in the schema pack.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct World {
    counters: BTreeMap<String, Counter>,
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
        let answer = self.judge(command, at);
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

    fn judge(&mut self, command: &Command, at: Time) -> Answer {
        match command {
            Command::CreateCounter { counter, settings } => {
                Answer::Status { status: self.create_counter(counter, *settings) }
            }
            Command::Increment { counter, amount, .. } => self.counter(counter).increment(*amount),
            Command::Drain { counter, .. } => self.counter(counter).drain(),
            Command::Counter { counter } => self.counters.get(counter).unwrap_or(&Counter::default()).view(),
            Command::CreateSale { item, terms } => Answer::Status { status: self.sales.create(item, *terms) },
            Command::Reserve { item, buyer, quantity, new, .. } => {
                self.sales.reserve(item, buyer, *quantity, *new, at)
            }
            Command::ReserveAll { items, quantities, buyer, new, .. } => {
                self.reserve_all(items, quantities, buyer, new, at)
            }
            Command::Confirm { reservation } => Answer::Status { status: self.sales.confirm(*reservation) },
            Command::Cancel { reservation } => Answer::Status { status: self.sales.cancel(*reservation) },
            Command::Extend { reservation, hold } => self.sales.extend(*reservation, *hold, at),
            Command::Restock { item, quantity, .. } => self.sales.restock(item, *quantity),
            Command::Sale { item } => self.sales.view(item),
        }
    }

    /// The first command on a counter creates it.
    fn counter(&mut self, name: &str) -> &mut Counter {
        self.counters.entry(name.to_owned()).or_default()
    }

    fn create_counter(&mut self, name: &str, settings: CounterSettings) -> Status {
        match self.counters.get(name) {
            None => {
                self.counters.insert(name.to_owned(), Counter::new(settings));
                Status::Created
            }
            Some(counter) if counter.settings() == settings => Status::Exists,
            Some(_) => Status::Differs,
        }
    }

    /// Reserves all items or none. The first refusal is the status of the whole call.
    fn reserve_all(
        &mut self,
        items: &[String],
        quantities: &[i64],
        buyer: &str,
        new: &[Id],
        at: Time,
    ) -> Answer {
        let mut next = self.sales.clone();
        let mut reservations = Vec::new();
        for (index, (item, quantity)) in items.iter().zip(quantities).enumerate() {
            // A refused call has drawn no IDs. The reservations that are judged before the refusal need different ones.
            let id = new.get(index).copied().unwrap_or(Id(u128::MAX - index as u128));
            match next.reserve(item, buyer, *quantity, id, at) {
                Answer::Reserved { reservation: Some(reservation), .. } => reservations.push(reservation),
                Answer::Reserved { status, .. } => {
                    let refused_item = Some(item.clone());
                    return Answer::ReservedAll { status, reservations: None, refused_item };
                }
                other => unreachable!("a reservation is not answered with {other}"),
            }
        }
        self.sales = next;
        let (status, reservations) = (Status::Reserved, Some(reservations));
        Answer::ReservedAll { status, reservations, refused_item: None }
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
