//! The rows of the database as this program sees them; never where they come from.

use jiff::Timestamp;
use jiff::civil::Date;
use serde::Serialize;
use tokio_postgres::Row;
use tokio_postgres::types::FromSql;
use uuid::Uuid;

use crate::database::Error;
use crate::machine::{self, AttemptState, Kind, Outcome, State, Sums};
use crate::routing::Mode;

/// What a merchant wants.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Intent {
    /// Its name.
    pub id: Uuid,
    /// Who gets the money.
    pub merchant: String,
    /// Who pays.
    pub customer: String,
    /// How.
    pub mode: Mode,
    /// How much, in minor units.
    pub amount: i64,
    /// Of what.
    pub currency: String,
    /// Whether to take the money with the first request.
    pub capture_at_once: bool,
    /// Where it is.
    pub state: State,
    /// How many steps it has taken.
    pub version: i64,
    /// The last attempt that began.
    pub attempt: Option<Uuid>,
    /// The attempt that holds the money.
    #[serde(skip)]
    pub authorization: Option<Uuid>,
    /// Where it is held.
    pub gateway: Option<String>,
    /// What was taken.
    pub captured: i64,
    /// What was given back.
    pub refunded: i64,
    /// Since when it is there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created_at: Option<Timestamp>,
    /// When it last changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub updated_at: Option<Timestamp>,
}

/// One thing asked of one gateway.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Attempt {
    /// What the gateway knows it by.
    pub id: Uuid,
    /// Whose it is.
    #[serde(skip)]
    pub intent: Uuid,
    /// The intent's version once it has begun.
    pub intent_version: i64,
    /// What is asked.
    pub kind: Kind,
    /// Of whom.
    pub gateway: String,
    /// The attempt that holds the money.
    #[serde(skip)]
    pub authorization: Uuid,
    /// About how much.
    pub amount: i64,
    /// Who gets it.
    #[serde(skip)]
    pub merchant: String,
    /// Of what.
    #[serde(skip)]
    pub currency: String,
    /// The intent's sums when it began.
    #[serde(skip)]
    pub before: Sums,
    /// Where it is.
    pub state: AttemptState,
    /// How often that has changed.
    #[serde(skip)]
    pub version: i64,
    /// Why not, in the gateway's words.
    pub code: Option<String>,
    /// The day in whose totals it counts.
    pub settled_on: Option<Date>,
    /// Until when the gateway would do it.
    #[serde(skip)]
    pub valid_until: Timestamp,
    /// How often a worker has looked.
    #[serde(skip)]
    pub tries: i32,
}

/// A gateway's name for what none is asked for.
pub const NO_GATEWAY: &str = "none";

impl Attempt {
    /// Whether a gateway held money when it began.
    fn held(&self) -> bool {
        self.authorization != self.id
    }

    /// Where the intent was before.
    pub fn state_before(&self) -> State {
        machine::state_before(self.kind, self.held())
    }

    /// Where the intent goes from here, and its sums then.
    pub fn leads_to(&self, outcome: Outcome) -> (State, Sums) {
        machine::settle(self.kind, self.amount, outcome, self.held(), self.before)
    }

    /// The attempt and the gateway that hold money once it is decided.
    pub fn holds(&self, outcome: Outcome) -> (Option<Uuid>, Option<&str>) {
        let holds = self.held() || (self.kind.asks_for_money() && outcome == Outcome::Succeeded);
        if holds { (Some(self.authorization), Some(&self.gateway)) } else { (None, None) }
    }
}

impl Intent {
    /// How much is where.
    pub fn sums(&self) -> Sums {
        Sums { amount: self.amount, captured: self.captured, refunded: self.refunded }
    }
}

/// A column, or why its value is invalid.
pub fn get<'a, T: FromSql<'a>>(row: &'a Row, column: &str) -> Result<T, Error> {
    row.try_get(column).map_err(|error| Error::Nonsense(format!("{column}: {error}")))
}

/// A word of an enumeration.
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
