//! The backends that hold rows for which units wait. Only the server knows them, so it is asked, with the log-in of the
//! pool whose unit waits.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use hotrow_core::limits;
use hotrow_core::normalise;
use serde::Serialize;

use super::Values;
use crate::pool::Pool;
use crate::server::upstream::{self, Rows, Upstream};
use crate::shared::Shared;

/// A backend that holds a row.
#[derive(Debug, Serialize)]
pub struct Blocker {
    /// Its process ID. 0 is a prepared transaction.
    pub pid: u32,
    /// What it does, if the role may know it.
    pub state: Option<String>,
    /// The age of its transaction.
    pub transaction_seconds: Option<u64>,
    /// Its last query, with `?` in place of values that are not shown.
    pub query: String,
}

/// Number of characters of a query that are shown.
const QUERY_CHARS_MAX: usize = 200;

/// The blockers by session, of sessions whose units wait for locks. Without an answer of the server there are none.
pub async fn find(
    shared: &Shared,
    sessions: Vec<(Arc<Pool>, u64)>,
    values: Values,
) -> HashMap<u64, Vec<Blocker>> {
    let mut found = HashMap::<u64, Vec<Blocker>>::new();
    if sessions.is_empty() {
        return found;
    }
    let controls = shared.controls.all();
    let mut pools = HashMap::<u64, (Arc<Pool>, HashMap<u32, u64>)>::new();
    for (pool, session) in sessions {
        let control = controls.iter().find(|control| control.mailbox.session == session);
        if let Some(backend) = control.and_then(|control| control.backend()) {
            let id = pool.id;
            pools.entry(id).or_insert_with(|| (pool, HashMap::new())).1.insert(backend, session);
        }
    }
    let patience = Duration::from_millis(limits::SHOWN_BLOCKERS_WAIT_MS);
    for (pool, backends) in pools.into_values() {
        let rows = match tokio::time::timeout(patience, ask(&pool, backends.keys())).await {
            Ok(Ok(rows)) => rows,
            Ok(Err(error)) => {
                tracing::debug!(%error, "the server could not be asked who holds a row");
                continue;
            }
            Err(_) => continue,
        };
        for row in rows {
            let mut row = row.into_iter();
            let (waits, blocks) = (number(row.next()), number(row.next()));
            if let (Some(session), Some(pid)) = (waits.and_then(|pid| backends.get(&pid)), blocks) {
                found.entry(*session).or_default().push(Blocker::new(pid, row, values));
            }
        }
    }
    found
}

/// Asks on a connection of its own: sessions that wait for the row may have all others.
async fn ask(pool: &Pool, backends: impl Iterator<Item = &u32>) -> Result<Rows, upstream::Error> {
    let Some(_database_use) = pool.database_state().try_enter() else {
        return Ok(Rows::new()); // an operator has paused the database
    };
    let config = pool.config().clone();
    let mut parameters = pool.context.parameters.clone();
    parameters.push(("application_name".to_owned(), "hotrow console".to_owned()));
    let mut upstream = Upstream::connect(&config.upstream, &parameters, &pool.context.login, false).await?;
    let backends: Vec<String> = backends.map(ToString::to_string).collect();
    let backends = format!("{{{}}}", backends.join(","));
    upstream.query(include_str!("../../../sql/blockers.sql"), &[&backends]).await
}

fn number<T: std::str::FromStr>(value: Option<Option<String>>) -> Option<T> {
    value??.parse().ok()
}

impl Blocker {
    fn new(pid: u32, mut row: impl Iterator<Item = Option<String>>, values: Values) -> Self {
        let (state, transaction_seconds) = (row.next().flatten(), number(row.next()));
        let query = row.next().flatten().unwrap_or_default();
        let query = match values {
            Values::Hidden => normalise::without_values(&query, QUERY_CHARS_MAX),
            Values::Shown => query.split_whitespace().collect::<Vec<_>>().join(" "),
        };
        Blocker { pid, state, transaction_seconds, query: query.chars().take(QUERY_CHARS_MAX).collect() }
    }
}

impl fmt::Display for Blocker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.pid == 0 {
            return f.write_str("a prepared transaction");
        }
        write!(f, "pid {}", self.pid)?;
        if let Some(state) = &self.state {
            write!(f, ", {state}")?;
        }
        if let Some(seconds) = self.transaction_seconds {
            write!(f, ", in its transaction for {seconds} s")?;
        }
        if self.query.is_empty() { Ok(()) } else { write!(f, ": {}", self.query) }
    }
}
