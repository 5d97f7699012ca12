//! `/v1/users`: followers, posts, and inboxes.

use crate::limits;
use axum::http::Method;
use serde::Deserialize;

use crate::answer::Answered;
use crate::clients::{Call, Effect, Key, Sessions, Value, one, values};
use crate::input::{Input, Keyed, Query, Text, User};
use crate::room;
use crate::routes::Routes;
use crate::time::Time;

const FOLLOW: Call = Call { sql: include_str!("../../sql/feeds/follow.sql"), effect: Effect::Merged };
const UNFOLLOW: Call = Call { sql: include_str!("../../sql/feeds/unfollow.sql"), effect: Effect::Merged };
const MUTE: Call = Call { sql: include_str!("../../sql/feeds/mute.sql"), effect: Effect::Writes };
const POST: Call = Call { sql: include_str!("../../sql/feeds/post.sql"), effect: Effect::Merged };
const PUSH: Call = Call { sql: include_str!("../../sql/feeds/push.sql"), effect: Effect::Merged };
const CONSUME: Call = Call { sql: include_str!("../../sql/feeds/consume.sql"), effect: Effect::Merged };
const PEEK: Call = Call { sql: include_str!("../../sql/feeds/peek.sql"), effect: Effect::Writes };
const UNREAD: Call = Call { sql: include_str!("../../sql/feeds/unread.sql"), effect: Effect::Reads };
const MARK_READ: Call =
    Call { sql: include_str!("../../sql/feeds/mark_read_up_to.sql"), effect: Effect::Writes };
const PAST: Call = Call { sql: include_str!("../../sql/feeds/past.sql"), effect: Effect::Reads };
const STATS: Call = Call { sql: include_str!("../../sql/feeds/feed_stats.sql"), effect: Effect::Reads };

/// The routes of feeds.
pub fn routes(routes: Routes) -> Routes {
    routes
        .without_key(Method::GET, "/v1/feeds", stats)
        .with_key(Method::POST, "/v1/users/{user}/posts", post)
        .with_key(Method::POST, "/v1/users/{user}/inbox", push)
        .with_key(Method::GET, "/v1/users/{user}/inbox", past)
        .without_key(Method::POST, "/v1/users/{user}/follow", follow)
        .without_key(Method::POST, "/v1/users/{user}/unfollow", unfollow)
        .without_key(Method::POST, "/v1/users/{user}/mute", mute)
        .without_key(Method::POST, "/v1/users/{user}/inbox/consume", consume)
        .without_key(Method::GET, "/v1/users/{user}/inbox/next", peek)
        .without_key(Method::POST, "/v1/users/{user}/inbox/read", mark_read)
        .without_key(Method::GET, "/v1/users/{user}/inbox/unread", unread)
}

/// The user to follow.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Follow {
    followee: i64,
    backfill: Option<i32>,
}

/// The user to unfollow.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Unfollow {
    followee: i64,
}

/// The user whose posts are muted or unmuted.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mute {
    followee: i64,
    muted: Option<bool>,
}

/// The post.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Post {
    content: Text,
}

/// The message to push.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Push {
    from_user: i64,
    content: Text,
    created_at: Option<Time>,
}

/// The order and the number of unread messages.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Read {
    max: Option<i32>,
    sort: Option<Text>,
}

/// The last entry to mark.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MarkRead {
    up_to: i64,
}

/// The page of the past.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Page {
    before: Option<i64>,
    max: Option<i32>,
}

impl Read {
    fn max(&self) -> i32 {
        self.max.unwrap_or(20)
    }

    fn values(self, user: i64) -> Vec<Value> {
        values![user, self.max(), self.sort.map_or_else(|| "oldest".to_owned(), |Text(sort)| sort)]
    }
}

/// `POST /v1/users/{user}/follow`
pub async fn follow(clients: Sessions, User(user): User, Input(follow): Input<Follow>) -> Answered {
    let values = values![user, follow.followee, follow.backfill.unwrap_or(20)];
    one(&clients, FOLLOW, Key::of(&follow.followee), values).await
}

/// `POST /v1/users/{user}/unfollow`
pub async fn unfollow(clients: Sessions, User(user): User, Input(unfollow): Input<Unfollow>) -> Answered {
    one(&clients, UNFOLLOW, Key::of(&unfollow.followee), values![user, unfollow.followee]).await
}

/// `POST /v1/users/{user}/mute`
pub async fn mute(clients: Sessions, User(user): User, Input(mute): Input<Mute>) -> Answered {
    let values = values![user, mute.followee, mute.muted.unwrap_or(true)];
    one(&clients, MUTE, Key::of(&mute.followee), values).await
}

/// `POST /v1/users/{user}/posts`
pub async fn post(clients: Sessions, User(user): User, Keyed(key, post): Keyed<Post>) -> Answered {
    one(&clients, POST, Key::of(&user), values![user, post.content.0, key]).await
}

/// `POST /v1/users/{user}/inbox`
pub async fn push(clients: Sessions, User(user): User, Keyed(key, push): Keyed<Push>) -> Answered {
    let values = values![user, push.from_user, push.content.0, push.created_at, key];
    one(&clients, PUSH, Key::of(&user), values).await
}

/// `POST /v1/users/{user}/inbox/consume`
pub async fn consume(clients: Sessions, User(user): User, Input(read): Input<Read>) -> Answered {
    messages(clients, CONSUME, user, read.max(), read.values(user)).await
}

/// `GET /v1/users/{user}/inbox/unread`
pub async fn unread(clients: Sessions, User(user): User) -> Answered {
    one(&clients, UNREAD, Key::of(&user), values![user]).await
}

/// `GET /v1/users/{user}/inbox/next`
pub async fn peek(clients: Sessions, User(user): User, Query(read): Query<Read>) -> Answered {
    messages(clients, PEEK, user, read.max(), read.values(user)).await
}

/// `POST /v1/users/{user}/inbox/read`
pub async fn mark_read(clients: Sessions, User(user): User, Input(mark): Input<MarkRead>) -> Answered {
    one(&clients, MARK_READ, Key::of(&user), values![user, mark.up_to]).await
}

/// `GET /v1/users/{user}/inbox`
pub async fn past(clients: Sessions, User(user): User, Query(page): Query<Page>) -> Answered {
    let max = page.max.unwrap_or(20);
    messages(clients, PAST, user, max, values![user, page.before, max]).await
}

async fn messages(clients: Sessions, call: Call, user: i64, max: i32, values: Vec<Value>) -> Answered {
    let bytes = room::rows(max, limits::HTTP_BODY_BYTES_MAX);
    clients.list("messages", call, Key::of(&user), values, bytes).await
}

/// `GET /v1/feeds`
pub async fn stats(clients: Sessions) -> Answered {
    one(&clients, STATS, Key::of("feeds"), values![]).await
}
