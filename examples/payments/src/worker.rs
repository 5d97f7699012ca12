//! What nobody waits for: attempts, webhooks and notifications that are due. Any number of workers may run; each claims
//! what it takes, and all they do may be done twice.

use std::collections::BTreeSet;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use jiff::civil::Date;
use tokio::task::JoinSet;

use crate::database::Error;
use crate::flow::Payments;
use crate::http::Client;
use crate::notifications::Notification;
use crate::records::Attempt;
use crate::signature;

const CLAIM_ATTEMPTS: &str = include_str!("../sql/claim_attempts.sql");

/// Taken at once.
const MOST: i64 = 50;
/// Between two looks when nothing was due.
const REST: Duration = Duration::from_millis(500);
/// A dependent service may take so long; the claim lasts longer.
const DELIVERY_LIMIT: Duration = Duration::from_secs(10);

/// A worker.
pub struct Worker {
    payments: Arc<Payments>,
    client: Client,
    reconcile_after: Vec<f64>,
}

impl Worker {
    /// That looks at unfinished attempts on this ladder.
    pub fn new(payments: Arc<Payments>, client: Client, reconcile_after: &[Duration]) -> Self {
        let reconcile_after = reconcile_after.iter().map(Duration::as_secs_f64).collect();
        Self { payments, client, reconcile_after }
    }

    /// Works until `stop` is ready; what was taken is finished.
    pub async fn run(self, stop: impl Future<Output = ()>) {
        let worker = Arc::new(self);
        let mut stop = std::pin::pin!(stop);
        loop {
            let found = match worker.clone().look().await {
                Ok(found) => found,
                Err(error) => {
                    tracing::warn!(%error, "a worker could not look for work");
                    0
                }
            };
            let rest = if found == 0 { REST } else { Duration::ZERO };
            tokio::select! {
                () = tokio::time::sleep(rest) => {}
                () = &mut stop => return,
            }
        }
    }

    /// One look at everything; how much was due.
    pub async fn look(self: Arc<Self>) -> Result<usize, Error> {
        let attempts = self.attempts().await?;
        let webhooks = self.webhooks().await?;
        let notifications = self.notifications().await?;
        Ok(attempts + webhooks + notifications)
    }

    async fn attempts(self: &Arc<Self>) -> Result<usize, Error> {
        let rows = self.payments.database.rows(CLAIM_ATTEMPTS, &[&self.reconcile_after, &MOST]).await?;
        let mut tasks = JoinSet::new();
        for row in &rows {
            let (payments, attempt) = (self.payments.clone(), Attempt::try_from(row)?);
            tasks.spawn(async move { payments.bring_home(attempt).await });
        }
        let mut settled = Vec::new();
        for outcome in tasks.join_all().await {
            match outcome {
                Ok(attempt) => settled.extend(attempt),
                Err(error) => tracing::warn!(%error, "an attempt is left for the next look"),
            }
        }
        // Whether they were added to their days nobody knows: each day is recounted once for all of them.
        let day =
            |attempt: &Attempt| (attempt.merchant.clone(), attempt.settled_on, attempt.currency.clone());
        let days: BTreeSet<(String, Option<Date>, String)> = settled.iter().map(day).collect();
        for (merchant, day, currency) in days {
            if let Some(day) = day {
                self.payments.recount(&merchant, day, &currency).await?;
            }
        }
        for attempt in &settled {
            self.payments.finish(attempt).await?;
        }
        Ok(rows.len())
    }

    async fn webhooks(&self) -> Result<usize, Error> {
        let webhooks = self.payments.claim_webhooks(MOST).await?;
        let found = webhooks.len();
        let mut tasks = JoinSet::new();
        for webhook in webhooks {
            let payments = self.payments.clone();
            tasks.spawn(async move { payments.heed(&webhook).await });
        }
        for outcome in tasks.join_all().await {
            if let Err(error) = outcome {
                tracing::warn!(%error, "a webhook is left for the next look");
            }
        }
        Ok(found)
    }

    async fn notifications(self: &Arc<Self>) -> Result<usize, Error> {
        let Payments { database, notifications, .. } = &*self.payments;
        let claimed = notifications.claim(database).await?;
        let found = claimed.len();
        let mut tasks = JoinSet::new();
        for notification in claimed {
            let worker = self.clone();
            tasks.spawn(async move { worker.deliver(notification).await });
        }
        for outcome in tasks.join_all().await {
            if let Err(error) = outcome {
                tracing::warn!(%error, "a notification is left for the next look");
            }
        }
        Ok(found)
    }

    async fn deliver(&self, notification: Notification) -> Result<(), Error> {
        let Payments { database, notifications, .. } = &*self.payments;
        let (endpoint, body) = (&notification.endpoint, &notification.body);
        let failure = if endpoint.active {
            let signature = signature::sign(&endpoint.secret, Timestamp::now().as_second(), body.as_bytes());
            let headers = [(signature::HEADER, signature.as_str())];
            match self.client.post(&endpoint.url, &headers, body.clone(), DELIVERY_LIMIT).await {
                Ok((200..=299, _)) => None,
                Ok((status, _)) => Some(format!("answered {status}")),
                Err(unanswered) => Some(unanswered.to_string()),
            }
        } else {
            Some("the endpoint is switched off".to_owned())
        };
        notifications.told(database, &notification, failure.as_deref()).await
    }
}
