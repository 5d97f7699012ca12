//! Dependent services: who they are, what each is to be told, and until when that is kept. Never sends anything.
//!
//! It is kept in one of two places of one shape: `table`, the service's own, and `queue`, a queue of hotrow's for each
//! endpoint, where the database has them. New notifications go into queues as soon as there are any; workers take from
//! both, so that it doesn't matter which program notices first, and what was in the table is sent.
//!
//! No event is told to nobody: whoever follows an attempt's outcome writes its notifications before the attempt is
//! finished, and whoever finds one that isn't writes them again. The second time changes nothing: the event's id is the
//! table's key and the order's id. (A queue remembers ids for a week: an attempt that no worker has looked at for longer is
//! told again, as may be one whose worker died between telling and noting it.)

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

/// A new endpoint, and new queues, are noticed after so long at the latest.
const KNOWN_FOR: Duration = Duration::from_secs(1);
/// Claimed at once, of all endpoints together: one of each if there are more endpoints.
const MOST: i64 = 50;
/// The most that are listed.
const LISTED: i64 = 100;

worded! {
    /// Where a notification is.
    State {
        /// It will be told, again perhaps.
        Pending = "pending",
        /// The endpoint has it.
        Delivered = "delivered",
        /// Nobody tries any more, unless a person wants it.
        Dead = "dead",
    }
}

/// A dependent service.
pub struct Endpoint {
    name: String,
    /// Where it listens.
    pub url: String,
    /// What messages to it are signed with.
    pub secret: String,
    /// Whether it wants to be told.
    pub active: bool,
}

/// What an endpoint is to be told: ours until the claim ends.
pub struct Notification {
    /// Whom.
    pub endpoint: Arc<Endpoint>,
    /// What.
    pub body: String,
    event: Uuid,
    /// How often it was claimed, this time too.
    tries: i32,
    /// What the queue wants to see afterwards; none if it came from the table.
    receipt: Option<i64>,
}

/// What has become of one.
#[derive(Serialize)]
pub struct Told {
    event: Uuid,
    endpoint: String,
    state: State,
    tries: i32,
    error: Option<String>,
    created_at: Timestamp,
    delivered_at: Option<Timestamp>,
}

/// Whether one is told again that a person wants resent.
#[derive(Clone, Copy, Debug)]
pub enum Resent {
    /// It is due.
    Due,
    /// The endpoint has it already.
    Delivered,
    /// It will be told at its time, and not before.
    Waits,
}

/// All that are kept.
pub struct Notifications {
    known: Mutex<Known>,
    /// When one that was not taken is told again, in seconds.
    again_after: Vec<f64>,
}

/// As it was a moment ago.
#[derive(Clone, Default)]
struct Known {
    read: Option<Instant>,
    endpoints: Vec<Arc<Endpoint>>,
    queues: bool,
}

impl Notifications {
    /// With this ladder.
    pub fn new(again_after: &[Duration]) -> Self {
        let again_after = again_after.iter().map(Duration::as_secs_f64).collect();
        Self { known: Mutex::default(), again_after }
    }

    async fn known(&self, database: &Database) -> Result<Known, Error> {
        let mut known = {
            let mut known = self.known.lock().expect("nothing panics while it holds the names");
            if known.read.is_some_and(|read| read.elapsed() < KNOWN_FOR) {
                return Ok(known.clone());
            }
            // One looks; meanwhile what was known a moment ago is good enough for the others, if there is anything.
            if known.read.is_some() {
                known.read = Some(Instant::now());
            }
            known.clone()
        };
        let had_queues = known.queues;
        known.queues = had_queues || queue::are_there(database).await?;
        let mut endpoints = Vec::new();
        for row in &database.rows(ENDPOINTS, &[]).await? {
            let (name, url) = (get(row, "name")?, get(row, "url")?);
            let endpoint = Endpoint { name, url, secret: get(row, "secret")?, active: get(row, "active")? };
            let is_old = had_queues && known.endpoints.iter().any(|old| old.name == endpoint.name);
            if known.queues && !is_old {
                queue::make(database, &endpoint.name, self.again_after.len()).await?;
            }
            endpoints.push(Arc::new(endpoint));
        }
        known.endpoints = endpoints;
        known.read = Some(Instant::now());
        self.know(known.clone());
        Ok(known)
    }

