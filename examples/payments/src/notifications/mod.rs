//! Notifications to dependent services: which services there are, and the notifications for each. Never sends anything.
//!
//! Notifications are kept in one of two places with the same functions: `table`, the service's own, and `queue`, one of
//! Hotrow's queues for each endpoint if the database has them. As soon as there are queues, new notifications go there.
//! Workers take from both, so the order in which programs notice the queues does not matter, and the table is emptied.
//!
//! No notification is lost: a task that writes the consequences of an outcome writes its notifications before the attempt is
//! finished, and a worker that finds an unfinished attempt writes them again. The second write changes nothing, because the
//! event's ID is the key of the table and the ID of the order. (A queue remembers IDs for a week. If no worker has looked at
//! an attempt for longer, its notification is sent again. The same can happen if a worker crashes after it has sent a
//! notification and before it has recorded that.)

mod queue;
mod table;

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use serde::Serialize;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::database::{Database, Error};
use crate::records::get;
use crate::words::worded;

const ENDPOINTS: &str = include_str!("../../sql/endpoints.sql");

/// A new endpoint, and new queues, are noticed after this time at the latest.
const KNOWN_FOR: Duration = Duration::from_secs(1);
/// The number of notifications that are claimed at once, for all endpoints together. If there are more endpoints, it is one for
/// each.
const MOST: i64 = 50;
/// The most notifications that are listed.
const LISTED: i64 = 100;

worded! {
    /// The state of a notification.
    State {
        /// It will be sent, perhaps again.
        Pending = "pending",
        /// The endpoint has it.
        Delivered = "delivered",
        /// It is not sent any more, unless a person asks for it.
        Dead = "dead",
    }
}

/// A dependent service.
pub struct Endpoint {
    name: String,
    /// Its address.
    pub url: String,
    /// The secret with which messages to it are signed.
    pub secret: String,
    /// Whether it gets notifications.
    pub active: bool,
}

/// A claimed notification, which belongs to this worker until the claim ends.
pub struct Notification {
    /// Its receiver.
    pub endpoint: Arc<Endpoint>,
    /// Its text.
    pub body: String,
    event: Uuid,
    /// The number of claims, including this one.
    tries: i32,
    /// The receipt for the queue; none if it came from the table.
    receipt: Option<i64>,
}

/// A notification in a list.
#[derive(Serialize)]
pub struct Listed {
    event: Uuid,
    endpoint: String,
    state: State,
    tries: i32,
    error: Option<String>,
    created_at: Timestamp,
    delivered_at: Option<Timestamp>,
}

/// The result of a request to send a notification again.
#[derive(Clone, Copy, Debug)]
pub enum Resent {
    /// It is due.
    Due,
    /// The endpoint has it already.
    Delivered,
    /// It will be sent at its time, and not before.
    Waits,
}

/// All notifications.
pub struct Notifications {
    database: Arc<Database>,
    known: Mutex<Known>,
    /// The times after which a notification that was not taken is sent again, in seconds.
    again_after: Vec<f64>,
}

/// What was read from the database a moment ago.
#[derive(Clone, Default)]
struct Known {
    read: Option<Instant>,
    endpoints: Vec<Arc<Endpoint>>,
    queues: bool,
}

impl Notifications {
    /// Notifications in this database that are sent again after these times.
    pub fn new(database: Arc<Database>, again_after: &[Duration]) -> Self {
        let again_after = again_after.iter().map(Duration::as_secs_f64).collect();
        Self { database, known: Mutex::default(), again_after }
    }

    async fn known(&self) -> Result<Known, Error> {
        let mut known = {
            let mut known = self.known.lock().expect("no thread panics while it holds the names");
            if known.read.is_some_and(|read| read.elapsed() < KNOWN_FOR) {
                return Ok(known.clone());
            }
            // One task reads again. The others use what was known a moment ago, if there is anything.
            if known.read.is_some() {
                known.read = Some(Instant::now());
            }
            known.clone()
        };
        let had_queues = known.queues;
        known.queues = had_queues || queue::are_there(&self.database).await?;
        let mut endpoints = Vec::new();
        for row in &self.database.rows(ENDPOINTS, &[]).await? {
            let (name, url) = (get(row, "name")?, get(row, "url")?);
            let endpoint = Endpoint { name, url, secret: get(row, "secret")?, active: get(row, "active")? };
            let is_old = had_queues && known.endpoints.iter().any(|old| old.name == endpoint.name);
            if known.queues && !is_old {
                queue::make(&self.database, &endpoint.name, self.again_after.len()).await?;
            }
            endpoints.push(Arc::new(endpoint));
        }
        known.endpoints = endpoints;
        known.read = Some(Instant::now());
        self.know(known.clone());
        Ok(known)
    }

