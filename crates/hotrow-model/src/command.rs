//! The commands: one for each function of counters and sales that has a model, with its arguments and its answer. Invalid
//! arguments are errors, and their batch fails as a whole.

use std::fmt;
use std::str::FromStr;

use crate::argument::{
    AllNew, Amount, Buyer, Counter, Hold, Ids, Item, Items, Kind, New, Quantities, Quantity, Request,
    Reservation, Value,
};
use crate::counter::{CounterSettings, Counters};
use crate::named::named;
use crate::parse::Words;
use crate::sale::{SaleTerms, Sales};
use crate::{Answer, Id, ParseError, Time};

/// Declares the commands. All that depends on the function is made from this list.
macro_rules! commands {
    (
        $(#[$attribute:meta])*
        pub enum $command:ident, answered from $counters:ident, $sales:ident, $at:ident {
            $($name:literal $variant:ident { $($field:ident: $kind:ident),* } => $answer:expr,)*
        }
    ) => {
        named! {
            $(#[$attribute])*
            pub enum $command (FUNCTIONS, function) {
                $($name $variant { $($field: <$kind as Kind>::Type),* },)*
            }
        }

        impl $command {
            /// The kinds of the arguments of each function.
            pub const KINDS: &'static [(&'static str, &'static [&'static str])] =
                &[$(($name, &[$(stringify!($kind)),*])),*];

            /// The values of the SQL function's parameters, and the IDs of new reservations.
            pub fn values(&self) -> Vec<Value<'_>> {
                let mut values = Vec::new();
                match self {
                    $(Self::$variant { $($field),* } => {
                        $(<$kind as Kind>::add_values($field, &mut values);)*
                    })*
                }
                values
            }

            /// The IDs in the arguments.
            pub fn ids(&mut self) -> Vec<Ids<'_>> {
                match self {
                    $(Self::$variant { $($field),* } => vec![$(<$kind as Kind>::ids($field)),*],)*
                }
            }

            fn is_valid(&self) -> bool {
                match self {
                    $(Self::$variant { $($field),* } => true $(&& <$kind as Kind>::is_valid($field))*,)*
                }
            }

            fn read(words: &mut Words<'_>) -> Result<Self, ParseError> {
                match words.text()?.as_str() {
                    $($name => Ok(Self::$variant { $($field: <$kind as Kind>::read(words)?),* }),)*
                    other => Err(ParseError::new("a command", other)),
                }
            }

            /// The answer of a command with valid arguments.
            #[expect(unused_variables, reason = "no answer depends on the ID of a request")]
            pub(crate) fn judge(&self, $counters: &mut Counters, $sales: &mut Sales, $at: Time) -> Answer {
                match self {
                    $(Self::$variant { $($field),* } => $answer.into(),)*
                }
            }
        }
    };
}

commands! {
    /// A call of a function. SQL draws random IDs for reservations; here the command says which ID a new reservation gets.
    #[derive(Clone, Debug, PartialEq, Eq, Hash)]
    pub enum Command, answered from counters, sales, at {
        "create_counter" CreateCounter { counter: Counter, settings: CounterSettings } => counters.create(counter, *settings),
        "increment" Increment { counter: Counter, amount: Amount, request: Request } => counters.increment(counter, *amount),
        "drain" Drain { counter: Counter, request: Request } => counters.drain(counter),
        "counter" Counter { counter: Counter } => counters.view(counter),
        "create_sale" CreateSale { item: Item, terms: SaleTerms } => sales.create(item, *terms),
        "reserve" Reserve { item: Item, buyer: Buyer, quantity: Quantity, request: Request, new: New }
            => sales.reserve(item, buyer, *quantity, *new, at),
        "reserve_all" ReserveAll { items: Items, quantities: Quantities, buyer: Buyer, request: Request, new: AllNew }
            => sales.reserve_all(items, quantities, buyer, new, at),
        "confirm" Confirm { reservation: Reservation } => sales.confirm(*reservation),
        "cancel" Cancel { reservation: Reservation } => sales.cancel(*reservation),
        "extend" Extend { reservation: Reservation, hold: Hold } => sales.extend(*reservation, *hold, at),
        "restock" Restock { item: Item, quantity: Quantity, request: Request } => sales.restock(item, *quantity),
        "sale" Sale { item: Item } => sales.view(item),
    }
}

/// An error of a call. All of them are SQLSTATE 22023.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Fault {
    /// An argument that is invalid in every state.
    #[error("an argument is out of range; see the function's documentation")]
    Argument,
    /// The ID was used for another command or with other arguments.
    #[error("the request id was used for something else; make a new id for a new request")]
    RequestReused,
}

impl Command {
    /// The request ID, by which a retry is recognised.
    pub fn request(&self) -> Option<Id> {
        self.values().into_iter().find_map(|value| match value {
            Value::Request(request) => request,
            _ => None,
        })
    }

    /// Checks the arguments without the state. Arrays of a command have the same length.
    pub fn check(&self) -> Result<(), Fault> {
        let lengths = self.values().into_iter().filter_map(|value| match value {
            Value::Subjects(names) => Some(names.len()),
            Value::Numbers(numbers) => Some(numbers.len()),
            _ => None,
        });
        let lengths: Vec<_> = lengths.collect();
        let fine = self.is_valid() && lengths.iter().all(|length| *length == lengths[0]);
        fine.then_some(()).ok_or(Fault::Argument)
    }

    /// The same command without its request ID and without the IDs of new reservations. A retry must be equal to it.
    pub fn canonical(&self) -> Self {
        let mut command = self.clone();
        command.give(&[]);
        for ids in command.ids() {
            if let Ids::Request(request) = ids {
                *request = None;
            }
        }
        command
    }

    /// Sets the IDs of new reservations to those that the SQL has drawn.
    pub fn give(&mut self, drawn: &[Id]) {
        for ids in self.ids() {
            match ids {
                Ids::New(new) => *new = drawn.first().copied().unwrap_or_default(),
                Ids::AllNew(new) => *new = drawn.to_vec(),
                _ => {}
            }
        }
    }

    /// The IDs of new reservations, as far as they are known.
    pub fn new_reservations(&self) -> Vec<Id> {
        let new = self.values().into_iter().filter_map(|value| match value {
            Value::New(ids) => Some(ids),
            _ => None,
        });
        new.flatten().copied().filter(|id| id.0 > 0).collect()
    }
}

impl FromStr for Command {
    type Err = ParseError;

    fn from_str(line: &str) -> Result<Self, ParseError> {
        let words = &mut Words::of(line)?;
        let command = Self::read(words)?;
        match words.next_word() {
            None => Ok(command),
            Some(more) => Err(ParseError::new("the end of the command", more)),
        }
    }
}

impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.function())?;
        self.values().into_iter().try_for_each(|value| match value {
            Value::Subject(text) | Value::Text(text) => write!(f, " {text}"),
            Value::Subjects(names) => write!(f, " {}", names.join(",")),
            Value::Number(number) | Value::Duration(number) => write!(f, " {number}"),
            Value::Numbers(numbers) => {
                let numbers: Vec<_> = numbers.iter().map(i64::to_string).collect();
                write!(f, " {}", numbers.join(","))
            }
            Value::Reservation(id) => write!(f, " {id}"),
            Value::Request(Some(id)) => write!(f, " #{id}"),
            Value::NumberOrNone(name, Some(number))
            | Value::MomentOrNone(name, Some(number))
            | Value::DurationOrNone(name, Some(number)) => write!(f, " {name}={number}"),
            _ => Ok(()),
        })
    }
}