    fn know(&self, known: Known) {
        *self.known.lock().expect("nothing panics while it holds the names") = known;
    }

    /// Writes down that every dependent service is to be told.
    pub async fn write(
        &self,
        database: &Database,
        event: Uuid,
        kind: &str,
        payload: &Value,
    ) -> Result<(), Error> {
        let known = self.known(database).await?;
        let body = json!({ "id": event, "type": kind, "payment": payload });
        for endpoint in known.endpoints.iter().filter(|endpoint| endpoint.active) {
            if known.queues {
                let written = queue::write(database, &endpoint.name, event, &body).await;
                // Somebody may have dropped the queue: look again before the next try.
                written.inspect_err(|_| self.know(Known::default()))?;
            } else {
                table::write(database, &endpoint.name, event, &body.to_string()).await?;
            }
        }
        Ok(())
    }

    /// The names of all endpoints.
    pub async fn endpoints(&self, database: &Database) -> Result<Vec<String>, Error> {
        let known = self.known(database).await?;
        Ok(known.endpoints.iter().map(|endpoint| endpoint.name.clone()).collect())
    }

    /// Those of an endpoint's that are due, up to its share of what is claimed at once.
    pub async fn claim(&self, database: &Database, endpoint: &str) -> Result<Vec<Notification>, Error> {
        let known = self.known(database).await?;
        let share = (MOST / i64::try_from(known.endpoints.len()).unwrap_or(MOST).max(1)).max(1);
        let Some(endpoint) = known.endpoints.iter().find(|known| known.name == endpoint) else {
            return Ok(Vec::new());
        };
        let mut claimed = table::claim(database, endpoint, share).await?;
        if known.queues {
            match queue::claim(database, endpoint, share).await {
                Ok(found) => claimed.extend(found),
                Err(error) => {
                    // Somebody may have dropped the queue: look again before the next try.
                    self.know(Known::default());
                    tracing::warn!(%error, endpoint = endpoint.name, "a queue could not be asked");
                }
            }
        }
        Ok(claimed)
    }

    /// Notes what has become of a claimed one.
    pub async fn told(
        &self,
        database: &Database,
        told: &Notification,
        failure: Option<&str>,
    ) -> Result<(), Error> {
        let rung = usize::try_from(told.tries).unwrap_or(0).saturating_sub(1);
        let again = self.again_after.get(rung);
        match (told.receipt, failure) {
            (None, None) => table::delivered(database, told).await,
            (None, Some(error)) => table::failed(database, told, error, again).await,
            (Some(receipt), None) => queue::delivered(database, told, receipt).await,
            (Some(receipt), Some(error)) => {
                // Whether it was the last time the queue knows: it was made with a ladder's length.
                let again = again.or(self.again_after.last());
                queue::failed(database, told, receipt, error, again).await
            }
        }
    }

    /// Has one told again, if it is there.
    pub async fn resend(
        &self,
        database: &Database,
        event: Uuid,
        endpoint: &str,
    ) -> Result<Option<Resent>, Error> {
        let known = self.known(database).await?;
        if known.queues && known.endpoints.iter().any(|known| known.name == endpoint) {
            let resent = queue::resend(database, event, endpoint).await?;
            if resent.is_some() {
                return Ok(resent);
            }
        }
        table::resend(database, event, endpoint).await
    }

    /// Those of one endpoint in one state, the oldest first.
    pub async fn list(&self, database: &Database, endpoint: &str, state: State) -> Result<Vec<Told>, Error> {
        let known = self.known(database).await?;
        let mut rows = table::list(database, endpoint, state, LISTED).await?;
        if known.queues && known.endpoints.iter().any(|known| known.name == endpoint) {
            let left = LISTED - i64::try_from(rows.len()).unwrap_or(LISTED);
            rows.extend(queue::list(database, endpoint, state, left).await?);
        }
        let told = |row| {
            Ok(Told {
                event: get(row, "event")?,
                endpoint: endpoint.to_owned(),
                state,
                tries: get(row, "tries")?,
                error: get(row, "error")?,
                created_at: get(row, "created_at")?,
                delivered_at: get(row, "delivered_at")?,
            })
        };
        rows.iter().map(told).collect()
    }
}
