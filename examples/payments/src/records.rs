//! The rows of the database as values. Never reads the database.

use jiff::Timestamp;
use jiff::civil::Date;
use serde::Serialize;
use tokio_postgres::Row;
use tokio_postgres::types::FromSql;
use uuid::Uuid;

use crate::database::Error;
use crate::machine::{self, AttemptState, Kind, Outcome, State, Sums};
use crate::routing::Mode;

/// A payment that a merchant wants.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Intent {
    /// Its ID.
    pub id: Uuid,
    /// The merchant, who gets the money.
    pub merchant: String,
    /// The customer, who pays.
    pub customer: String,
    /// The mode of payment.
    pub mode: Mode,
    /// The amount in minor units.
    pub amount: i64,
    /// The currency.
    pub currency: String,
    /// Whether to take the money with the first request.
    pub capture_at_once: bool,
    /// Its state.
    pub state: State,
    /// The number of steps it has taken.
    pub version: i64,
    /// The last attempt that began.
    pub attempt: Option<Uuid>,
    /// The attempt that holds the money.
    #[serde(skip)]
    pub authorization: Option<Uuid>,
    /// The payment gateway that holds the money.
    pub gateway: Option<String>,
    /// The amount that was taken.
    pub captured: i64,
    /// The amount that was given back.
    pub refunded: i64,
    /// The time of its creation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created_at: Option<Timestamp>,
    /// The time of its last change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub updated_at: Option<Timestamp>,
}

/// One order to one payment gateway.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Attempt {
    /// Its ID, also at the payment gateway.
    pub id: Uuid,
    /// The payment it belongs to.
    #[serde(skip)]
    pub intent: Uuid,
    /// The intent's version once it has begun.
    pub intent_version: i64,
    /// What is ordered.
    pub kind: Kind,
    /// The name of the payment gateway.
    pub gateway: String,
    /// The attempt that holds the money.
    #[serde(skip)]
    pub authorization: Uuid,
    /// The amount in minor units.
    pub amount: i64,
    /// The merchant.
    #[serde(skip)]
    pub merchant: String,
    /// The currency.
    #[serde(skip)]
    pub currency: String,
    /// The intent's sums when it began.
    #[serde(skip)]
    pub before: Sums,
    /// Its state.
    pub state: AttemptState,
    /// The number of changes of its state.
    #[serde(skip)]
    pub version: i64,
    /// The payment gateway's reason of a refusal.
    pub code: Option<String>,
    /// The day whose totals contain it.
    pub settled_on: Option<Date>,
    /// The payment gateway refuses it after this time.
    #[serde(skip)]
    pub valid_until: Timestamp,
    /// The number of times that a worker has looked at it.
    #[serde(skip)]
    pub tries: i32,
}

/// The gateway's name of an attempt that needs no payment gateway.
pub const NO_GATEWAY: &str = "none";

impl Attempt {
    /// Whether a payment gateway held money when it began.
    fn held(&self) -> bool {
        self.authorization != self.id
    }

    /// The state of the payment before it.
    pub fn state_before(&self) -> State {
        machine::state_before(self.kind, self.held())
    }

    /// The state and the sums of the payment after it.
    pub fn leads_to(&self, outcome: Outcome) -> (State, Sums) {
        machine::settle(self.kind, self.amount, outcome, self.held(), self.before)
    }

    /// The attempt and the payment gateway that hold money after it is decided.
    pub fn holds(&self, outcome: Outcome) -> (Option<Uuid>, Option<&str>) {
        let holds = self.held() || (self.kind.asks_for_money() && outcome == Outcome::Succeeded);
        if holds { (Some(self.authorization), Some(&self.gateway)) } else { (None, None) }
    }
}

impl Intent {
    /// Its sums.
    pub fn sums(&self) -> Sums {
        Sums { amount: self.amount, captured: self.captured, refunded: self.refunded }
    }
}

/// The value of a column; an error if it is invalid.
pub fn get<'a, T: FromSql<'a>>(row: &'a Row, column: &str) -> Result<T, Error> {
    row.try_get(column).map_err(|error| Error::Nonsense(format!("{column}: {error}")))
}

/// The value of a column that contains a word of an enumeration.
pub fn word<T: std::str::FromStr<Err: ToString>>(row: &Row, column: &str) -> Result<T, Error> {
    get::<&str>(row, column)?.parse().map_err(|error: T::Err| Error::Nonsense(error.to_string()))
}

impl TryFrom<&Row> for Intent {
    type Error = Error;

    fn try_from(row: &Row) -> Result<Self, Error> {
        Ok(Self {
            id: get(row, "id")?,
            merchant: get(row, "merchant")?,
            customer: get(row, "customer")?,
            mode: word(row, "mode")?,
            amount: get(row, "amount")?,
            currency: get(row, "currency")?,
            capture_at_once: get(row, "capture_at_once")?,
            state: word(row, "state")?,
            version: get(row, "version")?,
            attempt: get(row, "attempt")?,
            authorization: get(row, "authorization_id")?,
            gateway: get(row, "gateway")?,
            captured: get(row, "captured")?,
            refunded: get(row, "refunded")?,
            created_at: get(row, "created_at")?,
            updated_at: get(row, "updated_at")?,
        })
    }
}

impl TryFrom<&Row> for Attempt {
    type Error = Error;

    fn try_from(row: &Row) -> Result<Self, Error> {
        Ok(Self {
            id: get(row, "id")?,
            intent: get(row, "intent")?,
            intent_version: get(row, "intent_version")?,
            kind: word(row, "kind")?,
            gateway: get(row, "gateway")?,
            authorization: get(row, "authorization_id")?,
            amount: get(row, "amount")?,
            merchant: get(row, "merchant")?,
            currency: get(row, "currency")?,
            before: Sums {
                amount: get(row, "intent_amount")?,
                captured: get(row, "captured_before")?,
                refunded: get(row, "refunded_before")?,
            },
            state: word(row, "state")?,
            version: get(row, "version")?,
            code: get(row, "code")?,
            settled_on: get(row, "settled_on")?,
            valid_until: get(row, "valid_until")?,
            tries: get(row, "tries")?,
        })
    }
}
