//! A payment gateway over HTTP: what it is asked, and its answers. Never decides what an answer means for a payment.

use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::http::{Client, Unanswered};
use crate::machine::{Kind, Outcome};
use crate::routing::Mode;
use crate::signature::{self, Distrust};

/// An order, as it is sent. The gateway does the same reference only once.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Order {
    /// The attempt.
    pub reference: Uuid,
    /// The attempt that holds the money; this one if it asks to.
    pub authorization: Uuid,
    /// What is asked.
    pub kind: Kind,
    /// How much.
    pub amount: i64,
    /// The currency.
    pub currency: String,
    /// How the customer pays.
    pub mode: Mode,
    /// The gateway refuses it after this time.
    pub valid_until: Timestamp,
}

/// What a gateway has done, in its own words.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Decision {
    /// The outcome for us.
    pub outcome: Outcome,
    /// The reason of a refusal.
    pub code: Option<String>,
}

/// What came back.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Answer {
    /// It has decided.
    Decided(Decision),
    /// It never got the order.
    NotSent(String),
    /// The outcome is unknown: it may have done it.
    Unknown(String),
}

/// What it says when asked about a reference.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Status {
    /// It has decided.
    Decided(Decision),
    /// It works on it.
    Pending,
    /// It has never heard of it, and by its own clock it would refuse it from now on.
    NeverWill,
    /// It has never heard of it yet.
    NotYet,
    /// It says nothing.
    Silent(String),
}

/// An answer, as it comes.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Report {
    /// The outcome; none while the gateway works on it, or if it does not know the reference.
    pub outcome: Option<Outcome>,
    /// The reason of a refusal.
    pub code: Option<String>,
    /// Whether the gateway knows the reference.
    pub known: bool,
    /// The gateway's clock.
    pub now: Timestamp,
}

/// A webhook, as it comes.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct News {
    /// The gateway's name for this message: the same when it is sent again.
    pub event: String,
    /// The attempt that it is about.
    pub reference: Uuid,
    /// What became of it.
    #[serde(flatten)]
    pub decision: Decision,
}

/// A payment gateway.
pub struct Gateway {
    /// Its name.
    pub name: &'static str,
    /// The mode of payment it is best at.
    pub own_mode: Mode,
    url: String,
    secret: String,
    client: Client,
    limit: Duration,
}

impl Gateway {
    /// The names of the three, with the mode of payment that each is best at.
    pub const ALL: [(&str, Mode); 3] =
        [("lotus", Mode::Upi), ("banyan", Mode::Card), ("peepal", Mode::Wallet)];

    /// The one of this name, at this address.
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

    /// Asks it to carry out an order.
    pub async fn order(&self, order: &Order) -> Answer {
        let body = serde_json::to_vec(order).expect("an order can be written as JSON");
        let url = format!("{}/operations", self.url);
        match self.client.post(&url, &[], body, self.limit).await {
            Ok((200, body)) => match serde_json::from_slice::<Report>(&body) {
                Ok(Report { outcome: Some(outcome), code, .. }) => {
                    Answer::Decided(Decision { outcome, code })
                }
                Ok(_) => Answer::Unknown("it works on it".to_owned()),
                Err(error) => Answer::Unknown(format!("it answers nonsense: {error}")),
            },
            Ok((status, _)) => Answer::Unknown(format!("it answers {status}")),
            Err(Unanswered::NotSent(error)) => Answer::NotSent(error),
            Err(Unanswered::Lost(error)) => Answer::Unknown(error),
        }
    }

    /// Asks what became of a reference.
    pub async fn status(&self, reference: Uuid, valid_until: Timestamp) -> Status {
        let url = format!("{}/operations/{reference}", self.url);
        let body = match self.client.get(&url, self.limit).await {
            Ok((200, body)) => body,
            Ok((status, _)) => return Status::Silent(format!("it answers {status}")),
            Err(Unanswered::NotSent(error) | Unanswered::Lost(error)) => return Status::Silent(error),
        };
        match serde_json::from_slice::<Report>(&body) {
            Ok(Report { outcome: Some(outcome), code, .. }) => Status::Decided(Decision { outcome, code }),
            Ok(Report { known: true, .. }) => Status::Pending,
            Ok(Report { now, .. }) if now > valid_until => Status::NeverWill,
            Ok(_) => Status::NotYet,
            Err(error) => Status::Silent(format!("it answers nonsense: {error}")),
        }
    }

    /// Whether a webhook is its own.
    pub fn verify(&self, header: &str, body: &[u8], now: Timestamp) -> Result<(), Distrust> {
        signature::verify(&self.secret, now.as_second(), header, body)
    }
}
