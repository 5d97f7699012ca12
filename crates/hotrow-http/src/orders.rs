//! `/v1/queues/{queue}/orders`: how orders get into a queue, and looks at those that are in one.

use std::sync::Arc;

use axum::extract::{FromRequestParts, State};
use axum::http::request::Parts;
use jiff::Timestamp;
use serde::de::Error;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use tokio::sync::OwnedSemaphorePermit;
use tokio_postgres::types::Json;
use uuid::Uuid;

use crate::answer::{Answer, Answers};
use crate::api::one;
use crate::clients::{Call, Clients, Effect, Key, values};
use crate::document::Document;
use crate::input::{Input, Name, OrderId, Query, Text, Within};
use crate::problem::{Kind, Problem};

const ENQUEUE: Call = Call { sql: include_str!("../sql/enqueue.sql"), effect: Effect::Merged };
const ENQUEUE_ALL: Call = Call { sql: include_str!("../sql/enqueue_all.sql"), effect: Effect::Writes };
const LIST: Call = Call { sql: include_str!("../sql/list_orders.sql"), effect: Effect::Reads };
const FIND: Call = Call { sql: include_str!("../sql/find_order.sql"), effect: Effect::Reads };

/// The most orders that one call of the pack takes.
const ORDERS_MAX: usize = 1_000;
/// 1970 and 2200: between them is what the pack takes for the time of an order.
const CREATED_AT: std::ops::RangeInclusive<i64> = 0..=7_258_118_400;

/// A new order.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Order {
    order_id: Uuid,
    payload: Option<Document>,
    group_key: Option<Name>,
    created_at: Option<CreatedAt>,
    not_before: Option<Timestamp>,
    priority: Option<Within<-60, 60>>,
}

/// When an order was made, elsewhere.
struct CreatedAt(Timestamp);

impl<'de> Deserialize<'de> for CreatedAt {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let at = Timestamp::deserialize(deserializer)?;
        let fits = CREATED_AT.contains(&at.as_second());
        fits.then_some(CreatedAt(at))
            .ok_or_else(|| D::Error::custom("created_at is not between 1970 and 2200"))
    }
}

/// The order as the parameters that follow the queue's name.
struct Fields {
    order_id: Uuid,
    payload: Option<Json<Box<RawValue>>>,
    group_key: Option<String>,
    created_at: Option<Timestamp>,
    not_before: Option<Timestamp>,
    priority: Option<i32>,
}

impl From<Order> for Fields {
    fn from(order: Order) -> Self {
        Fields {
            order_id: order.order_id,
            payload: order.payload.map(|Document(json)| json),
            group_key: order.group_key.map(|Name(name)| name),
            created_at: order.created_at.map(|CreatedAt(at)| at),
            not_before: order.not_before,
            priority: order.priority.map(|Within(priority)| priority),
        }
    }
}

/// Many orders.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Orders {
    orders: Vec<Order>,
}

/// Which page of the orders.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Page {
    state: Option<Text>,
    after: Option<i64>,
    max: Option<i32>,
}

/// The right to send a large body.
pub struct Large(#[expect(dead_code, reason = "it counts for as long as it is held")] OwnedSemaphorePermit);

impl FromRequestParts<Arc<Clients>> for Large {
    type Rejection = Problem;

    async fn from_request_parts(_: &mut Parts, clients: &Arc<Clients>) -> Result<Self, Problem> {
        clients.batches.clone().try_acquire_owned().map(Large).map_err(|_| Problem::full())
    }
}

/// Calls that bring orders meet each other, and not those that take them.
fn key(queue: &str) -> Key {
    Key::of(&("orders", queue))
}

/// `POST /v1/queues/{queue}/orders`
pub async fn enqueue(
    State(clients): State<Arc<Clients>>,
    Name(queue): Name,
    Input(order): Input<Order>,
) -> Result<Answer, Problem> {
    let (key, order) = (key(&queue), Fields::from(order));
    let values = values![
        queue,
        order.order_id,
        order.payload,
        order.group_key,
        order.created_at,
        order.not_before,
        order.priority
    ];
    one(&clients, ENQUEUE, key, values).await
}

/// `POST /v1/queues/{queue}/orders/batch`
pub async fn enqueue_all(
    State(clients): State<Arc<Clients>>,
    Name(queue): Name,
    _large: Large,
    Input(Orders { orders }): Input<Orders>,
) -> Result<Answers, Problem> {
    if orders.is_empty() || orders.len() > ORDERS_MAX {
        let detail = format!("there are {} orders", orders.len());
        return Err(Problem::new(Kind::BadRequest, detail, "Send 1 to 1000 orders in one request."));
    }
    let orders: Vec<_> = orders.into_iter().map(Fields::from).collect();
    let all = |field: fn(&Fields) -> Option<Timestamp>| orders.iter().map(field).collect::<Vec<_>>();
    let (created, waits) = (all(|order| order.created_at), all(|order| order.not_before));
    let priorities: Vec<_> = orders.iter().map(|order| order.priority).collect();
    let ids: Vec<_> = orders.iter().map(|order| order.order_id).collect();
    let (payloads, groups): (Vec<_>, Vec<_>) =
        orders.into_iter().map(|order| (order.payload, order.group_key)).unzip();
    let key = key(&queue);
    let values = values![queue, ids, payloads, groups, created, waits, priorities];
    Ok(Answers { name: "orders", rows: clients.rows(ENQUEUE_ALL, key, values).await? })
}

/// `GET /v1/queues/{queue}/orders`
pub async fn list(
    State(clients): State<Arc<Clients>>,
    Name(queue): Name,
    Query(page): Query<Page>,
) -> Result<Answers, Problem> {
    let state = page.state.map_or_else(|| "waiting".to_owned(), |Text(state)| state);
    let key = Key::of(&queue);
    let values = values![queue, state, page.after.unwrap_or(0), page.max.unwrap_or(100)];
    Ok(Answers { name: "orders", rows: clients.rows(LIST, key, values).await? })
}

/// `GET /v1/queues/{queue}/orders/{order_id}`
pub async fn find(
    State(clients): State<Arc<Clients>>,
    OrderId { queue, order_id }: OrderId,
) -> Result<Answer, Problem> {
    match clients.rows(FIND, Key::of(&queue), values![queue, order_id]).await?.pop() {
        Some(row) => Ok(Answer(row)),
        None => Err(Problem::new(
            Kind::NotFound,
            "no such order is in the queue",
            "It was never enqueued, or is older than the queue's retention.",
        )),
    }
}
