//! Notifications: each endpoint gets them at its own pace. One that hangs delays only its own notifications.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::task::JoinSet;

use super::{End, Worker, at_once};
use crate::database::Error;
use crate::notifications::Notification;
use crate::signature;

/// The time limit for an answer of a dependent service. The claim lasts longer.
const DELIVERY_LIMIT: Duration = Duration::from_secs(10);

impl Worker {
    /// Sends notifications to all endpoints until the end.
    pub(super) async fn dependents(self: &Arc<Self>, mut end: End) {
        let mut notifying = JoinSet::new();
        let mut busy = HashSet::new();
        while !end.has_come() {
            while let Some(idle) = notifying.try_join_next() {
                busy.remove(&idle.expect("a task that sends notifications does not panic"));
            }
            match self.payments.notifications.endpoints().await {
                Ok(endpoints) => {
                    for endpoint in endpoints {
                        if busy.insert(endpoint.clone()) {
                            notifying.spawn(self.clone().notify(endpoint, end.clone()));
                        }
                    }
                }
                Err(error) => tracing::warn!(%error, "a worker could not look for endpoints"),
            }
            end.rest().await;
        }
        notifying.join_all().await;
    }

    /// Sends all due notifications to one endpoint, and returns its name.
    async fn notify(self: Arc<Self>, endpoint: String, end: End) -> String {
        while !end.has_come() {
            let claimed = match self.payments.notifications.claim(&endpoint).await {
                Ok(claimed) => claimed,
                Err(error) => {
                    tracing::warn!(%error, endpoint, "a worker could not look for notifications");
                    break;
                }
            };
            if claimed.is_empty() {
                break;
            }
            let deliver = |notification| {
                let worker = self.clone();
                async move { worker.deliver(notification).await }
            };
            at_once(&format!("a notification to {endpoint}"), claimed.into_iter().map(deliver)).await;
        }
        endpoint
    }

    async fn deliver(&self, notification: Notification) -> Result<(), Error> {
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
        self.payments.notifications.record(&notification, failure.as_deref()).await
    }
}
