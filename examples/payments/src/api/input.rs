//! The input of requests, and the checks that it is valid.

use axum::body::Bytes;
use axum::extract::rejection::BytesRejection;
use axum::http::{HeaderMap, StatusCode};
use jiff::civil::Date;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use uuid::Uuid;

use super::Problem;
use crate::money;
use crate::routing::Mode;

/// The longest name of a merchant, customer or endpoint.
const NAME_CHARACTERS_MAX: usize = 100;
const KEY_BYTES_MAX: usize = 255;

/// A new payment.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NewPayment {
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
    /// Whether to ask a gateway for the money now.
    #[serde(default)]
    pub confirm: bool,
    /// Whether to take the money with the first request.
    #[serde(default = "yes")]
    pub capture_at_once: bool,
}

/// The default of a field.
pub fn yes() -> bool {
    true
}

/// The amount to capture or refund; all that is left if it is missing.
#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
pub struct Part {
    /// In minor units.
    pub amount: Option<i64>,
}

/// A command without parameters.
#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
pub struct Nothing {}

impl NewPayment {
    /// Rejects an invalid payment.
    pub fn check(&self) -> Result<(), Problem> {
        name("merchant", &self.merchant)?;
        name("customer", &self.customer)?;
        amount(self.amount)?;
        money::currency(&self.currency).map_err(|error| Problem::invalid(format!("currency: {error}")))?;
        Ok(())
    }
}

impl Part {
    /// Rejects an invalid amount.
    pub fn check(&self) -> Result<(), Problem> {
        self.amount.map_or(Ok(()), amount)
    }
}

fn amount(amount: i64) -> Result<(), Problem> {
    if money::is_payable(amount) {
        return Ok(());
    }
    Err(Problem::invalid(format!("amount: {amount} is not from 1 to {} minor units", money::MOST)))
}

/// Rejects an invalid name.
pub fn name(what: &str, name: &str) -> Result<(), Problem> {
    let sensible = !name.trim().is_empty() && !name.chars().any(char::is_control);
    if sensible && name.chars().count() <= NAME_CHARACTERS_MAX {
        return Ok(());
    }
    let wanted = format!("1 to {NAME_CHARACTERS_MAX} characters, none of them a control character");
    Err(Problem::invalid(format!("{what}: {wanted}")))
}

/// A body of JSON; an empty one is an empty object.
pub fn json<T: DeserializeOwned>(body: &Bytes) -> Result<T, Problem> {
    let text: &[u8] = if body.is_empty() { b"{}" } else { body };
    serde_json::from_slice(text).map_err(|error| {
        let problem = Problem::invalid(format!("the body: {error}"));
        match error.classify() {
            serde_json::error::Category::Data => problem,
            _ => problem.with_status(StatusCode::BAD_REQUEST, "not-json"),
        }
    })
}

/// A body, if it came whole and is not too large.
pub type Body = Result<Bytes, BytesRejection>;

/// A body that came whole and is not too large.
pub fn whole(body: Body) -> Result<Bytes, Problem> {
    body.map_err(|rejection| Problem::invalid(rejection.body_text()).with_status(rejection.status(), "body"))
}

/// An id in a path.
pub fn id(text: &str) -> Result<Uuid, Problem> {
    Uuid::parse_str(text).map_err(|_| Problem::NOT_FOUND)
}

/// A day in a path.
pub fn day(text: &str) -> Result<Date, Problem> {
    text.parse().map_err(|_| Problem::invalid(format!("{text:?} is not a day like 2026-11-22")))
}

/// The Idempotency-Key.
pub fn key(headers: &HeaderMap) -> Result<&str, Problem> {
    let mut all = headers.get_all("idempotency-key").iter();
    let key = all.next().and_then(|value| value.to_str().ok()).ok_or(Problem::KEY_MISSING)?;
    let visible = key.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' ');
    if all.next().is_some() || key.trim().is_empty() || key.len() > KEY_BYTES_MAX || !visible {
        return Err(Problem::KEY_MISSING);
    }
    Ok(key)
}
