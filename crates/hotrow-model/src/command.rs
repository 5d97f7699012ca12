//! The commands: one for each function of counters and sales that has a model, with its arguments. Invalid arguments are
//! errors, and their batch fails as a whole. The answers, and refusals that depend on the state, are in `world.rs`.

use std::fmt;

use crate::named::named;
use crate::{CounterSettings, Id, SaleTerms, Time};

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

named! {
    /// A call of a function. SQL draws random IDs for reservations; here the command says which ID a new reservation gets.
    #[derive(Clone, Debug, PartialEq, Eq, Hash)]
    pub enum Command (FUNCTIONS, function) {
        "create_counter" CreateCounter { counter: String, settings: CounterSettings },
        "increment" Increment { counter: String, amount: i64, request: Option<Id> },
        "drain" Drain { counter: String, request: Option<Id> },
        "counter" Counter { counter: String },
        "create_sale" CreateSale { item: String, terms: SaleTerms },
        "reserve" Reserve { item: String, buyer: String, quantity: i64, request: Option<Id>, new: Id },
        "reserve_all" ReserveAll { items: Vec<String>, quantities: Vec<i64>, buyer: String, request: Option<Id>, new: Vec<Id> },
        "confirm" Confirm { reservation: Id },
        "cancel" Cancel { reservation: Id },
        "extend" Extend { reservation: Id, hold: Time },
        "restock" Restock { item: String, quantity: i64, request: Option<Id> },
        "sale" Sale { item: String },
    }
}

/// Longer names are an error.
const NAME_BYTES_MAX: usize = 500;

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
        match self {
            Self::Increment { request, .. }
            | Self::Drain { request, .. }
            | Self::Reserve { request, .. }
            | Self::ReserveAll { request, .. }
            | Self::Restock { request, .. } => *request,
            _ => None,
        }
    }

    /// Checks the arguments without the state.
    pub fn check(&self) -> Result<(), Fault> {
        let fine = match self {
            Self::CreateCounter { counter, settings: CounterSettings { min, max, .. } } => {
                name(counter) && min.zip(*max).is_none_or(|(min, max)| min <= max)
            }
            Self::Increment { counter, .. } | Self::Drain { counter, .. } | Self::Counter { counter } => {
                name(counter)
            }
            Self::CreateSale { item, terms } => {
                let SaleTerms { stock, per_buyer, starts_at, ends_at, hold } = terms;
                name(item)
                    && *stock >= 0
                    && per_buyer.is_none_or(|limit| limit > 0)
                    && hold.is_none_or(|hold| hold > 0)
                    && starts_at.zip(*ends_at).is_none_or(|(starts_at, ends_at)| starts_at < ends_at)
            }
            Self::Reserve { item, buyer, quantity, .. } => name(item) && name(buyer) && *quantity > 0,
            Self::ReserveAll { items, quantities, buyer, .. } => {
                name(buyer)
                    && !items.is_empty()
                    && items.len() == quantities.len()
                    && items.iter().all(|item| name(item))
                    && quantities.iter().all(|quantity| *quantity > 0)
            }
            Self::Confirm { .. } | Self::Cancel { .. } => true,
            Self::Extend { hold, .. } => *hold > 0,
            Self::Restock { item, quantity, .. } => name(item) && *quantity > 0,
            Self::Sale { item } => name(item),
        };
        fine.then_some(()).ok_or(Fault::Argument)
    }

    /// The same command without its request ID and without the IDs of new reservations. A retry must be equal to it.
    pub fn canonical(&self) -> Self {
        let mut command = self.clone();
        match &mut command {
            Self::Increment { request, .. } | Self::Drain { request, .. } | Self::Restock { request, .. } => {
                *request = None;
            }
            Self::Reserve { request, new, .. } => (*request, *new) = (None, Id::default()),
            Self::ReserveAll { request, new, .. } => (*request, *new) = (None, Vec::new()),
            _ => {}
        }
        command
    }

    /// Sets the IDs of new reservations to those that the SQL has drawn.
    pub fn give(&mut self, ids: &[Id]) {
        match self {
            Self::Reserve { new, .. } => *new = ids.first().copied().unwrap_or_default(),
            Self::ReserveAll { new, .. } => *new = ids.to_vec(),
            _ => {}
        }
    }
}

impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.function())?;
        match self {
            Self::CreateCounter { counter, settings: CounterSettings { strategy, min, max } } => {
                write!(f, " {counter} {}", strategy.name())?;
                option(f, "min", *min)?;
                option(f, "max", *max)
            }
            Self::Increment { counter, amount, .. } => write!(f, " {counter} {amount}"),
            Self::Drain { counter, .. } | Self::Counter { counter } => write!(f, " {counter}"),
            Self::CreateSale { item, terms: SaleTerms { stock, per_buyer, starts_at, ends_at, hold } } => {
                write!(f, " {item} {stock}")?;
                option(f, "per_buyer", *per_buyer)?;
                option(f, "starts", *starts_at)?;
                option(f, "ends", *ends_at)?;
                option(f, "hold", *hold)
            }
            Self::Reserve { item, buyer, quantity, .. } => write!(f, " {item} {buyer} {quantity}"),
            Self::ReserveAll { items, quantities, buyer, .. } => {
                let quantities: Vec<_> = quantities.iter().map(i64::to_string).collect();
                write!(f, " {} {} {buyer}", items.join(","), quantities.join(","))
            }
            Self::Confirm { reservation } | Self::Cancel { reservation } => write!(f, " {reservation}"),
            Self::Extend { reservation, hold } => write!(f, " {reservation} {hold}"),
            Self::Restock { item, quantity, .. } => write!(f, " {item} {quantity}"),
            Self::Sale { item } => write!(f, " {item}"),
        }?;
        self.request().map_or(Ok(()), |request| write!(f, " #{request}"))
    }
}

fn option(f: &mut fmt::Formatter<'_>, name: &str, value: Option<i64>) -> fmt::Result {
    value.map_or(Ok(()), |value| write!(f, " {name}={value}"))
}

fn name(name: &str) -> bool {
    (1..=NAME_BYTES_MAX).contains(&name.len())
}
