//! The behaviour of a simulated gateway: set at the start and at any time, decided at random for each order.

use serde::{Deserialize, Serialize};

/// Shares are of 1; times are in milliseconds.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Behaviour {
    /// Whether it only answers 503 and does nothing.
    pub down: bool,
    /// The shortest time that an order takes.
    pub latency_ms: u64,
    /// The longest time that is added at random.
    pub jitter_ms: u64,
    /// The share of orders that it refuses.
    pub declines: f64,
    /// The share of orders that it neither carries out nor answers.
    pub forgets: f64,
    /// The share of orders that it carries out and does not answer.
    pub silent: f64,
    /// The service's address, for webhooks; without it none are sent.
    pub webhooks_url: String,
    /// The time from the answer to the webhook.
    pub webhook_delay_ms: u64,
    /// The share of webhooks that it sends twice.
    pub duplicates: f64,
    /// The share of webhooks that it never sends.
    pub lost_webhooks: f64,
}

impl std::str::FromStr for Behaviour {
    type Err = serde_json::Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        serde_json::from_str(text)
    }
}

impl Behaviour {
    /// The time that one order takes.
    pub fn latency_ms(&self) -> u64 {
        self.latency_ms + fastrand::u64(0..=self.jitter_ms)
    }
}

/// Whether this order or webhook belongs to a share of this size, at random.
pub fn hits(share: f64) -> bool {
    fastrand::f64() < share
}
