//! `/v1/reservations`: reserves several items at once; confirms, cancels and extends reservations.

use serde::de::Error;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use crate::answer::Answered;
use crate::clients::{Call, Effect, Key, Sessions, one, values};
use crate::input::{Id, Input, Keyed, Name};
use crate::problem::{Kind, Problem};
use crate::seconds::Hold;

const RESERVE_ALL: Call =
    Call { sql: include_str!("../../sql/sales/reserve_all.sql"), effect: Effect::Writes };
const CONFIRM: Call = Call { sql: include_str!("../../sql/sales/confirm.sql"), effect: Effect::Merged };
const CANCEL: Call = Call { sql: include_str!("../../sql/sales/cancel.sql"), effect: Effect::Merged };
const EXTEND: Call = Call { sql: include_str!("../../sql/sales/extend.sql"), effect: Effect::Merged };

/// A number of pieces of an item: at least 1, which is also the default.
pub struct Quantity(pub i64);

impl Default for Quantity {
    fn default() -> Self {
        Quantity(1)
    }
}

impl<'de> Deserialize<'de> for Quantity {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match i64::deserialize(deserializer)? {
            quantity @ 1.. => Ok(Quantity(quantity)),
            quantity => Err(D::Error::custom(format!("a quantity is at least 1, not {quantity}"))),
        }
    }
}

/// Several items for one buyer.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReserveAll {
    buyer: Name,
    items: Vec<Item>,
}

/// One of the items.
#[derive(Deserialize)]
#[serde(try_from = "Map<String, Value>")]
struct Item(ItemFields);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ItemFields {
    item: Name,
    quantity: Option<Quantity>,
}

/// Goes through a map, because a struct would also be read from an array.
impl TryFrom<Map<String, Value>> for Item {
    type Error = serde_json::Error;

    fn try_from(object: Map<String, Value>) -> Result<Self, serde_json::Error> {
        serde_json::from_value(Value::Object(object)).map(Item)
    }
}

/// The new length of a hold.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Extend {
    hold: Hold,
}

/// `POST /v1/reservations`
pub async fn reserve_all(clients: Sessions, Keyed(key, all): Keyed<ReserveAll>) -> Answered {
    if all.items.is_empty() {
        return Err(Problem::new(Kind::BadRequest, "items is empty", "Name at least one item."));
    }
    let fields = all.items.into_iter().map(|Item(fields)| fields);
    let (items, quantities): (Vec<_>, Vec<_>) =
        fields.map(|fields| (fields.item.0, fields.quantity.unwrap_or_default().0)).unzip();
    one(&clients, RESERVE_ALL, Key::of(&items[0]), values![items, quantities, all.buyer.0, key]).await
}

/// `POST /v1/reservations/{id}/confirm`
pub async fn confirm(clients: Sessions, Id(id): Id) -> Answered {
    one(&clients, CONFIRM, Key::of(&id), values![id]).await
}

/// `POST /v1/reservations/{id}/cancel`
pub async fn cancel(clients: Sessions, Id(id): Id) -> Answered {
    one(&clients, CANCEL, Key::of(&id), values![id]).await
}

/// `POST /v1/reservations/{id}/extend`
pub async fn extend(clients: Sessions, Id(id): Id, Input(extend): Input<Extend>) -> Answered {
    one(&clients, EXTEND, Key::of(&id), values![id, extend.hold]).await
}
