//! Webhooks of payment gateways: kept as they came, answered, then worked on.

use uuid::Uuid;

use super::Payments;
use crate::database::Error;
use crate::gateway::News;
use crate::records::get;

const INSERT_WEBHOOK: &str = include_str!("../../sql/insert_webhook.sql");
const FINISH_WEBHOOK: &str = include_str!("../../sql/finish_webhook.sql");
const CLAIM_WEBHOOKS: &str = include_str!("../../sql/claim_webhooks.sql");

/// A webhook that was verified.
#[derive(Clone, Debug)]
pub struct Webhook {
    /// The name of its gateway.
    pub gateway: String,
    /// The gateway's name for it.
    pub event: String,
    /// Its text.
    pub body: Vec<u8>,
}

impl Payments {
    /// Keeps a webhook. False if it came before.
    pub async fn keep(&self, webhook: &Webhook) -> Result<bool, Error> {
        let Webhook { gateway, event, body } = webhook;
        Ok(self.database.execute(INSERT_WEBHOOK, &[gateway, event, body]).await? == 1)
    }

    /// Claims webhooks that no program has worked on.
    pub async fn claim_webhooks(&self, most: i64) -> Result<Vec<Webhook>, Error> {
        let rows = self.database.rows(CLAIM_WEBHOOKS, &[&most]).await?;
        let webhook = |row| {
            Ok(Webhook { gateway: get(row, "gateway")?, event: get(row, "event")?, body: get(row, "body")? })
        };
        rows.iter().map(webhook).collect()
    }

    /// Settles the attempt that a webhook is about.
    pub async fn heed(&self, webhook: &Webhook) -> Result<(), Error> {
        let Webhook { gateway, event, body } = webhook;
        let news = self.gateway(gateway).and_then(|_| serde_json::from_slice::<News>(body).ok());
        match news {
            Some(news) => match self.attempt(news.reference).await? {
                Some(attempt) if attempt.state.outcome() == Some(news.decision.outcome) => {}
                Some(attempt) if attempt.gateway == *gateway => {
                    self.settle(attempt, news.decision).await?;
                }
                Some(_) => warn(news.reference, gateway, "belongs to another gateway"),
                None => warn(news.reference, gateway, "is not known"),
            },
            None => tracing::warn!(gateway, event, "a webhook cannot be parsed"),
        }
        self.database.execute(FINISH_WEBHOOK, &[gateway, event]).await.map(drop)
    }
}

fn warn(reference: Uuid, gateway: &str, what: &str) {
    tracing::warn!(%reference, gateway, "a webhook is about an attempt that {what}");
}
