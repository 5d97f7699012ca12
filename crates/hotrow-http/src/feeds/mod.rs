//! `/v1/users`: the messages of an inbox.

use serde::Deserialize;

use crate::answer::Answered;
use crate::calls::Call;
use crate::clients::{Key, Sessions, Value, one, values};
use crate::input::{Input, Query, Text, User};
use crate::limits;
use crate::room;
use crate::routes::Routes;

/// The routes that need a handler.
pub fn routes(routes: Routes) -> Routes {
    routes.add("past", past).add("peek", peek).add("mark_read_up_to", mark_read)
}

/// The order and the number of unread messages.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Read {
    max: Option<i32>,
    sort: Option<Text>,
}

/// The last entry to mark.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct MarkRead {
    up_to: i64,
}

/// The page of the past.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Page {
    before: Option<i64>,
    max: Option<i32>,
}

/// `GET /v1/users/{user}/inbox/next`
async fn peek(clients: Sessions, User(user): User, Query(read): Query<Read>) -> Answered {
    let max = read.max.unwrap_or(20);
    let sort = read.sort.map_or_else(|| "oldest".to_owned(), |Text(sort)| sort);
    messages(clients, "peek", user, max, values![user, max, sort]).await
}

/// `POST /v1/users/{user}/inbox/read`
async fn mark_read(clients: Sessions, User(user): User, Input(mark): Input<MarkRead>) -> Answered {
    one(&clients, Call::of("mark_read_up_to"), key(user), values![user, mark.up_to]).await
}

/// `GET /v1/users/{user}/inbox`
async fn past(clients: Sessions, User(user): User, Query(page): Query<Page>) -> Answered {
    let max = page.max.unwrap_or(20);
    messages(clients, "past", user, max, values![user, page.before, max]).await
}

async fn messages(clients: Sessions, function: &str, user: i64, max: i32, values: Vec<Value>) -> Answered {
    let bytes = room::rows(max, limits::HTTP_BODY_BYTES_MAX);
    clients.list("messages", Call::of(function), key(user), values, bytes).await
}

fn key(user: i64) -> Key {
    Key::of(&user.to_be_bytes()[..])
}
