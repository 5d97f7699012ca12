//! Notifications in Hotrow's queues: a queue for each endpoint, and an order for each event, with the event's ID.

use std::sync::Arc;

use serde_json::Value;
use tokio_postgres::Row;
use uuid::Uuid;

use super::{Endpoint, Notification, Resent, State};
use crate::database::{Database, Error};
use crate::records::get;

const ARE_THERE: &str = include_str!("../../sql/queues_are_there.sql");
const MAKE: &str = include_str!("../../sql/queue_make.sql");
const ENQUEUE: &str = include_str!("../../sql/queue_enqueue.sql");
const TAKE: &str = include_str!("../../sql/queue_take.sql");
const COMPLETE: &str = include_str!("../../sql/queue_complete.sql");
const FAIL: &str = include_str!("../../sql/queue_fail.sql");
const FIND: &str = include_str!("../../sql/queue_find.sql");
const REDRIVE: &str = include_str!("../../sql/queue_redrive.sql");
const LIST: &str = include_str!("../../sql/queue_list.sql");

/// The most attempts that a queue can allow.
const ATTEMPTS_MAX: usize = 1000;

fn name(endpoint: &str) -> String {
    format!("payments.{endpoint}")
}

/// Whether the database has queues that this service may use.
pub async fn are_there(database: &Database) -> Result<bool, Error> {
    let row = database.row(ARE_THERE, &[]).await?;
    row.map_or(Ok(false), |row| get(&row, "are_there"))
}

/// Creates the queue of an endpoint unless it exists. It gives up after the first try and one for each waiting time.
pub async fn make(database: &Database, endpoint: &str, rungs: usize) -> Result<(), Error> {
    let attempts = i32::try_from((rungs + 1).min(ATTEMPTS_MAX)).expect("a thousand fits");
    let row = database.row(MAKE, &[&name(endpoint), &attempts]).await?;
    let status: Option<String> = row.map(|row| get(&row, "status")).transpose()?;
    if status.as_deref() == Some("differs") {
        tracing::warn!(endpoint, "the queue exists with other settings, which decide when it gives up");
    }
    Ok(())
}

pub async fn write(database: &Database, endpoint: &str, event: Uuid, body: &Value) -> Result<(), Error> {
    let queue = name(endpoint);
    let row = database.row(ENQUEUE, &[&queue, &event, body]).await?;
    let status: Option<String> = row.map(|row| get(&row, "status")).transpose()?;
    match status.as_deref() {
        Some("enqueued" | "duplicate") => Ok(()),
        status => Err(Error::Nonsense(format!("queue {queue}: {status:?}"))),
    }
}

pub async fn claim(
    database: &Database,
    endpoint: &Arc<Endpoint>,
    most: i64,
) -> Result<Vec<Notification>, Error> {
    let most = i32::try_from(most).unwrap_or(1);
    let rows = database.rows(TAKE, &[&name(&endpoint.name), &most]).await?;
    let notification = |row| {
        let (event, body, tries) =
            (get(row, "order_id")?, get::<Value>(row, "payload")?, get(row, "attempt")?);
        let receipt = Some(get(row, "receipt")?);
        Ok(Notification { endpoint: endpoint.clone(), body: body.to_string(), event, tries, receipt })
    };
    rows.iter().map(notification).collect()
}

/// If the lease ended before the delivery was recorded, the notification is sent again.
pub async fn record(
    database: &Database,
    notification: &Notification,
    receipt: i64,
    failure: Option<&str>,
    again: Option<&f64>,
) -> Result<(), Error> {
    let queue = name(&notification.endpoint.name);
    let row = match failure {
        None => database.row(COMPLETE, &[&queue, &receipt]).await?,
        Some(error) => database.row(FAIL, &[&queue, &receipt, &error, &again]).await?,
    };
    let outcome: Option<String> = row.map(|row| get(&row, "outcome")).transpose()?;
    if outcome.as_deref() == Some("lease_lost") {
        tracing::info!(event = %notification.event, endpoint = notification.endpoint.name, "the claim had ended");
    }
    Ok(())
}

pub async fn resend(database: &Database, event: Uuid, endpoint: &str) -> Result<Option<Resent>, Error> {
    let queue = name(endpoint);
    let Some(row) = database.row(FIND, &[&queue, &event]).await? else { return Ok(None) };
    match get(&row, "state")? {
        "processed" => Ok(Some(Resent::Delivered)),
        "dead" => {
            database.execute(REDRIVE, &[&queue, &event]).await?;
            Ok(Some(Resent::Due))
        }
        // An order that waits for its next time cannot be moved forward.
        _ => Ok(Some(Resent::Waits)),
    }
}

pub async fn list(database: &Database, endpoint: &str, state: State, most: i64) -> Result<Vec<Row>, Error> {
    let most = i32::try_from(most).unwrap_or(0);
    if most == 0 {
        return Ok(Vec::new());
    }
    let states: &[&str] = match state {
        State::Pending => &["waiting", "delayed", "leased"],
        State::Delivered => &["processed"],
        State::Dead => &["dead"],
    };
    database.rows(LIST, &[&name(endpoint), &states, &most]).await
}
