//! Asks the server who holds the rows for which units wait. Readers of the console share one connection and its answers.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hotrow_connect::upstream::{self, Rows, Upstream};
use hotrow_core::limits;
use tokio::sync::Mutex;

use crate::pool::Pool;

/// The latest answers by pool. The lock is held while the server is asked, so the gateway has at most one connection for
/// these questions, whatever the number of readers is.
#[derive(Debug, Default)]
pub struct LockHolders(Mutex<HashMap<u64, Answer>>);

#[derive(Debug)]
struct Answer {
    at: Instant,
    rows: Arc<Rows>,
}

impl LockHolders {
    /// The rows of `blockers.sql` about backends of this pool that wait. Without an answer of the server until `deadline`
    /// there are none.
    pub async fn of(
        &self,
        pool: &Pool,
        backends: impl Iterator<Item = &u32>,
        deadline: tokio::time::Instant,
    ) -> Arc<Rows> {
        let Ok(mut answers) = tokio::time::timeout_at(deadline, self.0.lock()).await else {
            return Arc::default();
        };
        let age = Duration::from_millis(limits::SHOWN_BLOCKERS_AGE_MS);
        answers.retain(|_, answer| answer.at.elapsed() < age);
        if let Some(answer) = answers.get(&pool.id) {
            return answer.rows.clone();
        }
        let rows = match tokio::time::timeout_at(deadline, ask(pool, backends)).await {
            Ok(Ok(rows)) => rows,
            Ok(Err(error)) => {
                tracing::debug!(%error, "the server could not be asked who holds a row");
                Rows::new()
            }
            Err(_) => Rows::new(),
        };
        // A server that fails is not asked again at once either.
        let answer = Answer { at: Instant::now(), rows: Arc::new(rows) };
        answers.entry(pool.id).insert_entry(answer).get().rows.clone()
    }
}

/// Asks on a connection of its own: sessions that wait for the row may have all others.
async fn ask(pool: &Pool, backends: impl Iterator<Item = &u32>) -> Result<Rows, upstream::Error> {
    let Some(_database_use) = pool.database_state().try_enter() else {
        return Ok(Rows::new()); // an operator has paused the database
    };
    let config = pool.config().clone();
    let mut parameters = pool.context.parameters.clone();
    parameters.push(("application_name".to_owned(), "hotrow console".to_owned()));
    parameters.push(("statement_timeout".to_owned(), limits::SHOWN_BLOCKERS_WAIT_MS.to_string()));
    let mut upstream = Upstream::connect(&config.upstream, &parameters, &pool.context.login, false).await?;
    let backends: Vec<String> = backends.map(ToString::to_string).collect();
    let backends = format!("{{{}}}", backends.join(","));
    upstream.query(include_str!("../../sql/blockers.sql"), &[&backends]).await
}
