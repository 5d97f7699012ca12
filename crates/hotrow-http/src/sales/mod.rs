//! `/v1/sales` and `/v1/reservations`: opens, reads and restocks sales, and reserves from one. `reservations` reserves several
//! items and handles existing reservations.

mod reservations;

use crate::limits;
use axum::http::Method;
use serde::Deserialize;

use crate::answer::Answered;
use crate::clients::{Call, Effect, Key, Sessions, one, values};
use crate::input::{Input, Keyed, Name, Page, Query};
use crate::problem::{Kind, Problem};
use crate::room;
use crate::routes::Routes;
use crate::sales::reservations::Quantity;
use crate::seconds::Hold;
use crate::time::Time;

const CREATE: Call = Call { sql: include_str!("../../sql/sales/create_sale.sql"), effect: Effect::Writes };
const READ: Call = Call { sql: include_str!("../../sql/sales/sale.sql"), effect: Effect::Reads };
const LIST: Call = Call { sql: include_str!("../../sql/sales/list_sales.sql"), effect: Effect::Reads };
const RESERVE: Call = Call { sql: include_str!("../../sql/sales/reserve.sql"), effect: Effect::Merged };
const RESTOCK: Call = Call { sql: include_str!("../../sql/sales/restock.sql"), effect: Effect::Writes };

/// The routes of sales.
pub fn routes(routes: Routes) -> Routes {
    routes
        .with_key(Method::POST, "/v1/sales/{item}/reservations", reserve)
        .with_key(Method::POST, "/v1/sales/{item}/restock", restock)
        .with_key(Method::POST, "/v1/reservations", reservations::reserve_all)
        .without_key(Method::GET, "/v1/sales", list)
        .without_key(Method::PUT, "/v1/sales/{item}", create)
        .without_key(Method::GET, "/v1/sales/{item}", read)
        .without_key(Method::POST, "/v1/reservations/{id}/confirm", reservations::confirm)
        .without_key(Method::POST, "/v1/reservations/{id}/cancel", reservations::cancel)
        .without_key(Method::POST, "/v1/reservations/{id}/extend", reservations::extend)
}

/// The settings of a new sale.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NewSale {
    stock: i64,
    per_buyer: Option<i64>,
    starts_at: Option<Time>,
    ends_at: Option<Time>,
    hold: Option<Hold>,
}

/// A reservation of one item.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reserve {
    buyer: Name,
    quantity: Option<Quantity>,
}

/// The quantity to add to the stock.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Restock {
    quantity: Quantity,
}

/// `PUT /v1/sales/{item}`
pub async fn create(clients: Sessions, Name(item): Name, Input(new): Input<NewSale>) -> Answered {
    let key = Key::of(&item);
    let values = values![item, new.stock, new.per_buyer, new.starts_at, new.ends_at, new.hold];
    one(&clients, CREATE, key, values).await
}

/// `GET /v1/sales/{item}`
pub async fn read(clients: Sessions, Name(item): Name) -> Answered {
    let answer = clients.row(READ, Key::of(&item), values![item], limits::HTTP_ROW_BYTES).await?;
    let hint = "Open a sale with PUT on this path.";
    answer.ok_or_else(|| Problem::new(Kind::NotFound, "no such item is on sale", hint))
}

/// `POST /v1/sales/{item}/reservations`
pub async fn reserve(clients: Sessions, Name(item): Name, Keyed(key, reserve): Keyed<Reserve>) -> Answered {
    let quantity = reserve.quantity.unwrap_or_default();
    one(&clients, RESERVE, Key::of(&item), values![item, reserve.buyer.0, quantity.0, key]).await
}

/// `POST /v1/sales/{item}/restock`
pub async fn restock(clients: Sessions, Name(item): Name, Keyed(key, restock): Keyed<Restock>) -> Answered {
    one(&clients, RESTOCK, Key::of(&item), values![item, restock.quantity.0, key]).await
}

/// `GET /v1/sales`
pub async fn list(clients: Sessions, Query(page): Query<Page>) -> Answered {
    let bytes = room::rows(page.max(), limits::HTTP_ROW_BYTES);
    clients.list("sales", LIST, Key::of("sales"), page.values(), bytes).await
}
