//! `/v1/queues`: creates, describes, pauses and drops queues, and redrives dead letters. Orders are in `orders`, `takes` and
//! `receipts`.

mod orders;
mod receipts;
pub mod takes;

use crate::limits;
use axum::http::Method;
use serde::Deserialize;
use uuid::Uuid;

use crate::answer::Answered;
use crate::clients::{Call, Effect, Key, Sessions, one, values};
use crate::input::{Input, Name, Page, Query, Text};
use crate::room;
use crate::routes::Routes;
use crate::seconds::Pause;

const CREATE: Call = Call { sql: include_str!("../../sql/queues/create_queue.sql"), effect: Effect::Writes };
const STATS: Call = Call { sql: include_str!("../../sql/queues/queue_stats.sql"), effect: Effect::Reads };
const LIST: Call = Call { sql: include_str!("../../sql/queues/list_queues.sql"), effect: Effect::Reads };
const DROP: Call = Call { sql: include_str!("../../sql/queues/drop_queue.sql"), effect: Effect::Writes };
const PAUSE: Call = Call { sql: include_str!("../../sql/queues/pause.sql"), effect: Effect::Writes };
const RESUME: Call = Call { sql: include_str!("../../sql/queues/resume.sql"), effect: Effect::Writes };
const REDRIVE: Call = Call { sql: include_str!("../../sql/queues/redrive.sql"), effect: Effect::Writes };

/// The routes of queues.
pub fn routes(routes: Routes) -> Routes {
    routes
        .without_key(Method::GET, "/v1/queues", list)
        .without_key(Method::PUT, "/v1/queues/{queue}", create)
        .without_key(Method::GET, "/v1/queues/{queue}", stats)
        .without_key(Method::DELETE, "/v1/queues/{queue}", drop)
        .without_key(Method::POST, "/v1/queues/{queue}/pause", pause)
        .without_key(Method::POST, "/v1/queues/{queue}/resume", resume)
        .without_key(Method::POST, "/v1/queues/{queue}/redrive", redrive)
        .without_key(Method::POST, "/v1/queues/{queue}/orders", orders::enqueue)
        .without_key(Method::GET, "/v1/queues/{queue}/orders", orders::list)
        .without_key_large(Method::POST, "/v1/queues/{queue}/orders/batch", orders::enqueue_all)
        .without_key(Method::GET, "/v1/queues/{queue}/orders/{order_id}", orders::find)
        .without_key(Method::POST, "/v1/queues/{queue}/take", takes::take)
        .without_key(Method::POST, "/v1/queues/{queue}/complete", receipts::complete_all)
        .without_key(Method::POST, "/v1/queues/{queue}/receipts/{receipt}/complete", receipts::complete)
        .without_key(Method::POST, "/v1/queues/{queue}/receipts/{receipt}/fail", receipts::fail)
        .without_key(Method::POST, "/v1/queues/{queue}/receipts/{receipt}/release", receipts::release)
        .without_key(Method::POST, "/v1/queues/{queue}/receipts/{receipt}/extend", receipts::extend)
}

/// The settings of a new queue.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NewQueue {
    shards: Option<i32>,
    strict_groups: Option<bool>,
    max_attempts: Option<i32>,
    retry: Option<Pause>,
    dead_letter: Option<bool>,
    retention: Option<Pause>,
    order_by: Option<Text>,
}

/// The dead letters to redrive.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Redrive {
    max: Option<i32>,
    order_id: Option<Uuid>,
}

/// `PUT /v1/queues/{queue}`
pub async fn create(clients: Sessions, Name(queue): Name, Input(new): Input<NewQueue>) -> Answered {
    let key = Key::of(&queue);
    let values = values![
        queue,
        new.shards.unwrap_or(1),
        new.strict_groups.unwrap_or(true),
        new.max_attempts.unwrap_or(20),
        new.retry.unwrap_or(Pause::new(1)),
        new.dead_letter.unwrap_or(true),
        new.retention.unwrap_or(Pause::new(7 * 86_400)),
        new.order_by.map_or_else(|| "arrival".to_owned(), |Text(order_by)| order_by)
    ];
    one(&clients, CREATE, key, values).await
}

/// `GET /v1/queues/{queue}`
pub async fn stats(clients: Sessions, Name(queue): Name) -> Answered {
    one(&clients, STATS, Key::of(&queue), values![queue]).await
}

/// `GET /v1/queues`
pub async fn list(clients: Sessions, Query(page): Query<Page>) -> Answered {
    let bytes = room::rows(page.max(), limits::HTTP_ROW_BYTES);
    clients.list("queues", LIST, Key::of("queues"), page.values(), bytes).await
}

/// `DELETE /v1/queues/{queue}`
pub async fn drop(clients: Sessions, Name(queue): Name) -> Answered {
    one(&clients, DROP, Key::of(&queue), values![queue]).await
}

/// `POST /v1/queues/{queue}/pause`
pub async fn pause(clients: Sessions, Name(queue): Name) -> Answered {
    one(&clients, PAUSE, Key::of(&queue), values![queue]).await
}

/// `POST /v1/queues/{queue}/resume`
pub async fn resume(clients: Sessions, Name(queue): Name) -> Answered {
    one(&clients, RESUME, Key::of(&queue), values![queue]).await
}

/// `POST /v1/queues/{queue}/redrive`
pub async fn redrive(clients: Sessions, Name(queue): Name, Input(redrive): Input<Redrive>) -> Answered {
    let key = Key::of(&queue);
    one(&clients, REDRIVE, key, values![queue, redrive.max.unwrap_or(1000), redrive.order_id]).await
}
