//! `/v1/sales` and `/v1/reservations`: reads a sale, and reserves several items at once.

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::answer::Answered;
use crate::calls::Call;
use crate::clients::{Key, Sessions, one, values};
use crate::input::{Keyed, Name, Quantity};
use crate::limits;
use crate::problem::{Kind, Problem};
use crate::routes::Routes;

/// The routes that need a handler.
pub fn routes(routes: Routes) -> Routes {
    routes.add("sale", read).add("reserve_all", reserve_all)
}

/// Several items for one buyer.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ReserveAll {
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

/// `GET /v1/sales/{item}`
async fn read(clients: Sessions, Name(item): Name) -> Answered {
    let key = Key::of(item.as_bytes());
    let answer = clients.row(Call::of("sale"), key, values![item], limits::HTTP_ROW_BYTES).await?;
    let hint = "Open a sale with PUT on this path.";
    answer.ok_or_else(|| Problem::new(Kind::NotFound, "no such item is on sale", hint))
}

/// `POST /v1/reservations`
async fn reserve_all(clients: Sessions, Keyed(key, all): Keyed<ReserveAll>) -> Answered {
    if all.items.is_empty() {
        return Err(Problem::new(Kind::BadRequest, "items is empty", "Name at least one item."));
    }
    let fields = all.items.into_iter().map(|Item(fields)| fields);
    let (items, quantities): (Vec<_>, Vec<_>) = fields
        .map(|fields| (fields.item.0, fields.quantity.map_or(1, |Quantity(quantity)| quantity)))
        .unzip();
    let group = Key::of(items[0].as_bytes());
    one(&clients, Call::of("reserve_all"), group, values![items, quantities, all.buyer.0, key]).await
}
