//! Work in the background: attempts, webhooks and notifications that are due. Any number of workers can run. Each claims its
//! work, and all work may be done twice. No task waits for another one: a payment gateway or a dependent service that hangs
//! delays only its own orders or notifications.
//!
//! | file | contents |
//! |---|---|
//! | `attempts` | reconciliation: the outcomes of attempts that are not finished |
//! | `dependents` | notifications, to each endpoint at its own pace |

mod attempts;
mod dependents;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::database::Error;
use crate::flow::Payments;
use crate::http::Client;

/// The number of webhooks that are claimed at once.
const WEBHOOKS: i64 = 50;
/// The time between two looks if nothing was due.
const REST: Duration = Duration::from_millis(500);

/// A worker.
pub struct Worker {
    payments: Arc<Payments>,
    client: Client,
    reconcile_after: Vec<f64>,
}

/// Whether the worker was asked to end.
#[derive(Clone)]
struct End(watch::Receiver<bool>);

impl End {
    fn has_come(&self) -> bool {
        *self.0.borrow()
    }

    /// Rests, unless the end comes first.
    async fn rest(&mut self) {
        tokio::select! {
            () = tokio::time::sleep(REST) => {}
            // An error means that the sender is gone.
            _ = self.0.wait_for(|asked| *asked) => {}
        }
    }
}

impl Worker {
    /// A worker that looks at unfinished attempts after these times.
    pub fn new(payments: Arc<Payments>, client: Client, reconcile_after: &[Duration]) -> Self {
        let reconcile_after = reconcile_after.iter().map(Duration::as_secs_f64).collect();
        Self { payments, client, reconcile_after }
    }

    /// Works until `stop` is ready, and finishes the work that it has claimed.
    pub async fn run(self, stop: impl Future<Output = ()>) {
        let worker = Arc::new(self);
        let (asked, end) = watch::channel(false);
        let end = End(end);
        let stop = async {
            stop.await;
            asked.send_replace(true);
        };
        tokio::join!(
            stop,
            over_and_over("undecided attempts", end.clone(), async || worker.undecided().await),
            over_and_over("decided attempts", end.clone(), async || worker.decided().await),
            over_and_over("webhooks", end.clone(), async || worker.webhooks().await),
            worker.dependents(end),
        );
    }

    async fn webhooks(&self) -> Result<usize, Error> {
        let webhooks = self.payments.claim_webhooks(WEBHOOKS).await?;
        let found = webhooks.len();
        let payments = &self.payments;
        let heed = |webhook| {
            let payments = payments.clone();
            async move { payments.heed(&webhook).await }
        };
        at_once("a webhook", webhooks.into_iter().map(heed)).await;
        Ok(found)
    }
}

/// Does all work at the same time and returns the results. Work that fails was claimed, and is left for a later look.
async fn at_once<T: Send + 'static>(
    what: &str,
    work: impl Iterator<Item = impl Future<Output = Result<T, Error>> + Send + 'static>,
) -> Vec<T> {
    let mut done = Vec::new();
    for outcome in work.collect::<JoinSet<_>>().join_all().await {
        match outcome {
            Ok(value) => done.push(value),
            Err(error) => tracing::warn!(%error, "{what} is left for a later look"),
        }
    }
    done
}

/// Looks for work until the end, and again at once if there was some.
async fn over_and_over(what: &str, mut end: End, look: impl AsyncFn() -> Result<usize, Error>) {
    while !end.has_come() {
        let found = look().await.unwrap_or_else(|error| {
            tracing::warn!(%error, what, "a worker could not look for work");
            0
        });
        if found == 0 {
            end.rest().await;
        }
    }
}