    fn know(&self, known: Known) {
        *self.known.lock().expect("no thread panics while it holds the names") = known;
    }

    /// Writes the notifications of an event for all dependent services.
    pub async fn write(&self, event: Uuid, kind: &str, payload: &Value) -> Result<(), Error> {
        let known = self.known().await?;
        let body = json!({ "id": event, "type": kind, "payment": payload });
        for endpoint in known.endpoints.iter().filter(|endpoint| endpoint.active) {
            if known.queues {
                let written = queue::write(&self.database, &endpoint.name, event, &body).await;
                // The queue may have been dropped: read again before the next try.
                written.inspect_err(|_| self.know(Known::default()))?;
            } else {
                table::write(&self.database, &endpoint.name, event, &body.to_string()).await?;
            }
        }
        Ok(())
    }

    /// The names of all endpoints.
    pub async fn endpoints(&self) -> Result<Vec<String>, Error> {
        let known = self.known().await?;
        Ok(known.endpoints.iter().map(|endpoint| endpoint.name.clone()).collect())
    }

    /// Claims due notifications of an endpoint, up to its share of those that are claimed at once.
    pub async fn claim(&self, endpoint: &str) -> Result<Vec<Notification>, Error> {
        let known = self.known().await?;
        let share = (MOST / i64::try_from(known.endpoints.len()).unwrap_or(MOST).max(1)).max(1);
        let Some(endpoint) = known.endpoints.iter().find(|known| known.name == endpoint) else {
            return Ok(Vec::new());
        };
        let mut claimed = table::claim(&self.database, endpoint, share).await?;
        if known.queues {
            match queue::claim(&self.database, endpoint, share).await {
                Ok(found) => claimed.extend(found),
                Err(error) => {
                    // The queue may have been dropped: read again before the next try.
                    self.know(Known::default());
                    tracing::warn!(%error, endpoint = endpoint.name, "a queue could not be asked");
                }
            }
        }
        Ok(claimed)
    }

    /// Records the delivery or failure of a claimed notification.
    pub async fn record(&self, notification: &Notification, failure: Option<&str>) -> Result<(), Error> {
        let rung = usize::try_from(notification.tries).unwrap_or(0).saturating_sub(1);
        let again = self.again_after.get(rung);
        match notification.receipt {
            None => table::record(&self.database, notification, failure, again).await,
            Some(receipt) => {
                // The queue knows whether it was the last time, because it was created with the number of attempts.
                let again = again.or(self.again_after.last());
                queue::record(&self.database, notification, receipt, failure, again).await
            }
        }
    }

    /// Makes a notification due again, if it exists.
    pub async fn resend(&self, event: Uuid, endpoint: &str) -> Result<Option<Resent>, Error> {
        let known = self.known().await?;
        if known.queues && known.endpoints.iter().any(|known| known.name == endpoint) {
            let resent = queue::resend(&self.database, event, endpoint).await?;
            if resent.is_some() {
                return Ok(resent);
            }
        }
        table::resend(&self.database, event, endpoint).await
    }

    /// Notifications of one endpoint in one state, the oldest first.
    pub async fn list(&self, endpoint: &str, state: State) -> Result<Vec<Listed>, Error> {
        let known = self.known().await?;
        let mut rows = table::list(&self.database, endpoint, state, LISTED).await?;
        if known.queues && known.endpoints.iter().any(|known| known.name == endpoint) {
            let left = LISTED - i64::try_from(rows.len()).unwrap_or(LISTED);
            rows.extend(queue::list(&self.database, endpoint, state, left).await?);
        }
        let listed = |row| {
            Ok(Listed {
                event: get(row, "event")?,
                endpoint: endpoint.to_owned(),
                state,
                tries: get(row, "tries")?,
                error: get(row, "error")?,
                created_at: get(row, "created_at")?,
                delivered_at: get(row, "delivered_at")?,
            })
        };
        rows.iter().map(listed).collect()
    }
}
