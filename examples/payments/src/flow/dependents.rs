//! Dependent services: who they are, and what is to be told to each. Sent by a worker.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use uuid::Uuid;

use super::Payments;
use crate::database::Error;
use crate::records::get;

const ENDPOINTS: &str = include_str!("../../sql/endpoints.sql");
const INSERT_NOTIFICATION: &str = include_str!("../../sql/insert_notification.sql");

/// A new endpoint is told what happens after so long at the latest.
const ENDPOINTS_AGE: Duration = Duration::from_secs(1);

/// Who wants to be told, as it was a moment ago.
#[derive(Default)]
pub(super) struct Endpoints {
    read: Option<Instant>,
    names: Vec<String>,
}

impl Payments {
    async fn endpoints(&self) -> Result<Vec<String>, Error> {
        {
            let known = self.endpoints.lock().expect("nothing panics while it holds the names");
            if known.read.is_some_and(|read| read.elapsed() < ENDPOINTS_AGE) {
                return Ok(known.names.clone());
            }
        }
        let rows = self.database.rows(ENDPOINTS, &[]).await?;
        let names: Vec<String> = rows.iter().map(|row| get(row, "name")).collect::<Result<_, _>>()?;
        let mut known = self.endpoints.lock().expect("nothing panics while it holds the names");
        *known = Endpoints { read: Some(Instant::now()), names: names.clone() };
        Ok(names)
    }

    /// Writes down that every dependent service is to be told.
    pub(super) async fn tell(&self, event: Uuid, kind: &str, payload: &Value) -> Result<(), Error> {
        for endpoint in self.endpoints().await? {
            let body = json!({ "id": event, "type": kind, "payment": payload }).to_string();
            self.database.execute(INSERT_NOTIFICATION, &[&event, &endpoint, &body]).await?;
        }
        Ok(())
    }
}
