//! A payment gateway over HTTP: requests and answers. This file does not decide the meaning of an answer for a payment.

use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::http::{Client, Unanswered};
use crate::machine::{Kind, Outcome};
use crate::routing::Mode;
use crate::signature::{self, Distrust};

/// An order to a gateway. The gateway executes each reference only once.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Order {
    /// The attempt.
    pub reference: Uuid,
    /// The attempt that holds the money. An order to hold money names itself.
    pub authorization: Uuid,
    /// The kind of the order.
    pub kind: Kind,
    /// The amount.
    pub amount: i64,
    /// The currency.
    pub currency: String,
    /// The mode of payment.
    pub mode: Mode,
    /// The gateway refuses the order after this time.
    pub valid_until: Timestamp,
}

/// The decision of a gateway about an order.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Decision {
    /// The outcome.
    pub outcome: Outcome,
    /// The reason of a refusal.
    pub code: Option<String>,
}

/// The answer to an order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Answer {
    /// The gateway has decided.
    Decided(Decision),
    /// The gateway never received the order.
    NotSent(String),
    /// The outcome is unknown: the gateway may have executed the order.
    Unknown(String),
}

/// The answer to a query about a reference.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Status {
    /// The gateway has decided.
    Decided(Decision),
    /// The gateway is working on the order.
    Pending,
    /// The gateway does not have the order, and would refuse it from now on, by its own clock.
    NeverWill,
    /// The gateway does not have the order yet.
    NotYet,
    /// The gateway does not answer.
    Silent(String),
}

/// The JSON of an answer.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Report {
    /// The outcome. `None` while the gateway is working on the order, or if it does not have the reference.
    pub outcome: Option<Outcome>,
    /// The reason of a refusal.
    pub code: Option<String>,
    /// Whether the gateway has the reference.
    pub known: bool,
    /// The gateway's clock.
    pub now: Timestamp,
}

/// The JSON of a webhook.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct News {
    /// The gateway's ID of the message. A repeated message has the same ID.
    pub event: String,
    /// The attempt.
    pub reference: Uuid,
    /// The outcome of the attempt.
    #[serde(flatten)]
    pub decision: Decision,
}

/// A payment gateway.
pub struct Gateway {
    /// Its name.
    pub name: &'static str,
    /// Its preferred mode of payment.
    pub own_mode: Mode,
    url: String,
    secret: String,
    client: Client,
    limit: Duration,
}

impl Gateway {
    /// The names of the three gateways, each with its preferred mode of payment.
    pub const ALL: [(&str, Mode); 3] =
        [("lotus", Mode::Upi), ("banyan", Mode::Card), ("peepal", Mode::Wallet)];

    /// The gateway with this name, at this address.
    pub fn new(
        (name, own_mode): (&'static str, Mode),
        url: &str,
        secret: &str,
        client: Client,
        limit: Duration,
    ) -> Self {
        let url = format!("{}/{name}", url.trim_end_matches('/'));
        Self { name, own_mode, url, secret: secret.to_owned(), client, limit }
    }

    /// Sends an order.
    pub async fn order(&self, order: &Order) -> Answer {
        let body = serde_json::to_vec(order).expect("an order can be written as JSON");
        let url = format!("{}/operations", self.url);
        match self.client.post(&url, &[], body, self.limit).await {
            Ok((200, body)) => match serde_json::from_slice::<Report>(&body) {
                Ok(Report { outcome: Some(outcome), code, .. }) => {
                    Answer::Decided(Decision { outcome, code })
                }
                Ok(_) => Answer::Unknown("the gateway is still working on it".to_owned()),
                Err(error) => Answer::Unknown(format!("invalid answer: {error}")),
            },
            Ok((status, _)) => Answer::Unknown(format!("status {status}")),
            Err(Unanswered::NotSent(error)) => Answer::NotSent(error),
            Err(Unanswered::Lost(error)) => Answer::Unknown(error),
        }
    }

    /// Asks for the outcome of a reference.
    pub async fn status(&self, reference: Uuid, valid_until: Timestamp) -> Status {
        let url = format!("{}/operations/{reference}", self.url);
        let body = match self.client.get(&url, self.limit).await {
            Ok((200, body)) => body,
            Ok((status, _)) => return Status::Silent(format!("status {status}")),
            Err(Unanswered::NotSent(error) | Unanswered::Lost(error)) => return Status::Silent(error),
        };
        match serde_json::from_slice::<Report>(&body) {
            Ok(Report { outcome: Some(outcome), code, .. }) => Status::Decided(Decision { outcome, code }),
            Ok(Report { known: true, .. }) => Status::Pending,
            Ok(Report { now, .. }) if now > valid_until => Status::NeverWill,
            Ok(_) => Status::NotYet,
            Err(error) => Status::Silent(format!("invalid answer: {error}")),
        }
    }

    /// Checks that a webhook comes from this gateway.
    pub fn verify(&self, header: &str, body: &[u8], now: Timestamp) -> Result<(), Distrust> {
        signature::verify(&self.secret, now.as_second(), header, body)
    }
}
