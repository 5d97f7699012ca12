//! The webhooks of a simulated gateway: signed, late, lost or sent twice, and repeated until the service takes them.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::Semaphore;
use uuid::Uuid;

use super::behaviour::{Behaviour, hits};
use super::book::Entry;
use crate::gateway::{Decision, News};
use crate::http::Client;
use crate::signature;

/// The time until a webhook is sent again, and the most tries.
const AGAIN: Duration = Duration::from_secs(1);
const TRIES: u32 = 60;
const LIMIT: Duration = Duration::from_secs(10);

/// The most webhooks that wait or are under way. Others are never sent.
const MAX: usize = 10_000;

/// Sends the webhooks of one simulated gateway.
pub struct Webhooks {
    name: &'static str,
    secret: String,
    client: Client,
    permits: Semaphore,
}

impl Webhooks {
    /// Webhooks of the gateway with this name, signed with this secret.
    pub fn new(name: &'static str, secret: String) -> Self {
        Webhooks { name, secret, client: Client::default(), permits: Semaphore::new(MAX) }
    }

    /// Sends the webhook of an entry to the service, according to the behaviour.
    pub async fn send(self: Arc<Self>, entry: Entry, behaviour: Behaviour) {
        if behaviour.webhooks_url.is_empty() || hits(behaviour.lost_webhooks) {
            return;
        }
        let Ok(_permit) = self.permits.try_acquire() else { return };
        tokio::time::sleep(Duration::from_millis(behaviour.webhook_delay_ms)).await;
        let news = News {
            event: Uuid::now_v7().to_string(),
            reference: entry.order.reference,
            decision: Decision { outcome: entry.outcome, code: entry.code },
        };
        let body = serde_json::to_vec(&news).expect("a webhook can be written as JSON");
        let url = format!("{}/v1/webhooks/{}", behaviour.webhooks_url.trim_end_matches('/'), self.name);
        for _ in 0..=u32::from(hits(behaviour.duplicates)) {
            for _ in 0..TRIES {
                let signature = signature::sign(&self.secret, Timestamp::now().as_second(), &body);
                let headers = [(signature::HEADER, signature.as_str())];
                if let Ok((200..=299, _)) = self.client.post(&url, &headers, body.clone(), LIMIT).await {
                    break;
                }
                tokio::time::sleep(AGAIN).await;
            }
        }
    }
}
