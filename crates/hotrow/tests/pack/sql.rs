//! Commands as SQL, and returned rows in the model's format. Never sends anything.

use std::time::{SystemTime, UNIX_EPOCH};

use hotrow_model::{Command, Id, Time, Value};
use hotrow_sql::functions;

/// The model's time on the server. A step is an hour. Hours pass by moving stored times into the past, so holds expire
/// without waiting.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    /// In seconds since 1970, some seconds before the current time.
    base: i64,
    pub at: Time,
}

impl Clock {
    pub fn start() -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("the clock is later than 1970");
        Self { base: since.as_secs().cast_signed(), at: 0 }
    }

    pub fn timestamp(self, time: Time) -> String {
        let seconds = self.base + (time - self.at) * 3600;
        let (day, second) = (seconds.div_euclid(86_400) + 2_440_588, seconds.rem_euclid(86_400));
        format!("J{day} {:02}:{:02}:{:02}+00", second / 3600, second / 60 % 60, second % 60)
    }

    /// A column of times as the model's times.
    fn steps(self, column: &str) -> String {
        format!("round((extract(epoch from {column}) - {}) / 3600)::bigint + {}", self.base, self.at)
    }
}

/// A function, its arguments in order as text, and the selected columns.
pub struct Call {
    function: String,
    values: Vec<Option<String>>,
    columns: String,
}

impl Call {
    pub fn of(command: &Command, clock: Clock) -> Self {
        let hours = |value: i64| format!("{value} hours");
        let value = |value: Value<'_>| match value {
            Value::Subject(text) | Value::Text(text) => Some(Some(text.to_owned())),
            Value::Subjects(names) => Some(Some(array(names.iter().map(|name| Some(name.as_str()))))),
            Value::Number(number) => Some(Some(number.to_string())),
            Value::Numbers(numbers) => {
                let numbers: Vec<_> = numbers.iter().map(i64::to_string).collect();
                Some(Some(array(numbers.iter().map(|number| Some(number.as_str())))))
            }
            Value::Duration(duration) => Some(Some(hours(duration))),
            Value::Reservation(id) => Some(Some(id.uuid())),
            Value::Request(id) => Some(id.map(Id::uuid)),
            Value::NumberOrNone(_, number) => Some(number.map(|number| number.to_string())),
            Value::MomentOrNone(_, moment) => Some(moment.map(|moment| clock.timestamp(moment))),
            Value::DurationOrNone(_, duration) => Some(duration.map(hours)),
            Value::New(_) => None,
        };
        let columns = match command.function() {
            "extend" => format!("status, {}", clock.steps("expires_at")),
            "sale" => format!(
                "item, remaining, held, sold, per_buyer, {}, {}, (extract(epoch from hold) / 3600)::bigint",
                clock.steps("starts_at"),
                clock.steps("ends_at")
            ),
            _ => "*".to_owned(),
        };
        let values = command.values().into_iter().filter_map(value).collect();
        Self { function: command.function().to_owned(), values, columns }
    }

    /// All commands, which call one function, as one call of its batch function.
    pub fn batch(commands: &[Command], clock: Clock) -> Self {
        let calls: Vec<Self> = commands.iter().map(|command| Self::of(command, clock)).collect();
        let values = (0..calls[0].values.len())
            .map(|argument| Some(array(calls.iter().map(|call| call.values[argument].as_deref()))))
            .collect();
        let function = format!("{}_batch", calls[0].function);
        assert!(calls.iter().all(|call| format!("{}_batch", call.function) == function), "one function");
        Self { function, values, columns: calls[0].columns.clone() }
    }

    /// A reservation that is rejected instead of waiting.
    pub fn nowait(mut self) -> Self {
        assert_eq!(self.function, "reserve");
        self.values.push(Some("true".to_owned()));
        self
    }

    /// The call with its values in the text.
    pub fn text(&self) -> String {
        let literals: Vec<_> = self.values.iter().map(|value| literal(value.as_deref())).collect();
        format!("select {} from hotrow.{}({})", self.columns, self.function, literals.join(", "))
    }

    /// The call with parameters, and their values.
    pub fn with_parameters(&self) -> (String, &[Option<String>]) {
        let places: Vec<_> = (1..=self.values.len()).map(|place| format!("${place}")).collect();
        let sql = format!("select {} from hotrow.{}({})", self.columns, self.function, places.join(", "));
        (sql, &self.values)
    }
}

/// Whether a function has a batch function.
pub fn has_batch_function(name: &str) -> bool {
    functions().iter().any(|function| function.name == name && function.merge.is_some())
}

/// A row in the model's format.
pub fn answer(row: &[Option<String>]) -> String {
    let columns: Vec<_> = row.iter().map(|value| value.as_deref().unwrap_or("-")).collect();
    columns.join(" ")
}

/// The IDs in a row's second column, which has those of new reservations.
pub fn new_reservations(row: &[Option<String>]) -> Vec<Id> {
    let ids = row.get(1).and_then(Option::as_deref).unwrap_or_default().trim_matches(['{', '}']);
    ids.split(',').filter_map(|id| id.parse().ok()).collect()
}

pub fn literal(value: Option<&str>) -> String {
    value.map_or_else(|| "null".to_owned(), |text| format!("'{}'", text.replace('\'', "''")))
}

fn array<'a>(values: impl Iterator<Item = Option<&'a str>>) -> String {
    let quoted = |text: &str| format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""));
    let values: Vec<_> = values.map(|value| value.map_or_else(|| "null".to_owned(), quoted)).collect();
    format!("{{{}}}", values.join(","))
}
