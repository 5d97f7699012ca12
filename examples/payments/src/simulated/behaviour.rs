//! How a simulated gateway behaves: set at the start and at any time, rolled for each order.

use serde::{Deserialize, Serialize};

/// Shares are of 1; times are in milliseconds.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Behaviour {
    /// Answers nothing but 503, and does nothing.
    pub down: bool,
    /// Takes at least so long.
    pub latency_ms: u64,
    /// And up to so much longer.
    pub jitter_ms: u64,
    /// Refuses this share.
    pub declines: f64,
    /// Forgets this share without doing it, and without a word.
    pub forgets: f64,
    /// Does this share without a word.
    pub silent: f64,
    /// Where webhooks go: the service's address, or nowhere.
    pub webhooks_url: String,
    /// They come so much later than the answer.
    pub webhook_delay_ms: u64,
    /// This share comes twice.
    pub duplicates: f64,
    /// This share never comes.
    pub lost_webhooks: f64,
}

impl Default for Behaviour {
    fn default() -> Self {
        Self {
            down: false,
            latency_ms: 0,
            jitter_ms: 0,
            declines: 0.0,
            forgets: 0.0,
            silent: 0.0,
            webhooks_url: String::new(),
            webhook_delay_ms: 0,
            duplicates: 0.0,
            lost_webhooks: 0.0,
        }
    }
}

impl std::str::FromStr for Behaviour {
    type Err = serde_json::Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        serde_json::from_str(text)
    }
}

impl Behaviour {
    /// How long one order takes.
    pub fn latency_ms(&self) -> u64 {
        self.latency_ms + fastrand::u64(0..=self.jitter_ms)
    }
}

/// Whether a share of this size includes the one at hand.
pub fn hits(share: f64) -> bool {
    fastrand::f64() < share
}
