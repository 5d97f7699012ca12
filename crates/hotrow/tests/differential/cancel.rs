//! Cancel requests of sessions: when their statement waits, at any moment, and while the gateway is paused.

use std::time::{Duration, Instant};

use hotrow_testkit::raw::Raw;
use hotrow_testkit::rows;
use tokio_postgres::{Client, NoTls};

use crate::run::{Received, Target};

/// The longest wait for a statement that does not wait for anything.
const ARRIVES_WITHIN: Duration = Duration::from_secs(2);
/// States of a client on the gateway's console in which no statement waits.
const IDLE: [&str; 2] = ["idle", "pinned"];

/// The body of BackendKeyData.
#[derive(Clone, Default)]
pub struct Key(pub Vec<u8>);

impl Key {
    fn process_id(&self) -> u32 {
        self.0.first_chunk().map_or(0, |bytes| u32::from_be_bytes(*bytes))
    }

    /// Sends one cancel request, and waits until it has been handled.
    pub async fn cancel(&self, port: u16) {
        let mut raw = Raw::open(port).await;
        let request = [&[0, 0, 0, 16, 4, 210, 22, 46][..], &self.0].concat();
        raw.send(&request).await;
        raw.until_closed().await;
    }

    /// Waits until the session's statement waits: at the server for a lock or a time, or in the gateway for anything.
    pub async fn until_it_waits(&self, target: &Target<'_>) {
        let began = Instant::now();
        while began.elapsed() < ARRIVES_WITHIN && !self.waits(target).await {
            tokio::time::sleep(Duration::from_millis(3)).await; // the condition has no signal
        }
    }

    async fn waits(&self, target: &Target<'_>) -> bool {
        let Some(console) = target.console else {
            return waits_at_server(target, &self.process_id().to_string()).await;
        };
        let Some(client) = self.row(console).await else { return false };
        let [state, backend] = [7, 9].map(|column| client[column].as_deref().unwrap_or_default());
        match backend {
            "" => !IDLE.iter().any(|idle| state.starts_with(idle)),
            backend => waits_at_server(target, backend).await,
        }
    }

    /// Whether the gateway still has the session. A backend of PostgreSQL closes its client's connection last.
    pub async fn is_there(&self, target: &Target<'_>) -> bool {
        match target.console {
            Some(console) => self.row(console).await.is_some(),
            None => false,
        }
    }

    /// The session's row on the gateway's console.
    async fn row(&self, console: &Client) -> Option<Vec<Option<String>>> {
        let own = self.process_id().to_string();
        let clients = rows(console, "show clients").await.expect("the console answers");
        clients.into_iter().find(|row| row[0].as_ref() == Some(&own))
    }
}

async fn waits_at_server(target: &Target<'_>, process_id: &str) -> bool {
    let waits = format!(
        "select from pg_stat_activity where pid = {process_id} and state = 'active' and wait_event_type in ('Lock', 'Timeout')"
    );
    // The program may have locked what this query needs.
    rows(target.direct, &waits).await.is_ok_and(|rows| !rows.is_empty())
}

/// The status of the transaction after an answer that says that the statement was cancelled.
pub fn cancelled(received: &Received) -> Option<u8> {
    let is_cancelled = |field: Option<String>| field.is_some_and(|code| code == "57014");
    let is_one =
        received.messages.iter().any(|message| message.tag == b'E' && is_cancelled(message.field(b'C')));
    let last = received.messages.last().filter(|message| is_one && message.tag == b'Z')?;
    last.body.first().copied()
}

/// Pauses a database. False if the pause takes long, because a session has a connection of its own.
pub async fn pause(console: &Client, database: &str) -> bool {
    let pause = format!("pause {database}");
    let pausing = console.batch_execute(&pause);
    let mut pausing = std::pin::pin!(pausing);
    match tokio::time::timeout(ARRIVES_WITHIN, &mut pausing).await {
        Ok(paused) => paused.is_ok(),
        Err(_) => {
            console.cancel_token().cancel_query(NoTls).await.expect("the console listens");
            let _ = pausing.await; // a cancelled pause is undone
            false
        }
    }
}
