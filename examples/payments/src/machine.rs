//! The life of a payment: the steps that each state allows, and the state after an attempt's outcome. Pure: no clock and no
//! database. All code that changes a payment asks here first.
//!
//! ```text
//! created ──confirm──> authorizing ──┬─> authorized ──capture──> capturing ──> authorized | captured
//!    │  ^                 │          └─> captured (a purchase)                       │
//!    │  └─ not executed ──┤                  │                              captured ──refund──> refunding
//!    └─cancel─> canceling └─> failed         └─ authorized ──cancel──> canceling         ──> captured | refunded
//!                   └─> canceled | captured (what had been captured before)
//! ```

use crate::words::worded;

worded! {
    /// The state of a payment. In a state that ends in `ing` an attempt is under way, and no other attempt can begin.
    State {
        /// No gateway has been asked for money.
        Created = "created",
        /// A gateway was asked to hold or take the money.
        Authorizing = "authorizing",
        /// A gateway holds the money. A part of it may have been captured.
        Authorized = "authorized",
        /// A gateway was asked to take a part of the held money.
        Capturing = "capturing",
        /// All of the money that will be taken was taken.
        Captured = "captured",
        /// A gateway was asked to release the held money.
        Canceling = "canceling",
        /// No money was taken.
        Canceled = "canceled",
        /// A gateway was asked to give a part of the money back.
        Refunding = "refunding",
        /// All money was given back.
        Refunded = "refunded",
        /// The gateway refused.
        Failed = "failed",
    }
}

worded! {
    /// The order of an attempt to a gateway.
    Kind {
        /// Hold the money.
        Authorize = "authorize",
        /// Hold and take the money.
        Purchase = "purchase",
        /// Take a part of the held money.
        Capture = "capture",
        /// Release the rest of the held money.
        Void = "void",
        /// Give a part of the money back.
        Refund = "refund",
    }
}

worded! {
    /// The state of an attempt.
    AttemptState {
        /// The attempt is written. The gateway may have been asked.
        Started = "started",
        /// The gateway was asked, and its answer is unknown.
        Unknown = "unknown",
        /// The gateway executed the order.
        Succeeded = "succeeded",
        /// The gateway refused.
        Declined = "declined",
        /// The gateway certainly has not executed the order and never will.
        NotExecuted = "not_executed",
    }
}

worded! {
    /// The final outcome of an attempt.
    Outcome {
        /// The gateway executed the order.
        Succeeded = "succeeded",
        /// The gateway refused.
        Declined = "declined",
        /// The gateway certainly has not executed the order and never will.
        NotExecuted = "not_executed",
    }
}

impl From<Outcome> for AttemptState {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Succeeded => Self::Succeeded,
            Outcome::Declined => Self::Declined,
            Outcome::NotExecuted => Self::NotExecuted,
        }
    }
}

impl AttemptState {
    /// The outcome, if it is known.
    pub fn outcome(self) -> Option<Outcome> {
        match self {
            Self::Started | Self::Unknown => None,
            Self::Succeeded => Some(Outcome::Succeeded),
            Self::Declined => Some(Outcome::Declined),
            Self::NotExecuted => Some(Outcome::NotExecuted),
        }
    }
}

/// A command on a payment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Command {
    /// Get the money.
    Confirm,
    /// Take this amount, or all that is left.
    Capture(Option<i64>),
    /// Release the money that is held.
    Cancel,
    /// Give this amount back, or all that is left.
    Refund(Option<i64>),
}

/// The sums of a payment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sums {
    /// The amount that the customer agreed to.
    pub amount: i64,
    /// The amount that was taken.
    pub captured: i64,
    /// The amount that was given back.
    pub refunded: i64,
}

/// The step a command leads to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Step {
    /// The order to the gateway.
    pub kind: Kind,
    /// The amount.
    pub amount: i64,
}

/// The reason why there is no step.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Refusal {
    /// Another attempt is under way.
    #[error("another step of this payment is under way")]
    UnderWay,
    /// The state does not allow the command.
    #[error("the payment's state does not allow it")]
    WrongState,
    /// The sums would not add up.
    #[error("the amount is more than what is left")]
    TooMuch,
}

impl State {
    /// Whether an attempt is under way.
    pub fn is_under_way(self) -> bool {
        matches!(self, Self::Authorizing | Self::Capturing | Self::Canceling | Self::Refunding)
    }
}

/// The step that a command leads to from a state.
pub fn begin(state: State, sums: Sums, capture_at_once: bool, command: Command) -> Result<Step, Refusal> {
    if state.is_under_way() {
        return Err(Refusal::UnderWay);
    }
    let part = |wanted: Option<i64>, left: i64| match wanted.unwrap_or(left) {
        amount if (1..=left).contains(&amount) => Ok(amount),
        _ => Err(Refusal::TooMuch),
    };
    let held = sums.amount - sums.captured;
    let (kind, amount) = match (state, command) {
        (State::Created, Command::Confirm) if capture_at_once => (Kind::Purchase, sums.amount),
        (State::Created, Command::Confirm) => (Kind::Authorize, sums.amount),
        (State::Authorized, Command::Capture(wanted)) => (Kind::Capture, part(wanted, held)?),
        (State::Created | State::Authorized, Command::Cancel) => (Kind::Void, held),
        (State::Captured, Command::Refund(wanted)) => {
            (Kind::Refund, part(wanted, sums.captured - sums.refunded)?)
        }
        _ => return Err(Refusal::WrongState),
    };
    Ok(Step { kind, amount })
}

impl Kind {
    /// The state of the payment while an attempt of this kind is under way.
    pub fn under_way(self) -> State {
        match self {
            Self::Authorize | Self::Purchase => State::Authorizing,
            Self::Capture => State::Capturing,
            Self::Void => State::Canceling,
            Self::Refund => State::Refunding,
        }
    }

    /// Whether it is the first order for the payment, which any gateway can get.
    pub fn asks_for_money(self) -> bool {
        matches!(self, Self::Authorize | Self::Purchase)
    }
}

/// The state of the payment before an attempt of this kind; `held` says whether a gateway holds money for it.
pub fn state_before(kind: Kind, held: bool) -> State {
    match kind {
        Kind::Authorize | Kind::Purchase => State::Created,
        Kind::Void if !held => State::Created,
        Kind::Capture | Kind::Void => State::Authorized,
        Kind::Refund => State::Captured,
    }
}

/// The state and the sums of the payment after an attempt with this amount is decided.
pub fn settle(kind: Kind, amount: i64, outcome: Outcome, held: bool, before: Sums) -> (State, Sums) {
    let mut sums = before;
    let state = match (kind, outcome) {
        (Kind::Authorize | Kind::Purchase, Outcome::Declined) => State::Failed,
        (_, Outcome::Declined | Outcome::NotExecuted) => state_before(kind, held),
        (Kind::Authorize, Outcome::Succeeded) => State::Authorized,
        (Kind::Purchase, Outcome::Succeeded) => {
            sums.captured = amount;
            State::Captured
        }
        (Kind::Capture, Outcome::Succeeded) => {
            sums.captured += amount;
            if sums.captured == sums.amount { State::Captured } else { State::Authorized }
        }
        (Kind::Void, Outcome::Succeeded) if sums.captured > 0 => State::Captured,
        (Kind::Void, Outcome::Succeeded) => State::Canceled,
        (Kind::Refund, Outcome::Succeeded) => {
            sums.refunded += amount;
            if sums.refunded == sums.captured { State::Refunded } else { State::Captured }
        }
    };
    (state, sums)
}

#[cfg(test)]
mod tests;
