//! `/v1/queues/{queue}/receipts`: completes, fails, releases and extends orders that were taken.

use crate::limits;
use bytes::BytesMut;
use serde::Deserialize;
use std::error::Error;
use tokio_postgres::types::{self, IsNull, ToSql, Type, WrongType, to_sql_checked};

use crate::answer::Answered;
use crate::clients::{Call, Effect, Key, Sessions, one, values};
use crate::document::Document;
use crate::input::{Input, Name, Receipt, Text};
use crate::problem::{Kind, Problem};
use crate::seconds::{Lease, Pause};

const COMPLETE: Call = Call { sql: include_str!("../../sql/queues/complete.sql"), effect: Effect::Merged };
const COMPLETE_ALL: Call =
    Call { sql: include_str!("../../sql/queues/complete_all.sql"), effect: Effect::Merged };
const FAIL: Call = Call { sql: include_str!("../../sql/queues/fail.sql"), effect: Effect::Merged };
const RELEASE: Call = Call { sql: include_str!("../../sql/queues/release.sql"), effect: Effect::Merged };
const EXTEND: Call = Call { sql: include_str!("../../sql/queues/extend_lease.sql"), effect: Effect::Merged };

/// The most receipts that one call of the pack takes.
const RECEIPTS_MAX: usize = 1_000;

/// The outcome of an order.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Complete {
    status: Option<i32>,
    result: Option<Document>,
}

/// The outcome of several orders.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CompleteAll {
    receipts: Vec<i64>,
    status: Option<i32>,
    result: Option<Document>,
}

/// The receipts in the pack's own type. With a cast in the statement, calls would not be merged.
#[derive(Debug)]
struct Receipts(Vec<i64>);

impl ToSql for Receipts {
    fn to_sql(&self, domain: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        match domain.kind() {
            types::Kind::Domain(array) => self.0.to_sql(array, out),
            _ => Err(Box::new(WrongType::new::<Self>(domain.clone()))),
        }
    }

    fn accepts(domain: &Type) -> bool {
        matches!(domain.kind(), types::Kind::Domain(array) if <Vec<i64> as ToSql>::accepts(array))
    }

    to_sql_checked!();
}

/// The reason of the failure, and the time until the next attempt.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fail {
    error: Option<Text>,
    retry_in: Option<Pause>,
}

/// The new length of the lease, from now.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Extend {
    lease: Lease,
}

/// A body without fields.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Release {}

/// `POST /v1/queues/{queue}/receipts/{receipt}/complete`
pub async fn complete(clients: Sessions, order: Receipt, Input(done): Input<Complete>) -> Answered {
    let (key, result) = (Key::of(&order.queue), done.result.map(|Document(json)| json));
    let values = values![order.queue, order.receipt, done.status.unwrap_or(0), result];
    one(&clients, COMPLETE, key, values).await
}

/// `POST /v1/queues/{queue}/complete`
pub async fn complete_all(clients: Sessions, Name(queue): Name, Input(done): Input<CompleteAll>) -> Answered {
    let receipts = done.receipts;
    if receipts.is_empty() || receipts.len() > RECEIPTS_MAX || receipts.iter().any(|receipt| *receipt < 0) {
        let detail = "receipts are not 1 to 1000 numbers of 0 or more";
        return Err(Problem::new(Kind::BadRequest, detail, "Use the receipts that came with the orders."));
    }
    let bytes = receipts.len() * limits::HTTP_ROW_BYTES;
    let (key, result) = (Key::of(&queue), done.result.map(|Document(json)| json));
    let values = values![queue, Receipts(receipts), done.status.unwrap_or(0), result];
    clients.list("receipts", COMPLETE_ALL, key, values, bytes).await
}

/// `POST /v1/queues/{queue}/receipts/{receipt}/fail`
pub async fn fail(clients: Sessions, order: Receipt, Input(fail): Input<Fail>) -> Answered {
    let (key, error) = (Key::of(&order.queue), fail.error.map(|Text(error)| error));
    one(&clients, FAIL, key, values![order.queue, order.receipt, error, fail.retry_in]).await
}

/// `POST /v1/queues/{queue}/receipts/{receipt}/release`
pub async fn release(clients: Sessions, order: Receipt, Input(Release {}): Input<Release>) -> Answered {
    one(&clients, RELEASE, Key::of(&order.queue), values![order.queue, order.receipt]).await
}

/// `POST /v1/queues/{queue}/receipts/{receipt}/extend`
pub async fn extend(clients: Sessions, order: Receipt, Input(extend): Input<Extend>) -> Answered {
    one(&clients, EXTEND, Key::of(&order.queue), values![order.queue, order.receipt, extend.lease]).await
}
