//! Notifications in the service's own table. A claim moves the time at which the next worker can claim the notification.

use std::sync::Arc;

use tokio_postgres::Row;
use uuid::Uuid;

use super::{Endpoint, Notification, Resent, State};
use crate::database::{Database, Error};
use crate::records::get;

const INSERT: &str = include_str!("../../sql/insert_notification.sql");
const CLAIM: &str = include_str!("../../sql/claim_notifications.sql");
const DELIVERED: &str = include_str!("../../sql/notification_delivered.sql");
const FAILED: &str = include_str!("../../sql/notification_failed.sql");
const IS_THERE: &str = include_str!("../../sql/notification_is_there.sql");
const RESEND: &str = include_str!("../../sql/resend_notification.sql");
const LIST: &str = include_str!("../../sql/notifications.sql");

pub async fn write(database: &Database, endpoint: &str, event: Uuid, body: &str) -> Result<(), Error> {
    database.execute(INSERT, &[&event, &endpoint, &body]).await.map(drop)
}

pub async fn claim(
    database: &Database,
    endpoint: &Arc<Endpoint>,
    most: i64,
) -> Result<Vec<Notification>, Error> {
    let rows = database.rows(CLAIM, &[&endpoint.name, &most]).await?;
    let notification = |row| {
        let (event, body, tries) = (get(row, "event")?, get(row, "body")?, get(row, "tries")?);
        Ok(Notification { endpoint: endpoint.clone(), body, event, tries, receipt: None })
    };
    rows.iter().map(notification).collect()
}

pub async fn record(
    database: &Database,
    notification: &Notification,
    failure: Option<&str>,
    again: Option<&f64>,
) -> Result<(), Error> {
    let (event, endpoint) = (&notification.event, &notification.endpoint.name);
    let recorded = match failure {
        None => database.execute(DELIVERED, &[event, endpoint]).await,
        Some(error) => database.execute(FAILED, &[event, endpoint, &error, &again]).await,
    };
    recorded.map(drop)
}

pub async fn resend(database: &Database, event: Uuid, endpoint: &str) -> Result<Option<Resent>, Error> {
    if database.execute(RESEND, &[&event, &endpoint]).await? == 1 {
        return Ok(Some(Resent::Due));
    }
    Ok(database.row(IS_THERE, &[&event, &endpoint]).await?.map(|_| Resent::Delivered))
}

pub async fn list(database: &Database, endpoint: &str, state: State, most: i64) -> Result<Vec<Row>, Error> {
    database.rows(LIST, &[&endpoint, &state.word(), &most]).await
}
