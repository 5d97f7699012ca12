//! The kinds of arguments: how scripts write them, which are valid, and which values the SQL's parameters get. `command.rs` decides
//! which command has which.

use std::slice;

use crate::parse::Words;
use crate::{CounterSettings, Id, ParseError, SaleTerms, Strategy, Time};

/// Longer names are an error.
const NAME_BYTES_MAX: usize = 500;

/// The value of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value<'a> {
    /// The name of the counter or the item that the command is about.
    Subject(&'a str),
    /// The names of the items that the command is about.
    Subjects(&'a [String]),
    /// Another text.
    Text(&'a str),
    Number(i64),
    Numbers(&'a [i64]),
    Duration(Time),
    Reservation(Id),
    Request(Option<Id>),
    /// A number that can be missing. Scripts write it with this name, as `max=5`.
    NumberOrNone(&'static str, Option<i64>),
    /// The same for a moment.
    MomentOrNone(&'static str, Option<Time>),
    /// The same for a duration.
    DurationOrNone(&'static str, Option<Time>),
    /// The IDs of new reservations. They are no parameter.
    New(&'a [Id]),
}

/// The IDs in an argument, to be changed.
#[derive(Debug)]
pub enum Ids<'a> {
    None,
    Reservation(&'a mut Id),
    Request(&'a mut Option<Id>),
    New(&'a mut Id),
    AllNew(&'a mut Vec<Id>),
}

/// What all arguments of a kind have in common.
pub trait Kind {
    type Type;

    /// Reads an argument from the words of a script.
    fn read(words: &mut Words<'_>) -> Result<Self::Type, ParseError>;
    /// Whether the argument is valid in every state.
    fn is_valid(argument: &Self::Type) -> bool;
    /// Adds the values of the parameters.
    fn add_values<'a>(argument: &'a Self::Type, values: &mut Vec<Value<'a>>);

    fn ids(_: &mut Self::Type) -> Ids<'_> {
        Ids::None
    }
}

/// Declares kinds with one value: the type, how it is read, what makes it valid, and the value.
macro_rules! kinds {
    ($($kind:ident: $type:ty, $read:expr, $is_valid:expr, |$argument:ident| $value:expr $(, $ids:expr)?;)*) => {$(
        pub enum $kind {}

        impl Kind for $kind {
            type Type = $type;

            fn read(words: &mut Words<'_>) -> Result<$type, ParseError> {
                $read(words)
            }

            fn is_valid($argument: &$type) -> bool {
                $is_valid($argument)
            }

            fn add_values<'a>($argument: &'a $type, values: &mut Vec<Value<'a>>) {
                values.push($value);
            }

            $(fn ids(argument: &mut $type) -> Ids<'_> {
                $ids(argument)
            })?
        }
    )*};
}

kinds! {
    Counter: String, Words::text, is_name, |name| Value::Subject(name);
    Item: String, Words::text, is_name, |name| Value::Subject(name);
    Buyer: String, Words::text, is_name, |name| Value::Text(name);
    Items: Vec<String>, Words::texts, are_names, |names| Value::Subjects(names);
    Amount: i64, Words::number_or_1, any, |amount| Value::Number(*amount);
    Quantity: i64, Words::number_or_1, is_positive, |quantity| Value::Number(*quantity);
    Quantities: Vec<i64>, Words::numbers, are_positive, |quantities| Value::Numbers(quantities);
    Hold: Time, Words::number, is_positive, |hold| Value::Duration(*hold);
    Reservation: Id, Words::id, any, |id| Value::Reservation(*id), Ids::Reservation;
    Request: Option<Id>, Words::request, any, |id| Value::Request(*id), Ids::Request;
    New: Id, Words::nothing, any, |id| Value::New(slice::from_ref(id)), Ids::New;
    AllNew: Vec<Id>, Words::nothing, any, |ids| Value::New(ids), Ids::AllNew;
}

impl Kind for CounterSettings {
    type Type = Self;

    fn read(words: &mut Words<'_>) -> Result<Self, ParseError> {
        let strategy = match words.next_word() {
            None | Some("ledger") => Strategy::Ledger,
            Some("log") => Strategy::Log,
            Some(other) => return Err(ParseError::new("`ledger` or `log`", other)),
        };
        Ok(Self { strategy, min: words.option("min")?, max: words.option("max")? })
    }

    fn is_valid(Self { min, max, .. }: &Self) -> bool {
        min.zip(*max).is_none_or(|(min, max)| min <= max)
    }

    fn add_values<'a>(Self { strategy, min, max }: &'a Self, values: &mut Vec<Value<'a>>) {
        let bounds = [Value::NumberOrNone("min", *min), Value::NumberOrNone("max", *max)];
        values.push(Value::Text(strategy.name()));
        values.extend(bounds);
    }
}

impl Kind for SaleTerms {
    type Type = Self;

    fn read(words: &mut Words<'_>) -> Result<Self, ParseError> {
        Ok(Self {
            stock: words.number()?,
            per_buyer: words.option("per_buyer")?,
            starts_at: words.option("starts")?,
            ends_at: words.option("ends")?,
            hold: words.option("hold")?,
        })
    }

    fn is_valid(Self { stock, per_buyer, starts_at, ends_at, hold }: &Self) -> bool {
        *stock >= 0
            && per_buyer.is_none_or(|limit| limit > 0)
            && hold.is_none_or(|hold| hold > 0)
            && starts_at.zip(*ends_at).is_none_or(|(starts_at, ends_at)| starts_at < ends_at)
    }

    fn add_values<'a>(terms: &'a Self, values: &mut Vec<Value<'a>>) {
        values.extend([
            Value::Number(terms.stock),
            Value::NumberOrNone("per_buyer", terms.per_buyer),
            Value::MomentOrNone("starts", terms.starts_at),
            Value::MomentOrNone("ends", terms.ends_at),
            Value::DurationOrNone("hold", terms.hold),
        ]);
    }
}

fn any<T>(_: &T) -> bool {
    true
}

fn is_name(name: &str) -> bool {
    (1..=NAME_BYTES_MAX).contains(&name.len())
}

fn are_names(names: &[String]) -> bool {
    !names.is_empty() && names.iter().all(|name| is_name(name))
}

fn is_positive(number: &i64) -> bool {
    *number > 0
}

fn are_positive(numbers: &[i64]) -> bool {
    numbers.iter().all(is_positive)
}
