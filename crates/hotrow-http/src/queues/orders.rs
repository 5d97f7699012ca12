//! `/v1/queues/{queue}/orders`: enqueues orders, and shows those that are in a queue.

use std::sync::Arc;

use crate::limits;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use jiff::Timestamp;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::to_raw_value;
use tokio::sync::OwnedSemaphorePermit;
use tokio_postgres::types::Json;
use uuid::Uuid;

use crate::answer::Answered;
use crate::calls::{Call, Effect};
use crate::clients::{Clients, Key, Sessions, one, values};
use crate::document::Document;
use crate::input::{Input, Name, OrderId, Query, Text, Within};
use crate::problem::{Kind, Problem};
use crate::room;
use crate::time::Time;

/// The bytes that the messages of a call can have in addition to its orders.
const MESSAGES_BYTES: usize = 2 << 10;
/// The most orders that one call of the hotrow schema takes.
const ORDERS_MAX: usize = 1_000;
/// 1970 to 2200: the hotrow schema accepts no other time as an order's created_at.
const CREATED_AT: std::ops::RangeInclusive<i64> = 0..=7_258_118_400;

/// A new order. It is written in the form in which the hotrow schema accepts many orders.
#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Order {
    order_id: Uuid,
    payload: Option<Document>,
    group_key: Option<Name>,
    created_at: Option<CreatedAt>,
    #[serde(serialize_with = "not_before_1970")]
    not_before: Option<Time>,
    priority: Option<Within<-60, 60>>,
}

/// PostgreSQL writes the year 0 differently. An order that waits until a time before 1970 does not wait.
fn not_before_1970<S: Serializer>(time: &Option<Time>, serializer: S) -> Result<S::Ok, S::Error> {
    time.map(|Time(at)| at.max(Timestamp::UNIX_EPOCH)).serialize(serializer)
}

/// The time at which an order was created in the client's system.
#[derive(Serialize)]
struct CreatedAt(Timestamp);

impl<'de> Deserialize<'de> for CreatedAt {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let at = Timestamp::deserialize(deserializer)?;
        let fits = CREATED_AT.contains(&at.as_second());
        fits.then_some(CreatedAt(at))
            .ok_or_else(|| D::Error::custom("created_at is not between 1970 and 2200"))
    }
}

/// Many orders.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Orders {
    orders: Vec<Order>,
}

/// The page of the orders.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Page {
    state: Option<Text>,
    after: Option<i64>,
    max: Option<i32>,
}

/// The permission to send a large body.
pub struct Large(#[expect(dead_code, reason = "it counts for as long as it is held")] OwnedSemaphorePermit);

impl FromRequestParts<Arc<Clients>> for Large {
    type Rejection = Problem;

    async fn from_request_parts(_: &mut Parts, clients: &Arc<Clients>) -> Result<Self, Problem> {
        clients.batches.clone().try_acquire_owned().map(Large).map_err(|_| Problem::full())
    }
}

/// Calls that enqueue have a key of their own, because they must not wait for calls that take.
fn key(queue: &str) -> Key {
    Key::of(&("orders", queue))
}

/// The call of a function that changes nothing, although it is volatile.
fn reads(function: &str) -> Call {
    Call { effect: Effect::Reads, ..Call::of(function) }
}

/// `POST /v1/queues/{queue}/orders`
pub async fn enqueue(clients: Sessions, Name(queue): Name, Input(order): Input<Order>) -> Answered {
    let key = key(&queue);
    let values = values![
        queue,
        order.order_id,
        order.payload.map(|Document(json)| json),
        order.group_key.map(|Name(name)| name),
        order.created_at.map(|CreatedAt(at)| at),
        order.not_before,
        order.priority.map(|Within(priority)| priority)
    ];
    one(&clients, Call::of("enqueue"), key, values).await
}

/// `POST /v1/queues/{queue}/orders/batch`
pub async fn enqueue_all(
    clients: Sessions,
    Name(queue): Name,
    _large: Large,
    Input(Orders { orders }): Input<Orders>,
) -> Answered {
    if orders.is_empty() || orders.len() > ORDERS_MAX {
        let detail = format!("there are {} orders", orders.len());
        return Err(Problem::new(Kind::BadRequest, detail, "Send 1 to 1000 orders in one request."));
    }
    let bytes = orders.len() * limits::HTTP_ROW_BYTES;
    let orders = to_raw_value(&orders).map_err(|error| Problem::internal(&error))?;
    // A call that is too large for a lane must not share a session with calls that fit one.
    let is_small = orders.get().len() + MESSAGES_BYTES <= limits::PACKED_BYTES_MAX;
    let effect = if is_small { Effect::Merged } else { Effect::Writes };
    let call = Call { effect, ..Call::of("enqueue_all") };
    let (key, values) = (key(&queue), values![queue, Json(orders)]);
    clients.list("orders", call, key, values, bytes).await
}

/// `GET /v1/queues/{queue}/orders`
pub async fn list(clients: Sessions, Name(queue): Name, Query(page): Query<Page>) -> Answered {
    let state = page.state.map_or_else(|| "waiting".to_owned(), |Text(state)| state);
    let key = Key::of(queue.as_bytes());
    let max = page.max.unwrap_or(100);
    let values = values![queue, state, page.after.unwrap_or(0), max];
    clients
        .list("orders", reads("list_orders"), key, values, room::rows(max, limits::HTTP_BODY_BYTES_MAX))
        .await
}

/// `GET /v1/queues/{queue}/orders/{order_id}`
pub async fn find(clients: Sessions, OrderId { queue, order_id }: OrderId) -> Answered {
    // The payload and the result.
    let (key, bytes) = (Key::of(queue.as_bytes()), 2 * limits::HTTP_BODY_BYTES_MAX);
    let answer = clients.row(reads("find_order"), key, values![queue, order_id], bytes).await?;
    let hint = "It was never enqueued, or is older than the queue's retention.";
    answer.ok_or_else(|| Problem::new(Kind::NotFound, "no such order is in the queue", hint))
}
