//! A counter: a value between bounds, and a version that counts the accepted commands. Its name and history are kept
//! elsewhere.

use crate::{Answer, Status, Strategy};

/// One counter. The default is the counter that an increment of an unknown name creates.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Counter {
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

impl Counter {
    pub fn new(settings: CounterSettings) -> Self {
        Self { settings, ..Self::default() }
    }

    pub fn settings(&self) -> CounterSettings {
        self.settings
    }

    /// Adds. The answer has the value after the change.
    pub fn increment(&mut self, amount: i64) -> Answer {
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

    /// Sets to 0. The answer has the value before the change.
    pub fn drain(&mut self) -> Answer {
        if !self.allows(0) {
            return self.refuse(Status::OutOfBounds);
        }
        let value = self.value;
        self.become_value(0);
        Answer::Counted { value, version: self.version, status: Status::Ok }
    }

    pub fn view(&self) -> Answer {
        Answer::Counter { value: self.value, version: self.version }
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
