//! Counters: each a value between bounds, and a version that counts the accepted commands. Requests are in `world.rs`.

use std::collections::BTreeMap;

use crate::named::named;
use crate::{Answer, Status};

named! {
    /// How a counter keeps its history. Its answers do not depend on it.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum Strategy (NAMES, name) {
        /// The counter's row has the value, and the ledger has a row for each command.
        #[default]
        "ledger" Ledger,
        /// Only the commands are kept; the value is folded when it is needed.
        "log" Log,
    }
}

/// All counters, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Counters(BTreeMap<String, Counter>);

/// One counter. The default is the counter that an increment of an unknown name creates.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Counter {
    value: i64,
    version: i64,
    settings: CounterSettings,
}

/// The settings given to `create_counter`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct CounterSettings {
    /// The form of its history.
    pub strategy: Strategy,
    /// A command must not bring the value below this.
    pub min: Option<i64>,
    /// A command must not bring the value above this.
    pub max: Option<i64>,
}

impl Counters {
    pub fn create(&mut self, name: &str, settings: CounterSettings) -> Status {
        match self.0.get(name) {
            None => {
                self.0.insert(name.to_owned(), Counter { settings, ..Counter::default() });
                Status::Created
            }
            Some(counter) if counter.settings == settings => Status::Exists,
            Some(_) => Status::Differs,
        }
    }

    /// Adds. The answer has the value after the change.
    pub fn increment(&mut self, name: &str, amount: i64) -> Answer {
        self.known(name).increment(amount)
    }

    /// Sets to 0. The answer has the value before the change.
    pub fn drain(&mut self, name: &str) -> Answer {
        self.known(name).drain()
    }

    pub fn view(&self, name: &str) -> Answer {
        let counter = self.0.get(name).cloned().unwrap_or_default();
        Answer::Counter { value: counter.value, version: counter.version }
    }

    /// The first command on a counter creates it.
    fn known(&mut self, name: &str) -> &mut Counter {
        self.0.entry(name.to_owned()).or_default()
    }
}

impl Counter {
    fn increment(&mut self, amount: i64) -> Answer {
        let Some(value) = self.value.checked_add(amount) else {
            // A result outside of the type is also outside of a bound on that side. The bound is reported, because the caller
            // chose it.
            let bound = if amount > 0 { self.settings.max } else { self.settings.min };
            return self.refuse(if bound.is_some() { Status::OutOfBounds } else { Status::Overflow });
        };
        if !self.allows(value) {
            return self.refuse(Status::OutOfBounds);
        }
        self.become_value(value);
        Answer::Counted { value, version: self.version, status: Status::Ok }
    }

    fn drain(&mut self) -> Answer {
        if !self.allows(0) {
            return self.refuse(Status::OutOfBounds);
        }
        let value = self.value;
        self.become_value(0);
        Answer::Counted { value, version: self.version, status: Status::Ok }
    }

    fn allows(&self, value: i64) -> bool {
        self.settings.min.is_none_or(|min| value >= min) && self.settings.max.is_none_or(|max| value <= max)
    }

    fn become_value(&mut self, value: i64) {
        self.value = value;
        self.version += 1;
    }

    /// A refusal uses no version.
    fn refuse(&self, status: Status) -> Answer {
        Answer::Counted { value: self.value, version: self.version, status }
    }
}
