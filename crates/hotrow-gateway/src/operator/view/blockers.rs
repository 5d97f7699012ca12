//! The backends that hold rows for which units wait. Only the server knows them, so it is asked, with the login of the
//! pool whose unit waits.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::Arc;

use hotrow_core::{limits, normalise};
use serde::Serialize;
use tokio::time::{Duration, Instant};

use super::Values;
use crate::pool::Pool;
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

/// The blockers by session, of sessions whose units wait for locks. Those that the server has not told within
/// `SHOWN_BLOCKERS_WAIT_MS`, for all pools together, are missing: a server that does not answer must not hold up the view.
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
    let deadline = Instant::now() + Duration::from_millis(limits::SHOWN_BLOCKERS_WAIT_MS);
    for (pool, backends) in pools.into_values() {
        let rows = shared.directory.lock_holders.of(&pool, backends.keys(), deadline).await;
        for row in rows.iter() {
            let mut row = row.iter().cloned();
            let (waits, blocks) = (number(row.next()), number(row.next()));
            if let (Some(session), Some(pid)) = (waits.and_then(|pid| backends.get(&pid)), blocks) {
                found.entry(*session).or_default().push(Blocker::new(pid, row, values));
            }
        }
    }
    found
}

/// Each backend once. Those that wait for their clients come first, then the oldest transactions: units that wait for the same
/// row hold up each other too, but are not the cause.
pub fn once(mut blockers: Vec<Blocker>) -> Vec<Blocker> {
    blockers.sort_by_key(|blocker| {
        let is_active = blocker.state.as_deref() == Some("active");
        (is_active, Reverse(blocker.transaction_seconds), blocker.pid)
    });
    let mut seen = HashSet::new();
    blockers.retain(|blocker| seen.insert(blocker.pid));
    blockers
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
