//! Detects invalid arguments: the call changes nothing, and its batch fails as a whole. Refusals that depend on the state are
//! answers, and are decided elsewhere.

use crate::Command;

/// Longer names are an error.
pub const NAME_BYTES_MAX: usize = 500;
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
    /// Checks the arguments without the state.
    pub fn check(&self) -> Result<(), Fault> {
        let fine = match self {
            Self::CreateCounter { counter, min, max, .. } => name(counter) && ordered(*min, *max),
            Self::Increment { counter, .. } | Self::Drain { counter, .. } | Self::Counter { counter } => {
                name(counter)
            }
            Self::CreateSale { item, stock, per_buyer, starts_at, ends_at, hold } => {
                let period = match (starts_at, ends_at) {
                    (Some(starts_at), Some(ends_at)) => starts_at < ends_at,
                    _ => true,
                };
                name(item)
                    && *stock >= 0
                    && per_buyer.is_none_or(|limit| limit > 0)
                    && hold.is_none_or(|hold| hold > 0)
                    && period
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
}

fn name(name: &str) -> bool {
    (1..=NAME_BYTES_MAX).contains(&name.len())
}

fn ordered(min: Option<i64>, max: Option<i64>) -> bool {
    !matches!((min, max), (Some(min), Some(max)) if min > max)
}
