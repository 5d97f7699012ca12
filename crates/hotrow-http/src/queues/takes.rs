//! `/v1/queues/{queue}/take`: takes orders and waits for them. A call that waits has a session of its own, because it would
//! hold up other calls. Orders that were taken for a client that has gone are given back.

use std::sync::Arc;
use std::time::Duration;

use crate::limits;
use serde::Deserialize;
use tokio::sync::oneshot;
use tokio_postgres::Row;

use crate::answer::{Answer, Answered};
use crate::calls::{Call, Effect};
use crate::clients::{Clients, Key, Sessions, Value, values};
use crate::input::{Input, Name, Within};
use crate::problem::{Kind, Problem};
use crate::room::{self, Held};
use crate::seconds::{Lease, Wait};
use crate::sqlstate;

const GIVE_BACK: Call = Call { sql: include_str!("../../sql/give_back.sql"), effect: Effect::Writes };
const LEASE: Lease = Lease::new(30);

/// The number of orders, the length of the lease, and the longest wait for the first order.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Take {
    max: Option<Within<1, 1000>>,
    lease: Option<Lease>,
    at_most_once: Option<bool>,
    wait: Option<Wait>,
}

/// `POST /v1/queues/{queue}/take`
pub async fn take(clients: Sessions, Name(queue): Name, Input(take): Input<Take>) -> Answered {
    let lease = match (take.lease, take.at_most_once.unwrap_or(false)) {
        (Some(_), true) => {
            let hint = "Name one of them: an order that is taken at most once has no lease.";
            return Err(Problem::new(Kind::BadRequest, "there are both lease and at_most_once", hint));
        }
        (None, true) => None,
        (lease, false) => Some(lease.unwrap_or(LEASE)),
    };
    let max = take.max.map_or(1, |Within(max)| max);
    let wait = take.wait.filter(|wait| !wait.duration().is_zero());
    let values = values![queue.clone(), max, lease, wait];
    // A call that waits is expected to find one order. Otherwise those of few workers would keep all room.
    let most = if wait.is_some() { 1 } else { max };
    let held = clients.room.reserve(room::rows(most, limits::HTTP_BODY_BYTES_MAX)).await?;
    let taken = Arc::clone(&clients).take(queue, values, wait.map(Wait::duration), held).await?;
    Ok(Answer::Rows("orders", taken.0, taken.1))
}

impl Clients {
    async fn take(
        self: Arc<Self>,
        queue: String,
        values: Vec<Value>,
        wait: Option<Duration>,
        held: Held,
    ) -> Result<(Vec<Row>, Held), Problem> {
        let (call, key) = (Call::of("take"), Key::of(queue.as_bytes()));
        let permits = match wait {
            Some(_) => self.admit(&self.waits.room)?,
            None => self.admit_to(call, key)?,
        };
        let (mut asker, answer) = oneshot::channel();
        tokio::spawn(async move {
            let _permits = permits;
            let rows = match wait {
                Some(_) => {
                    let slot = self.waits.slot();
                    let stop = self.stopping();
                    let ended = async {
                        tokio::select! { () = asker.closed() => {}, () = stop => {} }
                    };
                    let rows = self.run(&slot, call, values, ended).await;
                    self.waits.keep(slot);
                    rows
                }
                None => self.share(call, key, values).await,
            };
            if let Err(Ok((unread, _held))) = asker.send(rows.map(|rows| (rows, held))) {
                self.give_back(queue, key, &unread).await;
            }
        });
        let limit = limits::HTTP_SEND_TIMEOUT_MS + limits::HTTP_ANSWER_TIMEOUT_MS;
        let limit = Duration::from_millis(limit) + wait.unwrap_or_default();
        match tokio::time::timeout(limit, answer).await {
            Ok(Ok(rows)) => rows,
            Ok(Err(error)) => Err(Problem::internal(&error)),
            Err(_) => Err(sqlstate::lost(true, "the answer did not arrive in time")),
        }
    }

    /// Gives orders back as if they had not been taken. If that fails, they come back when their lease ends.
    async fn give_back(&self, queue: String, key: Key, orders: &[Row]) {
        let receipts: Vec<i64> =
            orders.iter().filter_map(|order| order.try_get("receipt").ok().flatten()).collect();
        if !receipts.is_empty() && self.share(GIVE_BACK, key, values![queue, receipts]).await.is_err() {
            tracing::debug!("a client has left: the orders taken for it stay leased until their lease ends");
        }
    }
}
