//! `/v1/counters`: creates, reads, increments and drains counters.

use crate::limits;
use axum::http::Method;
use serde::Deserialize;

use crate::answer::Answered;
use crate::clients::{Call, Effect, Key, Sessions, one, values};
use crate::input::{IdempotencyKey, Input, Keyed, Name, Page, Query};
use crate::room;
use crate::routes::Routes;

const CREATE: Call =
    Call { sql: include_str!("../../sql/counters/create_counter.sql"), effect: Effect::Writes };
const READ: Call = Call { sql: include_str!("../../sql/counters/counter.sql"), effect: Effect::Reads };
const LIST: Call = Call { sql: include_str!("../../sql/counters/list_counters.sql"), effect: Effect::Reads };
const INCREMENT: Call =
    Call { sql: include_str!("../../sql/counters/increment.sql"), effect: Effect::Merged };
const DRAIN: Call = Call { sql: include_str!("../../sql/counters/drain.sql"), effect: Effect::Merged };

/// The routes of counters.
pub fn routes(routes: Routes) -> Routes {
    routes
        .with_key(Method::POST, "/v1/counters/{counter}/increment", increment)
        .with_key(Method::POST, "/v1/counters/{counter}/drain", drain)
        .without_key(Method::GET, "/v1/counters", list)
        .without_key(Method::PUT, "/v1/counters/{counter}", create)
        .without_key(Method::GET, "/v1/counters/{counter}", read)
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Strategy {
    #[default]
    Ledger,
    Log,
}

/// The settings of a new counter.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NewCounter {
    strategy: Option<Strategy>,
    min: Option<i64>,
    max: Option<i64>,
}

/// The amount to add.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Increment {
    amount: Option<i64>,
}

/// `PUT /v1/counters/{counter}`
pub async fn create(clients: Sessions, Name(counter): Name, Input(new): Input<NewCounter>) -> Answered {
    let strategy = match new.strategy.unwrap_or_default() {
        Strategy::Ledger => "ledger",
        Strategy::Log => "log",
    };
    one(&clients, CREATE, Key::of(&counter), values![counter, strategy, new.min, new.max]).await
}

/// `GET /v1/counters/{counter}`
pub async fn read(clients: Sessions, Name(counter): Name) -> Answered {
    one(&clients, READ, Key::of(&counter), values![counter]).await
}

/// `POST /v1/counters/{counter}/increment`
pub async fn increment(clients: Sessions, Name(counter): Name, Keyed(key, by): Keyed<Increment>) -> Answered {
    one(&clients, INCREMENT, Key::of(&counter), values![counter, by.amount.unwrap_or(1), key]).await
}

/// `POST /v1/counters/{counter}/drain`
pub async fn drain(clients: Sessions, Name(counter): Name, IdempotencyKey(key): IdempotencyKey) -> Answered {
    one(&clients, DRAIN, Key::of(&counter), values![counter, key]).await
}

/// `GET /v1/counters`
pub async fn list(clients: Sessions, Query(page): Query<Page>) -> Answered {
    let bytes = room::rows(page.max(), limits::HTTP_ROW_BYTES);
    clients.list("counters", LIST, Key::of("counters"), page.values(), bytes).await
}
