//! `/v1/queues/{queue}/complete` and `/v1/queues/{queue}/receipts`: completes several orders, and gives one back.

use crate::limits;
use bytes::BytesMut;
use serde::Deserialize;
use std::error::Error;
use tokio_postgres::types::{self, IsNull, ToSql, Type, WrongType, to_sql_checked};

use crate::answer::Answered;
use crate::calls::Call;
use crate::clients::{Key, Sessions, one, values};
use crate::document::Document;
use crate::input::{Input, Name, Receipt};
use crate::problem::{Kind, Problem};

/// The most receipts that one call of the hotrow schema takes.
const RECEIPTS_MAX: usize = 1_000;

/// The outcome of several orders.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CompleteAll {
    receipts: Vec<i64>,
    status: Option<i32>,
    result: Option<Document>,
}

/// The receipts in the hotrow schema's own type. With a cast in the statement, calls would not be merged.
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

/// A body without fields.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Release {}

/// `POST /v1/queues/{queue}/complete`
pub async fn complete_all(clients: Sessions, Name(queue): Name, Input(done): Input<CompleteAll>) -> Answered {
    let receipts = done.receipts;
    if receipts.is_empty() || receipts.len() > RECEIPTS_MAX || receipts.iter().any(|receipt| *receipt < 0) {
        let detail = "receipts are not 1 to 1000 numbers of 0 or more";
        return Err(Problem::new(Kind::BadRequest, detail, "Use the receipts that came with the orders."));
    }
    let bytes = receipts.len() * limits::HTTP_ROW_BYTES;
    let (key, result) = (Key::of(queue.as_bytes()), done.result.map(|Document(json)| json));
    let values = values![queue, Receipts(receipts), done.status.unwrap_or(0), result];
    clients.list("receipts", Call::of("complete_all"), key, values, bytes).await
}

/// `POST /v1/queues/{queue}/receipts/{receipt}/release`
pub async fn release(clients: Sessions, order: Receipt, Input(Release {}): Input<Release>) -> Answered {
    let key = Key::of(order.queue.as_bytes());
    one(&clients, Call::of("release"), key, values![order.queue, order.receipt]).await
}
