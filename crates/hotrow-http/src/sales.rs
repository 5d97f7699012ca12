//! `/v1/sales`: opened, read, reserved from, restocked.

use std::sync::Arc;

use axum::extract::State;
use serde::Deserialize;

use crate::answer::Answer;
use crate::api::one;
use crate::clients::{Call, Clients, Effect, Key, values};
use crate::input::{IdempotencyKey, Input, Name};
use crate::problem::{Kind, Problem};
use crate::reservations::Quantity;
use crate::seconds::Hold;
use crate::time::Time;

const CREATE: Call = Call { sql: include_str!("../sql/create_sale.sql"), effect: Effect::Writes };
const READ: Call = Call { sql: include_str!("../sql/sale.sql"), effect: Effect::Reads };
const RESERVE: Call = Call { sql: include_str!("../sql/reserve.sql"), effect: Effect::Merged };
const RESTOCK: Call = Call { sql: include_str!("../sql/restock.sql"), effect: Effect::Writes };

/// A new sale.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NewSale {
    stock: i64,
    per_buyer: Option<i64>,
    starts_at: Option<Time>,
    ends_at: Option<Time>,
    hold: Option<Hold>,
}

/// What somebody wants to buy.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reserve {
    buyer: Name,
    quantity: Option<Quantity>,
}

/// What has come in.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Restock {
    quantity: Quantity,
}

/// `PUT /v1/sales/{item}`
pub async fn create(
    State(clients): State<Arc<Clients>>,
    Name(item): Name,
    Input(new): Input<NewSale>,
) -> Result<Answer, Problem> {
    let key = Key::of(&item);
    let values = values![item, new.stock, new.per_buyer, new.starts_at, new.ends_at, new.hold];
    one(&clients, CREATE, key, values).await
}

/// `GET /v1/sales/{item}`
pub async fn read(State(clients): State<Arc<Clients>>, Name(item): Name) -> Result<Answer, Problem> {
    match clients.rows(READ, Key::of(&item), values![item]).await?.pop() {
        Some(row) => Ok(Answer(row)),
        None => {
            Err(Problem::new(Kind::NotFound, "no such item is on sale", "Open a sale with PUT on this path."))
        }
    }
}

/// `POST /v1/sales/{item}/reservations`
pub async fn reserve(
    State(clients): State<Arc<Clients>>,
    Name(item): Name,
    IdempotencyKey(key): IdempotencyKey,
    Input(reserve): Input<Reserve>,
) -> Result<Answer, Problem> {
    let quantity = reserve.quantity.unwrap_or_default();
    one(&clients, RESERVE, Key::of(&item), values![item, reserve.buyer.0, quantity.0, key]).await
}

/// `POST /v1/sales/{item}/restock`
pub async fn restock(
    State(clients): State<Arc<Clients>>,
    Name(item): Name,
    IdempotencyKey(key): IdempotencyKey,
    Input(restock): Input<Restock>,
) -> Result<Answer, Problem> {
    one(&clients, RESTOCK, Key::of(&item), values![item, restock.quantity.0, key]).await
}
