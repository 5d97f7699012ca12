//! The payment gateways of the program `payment-gateways`, over HTTP.

use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{Answer, Decision, Gateway, Later, News, Order, Status};
use crate::http::{Client, Unanswered};
use crate::machine::{Kind, Outcome};
use crate::routing::Mode;
use crate::signature::{self, Distrust};

/// One of them.
pub struct Simulated {
    name: &'static str,
    own_mode: Mode,
    url: String,
    secret: String,
    client: Client,
    limit: Duration,
}

/// An order as it is sent.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Wire {
    /// Which attempt.
    pub reference: Uuid,
    /// Which one holds the money.
    pub authorization: Uuid,
    /// What is asked.
    pub kind: Kind,
    /// How much.
    pub amount: i64,
    /// Of what.
    pub currency: String,
    /// How the customer pays.
    pub mode: Mode,
    /// Until when it may be done.
    pub valid_until: Timestamp,
}

/// An answer as it comes.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Report {
    /// What became of it; none while it is worked on, or when it is not known.
    pub outcome: Option<Outcome>,
    /// Why not.
    pub code: Option<String>,
    /// The gateway knows the reference.
    pub known: bool,
    /// The gateway's clock.
    pub now: Timestamp,
}

/// A webhook as it comes.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Webhook {
    /// The gateway's name for this message.
    pub event: String,
    /// Which attempt.
    pub reference: Uuid,
    /// What became of it.
    pub outcome: Outcome,
    /// Why not.
    pub code: Option<String>,
}

impl Simulated {
    /// The three there are, with the mode that each is best at.
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

    async fn order(&self, kind: Kind, order: &Order) -> Answer {
        let wire = Wire {
            reference: order.reference,
            authorization: order.authorization,
            kind,
            amount: order.amount,
            currency: order.currency.clone(),
            mode: order.mode,
            valid_until: order.valid_until,
        };
        let body = serde_json::to_vec(&wire).expect("an order can be written as JSON");
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
}

impl Gateway for Simulated {
    fn name(&self) -> &str {
        self.name
    }

    fn own_mode(&self) -> Mode {
        self.own_mode
    }

    fn authorize<'a>(&'a self, order: &'a Order, take: bool) -> Later<'a, Answer> {
        Box::pin(self.order(if take { Kind::Purchase } else { Kind::Authorize }, order))
    }

    fn capture<'a>(&'a self, order: &'a Order) -> Later<'a, Answer> {
        Box::pin(self.order(Kind::Capture, order))
    }

    fn void<'a>(&'a self, order: &'a Order) -> Later<'a, Answer> {
        Box::pin(self.order(Kind::Void, order))
    }

    fn refund<'a>(&'a self, order: &'a Order) -> Later<'a, Answer> {
        Box::pin(self.order(Kind::Refund, order))
    }

    fn status(&self, reference: Uuid, valid_until: Timestamp) -> Later<'_, Status> {
        Box::pin(async move {
            let url = format!("{}/operations/{reference}", self.url);
            let body = match self.client.get(&url, self.limit).await {
                Ok((200, body)) => body,
                Ok((status, _)) => return Status::Silent(format!("it answers {status}")),
                Err(Unanswered::NotSent(error) | Unanswered::Lost(error)) => return Status::Silent(error),
            };
            match serde_json::from_slice::<Report>(&body) {
                Ok(Report { outcome: Some(outcome), code, .. }) => {
                    Status::Decided(Decision { outcome, code })
                }
                Ok(Report { known: true, .. }) => Status::Pending,
                Ok(Report { now, .. }) if now > valid_until => Status::NeverWill,
                Ok(_) => Status::NotYet,
                Err(error) => Status::Silent(format!("it answers nonsense: {error}")),
            }
        })
    }

    fn verify(&self, header: &str, body: &[u8], now: Timestamp) -> Result<(), Distrust> {
        signature::verify(&self.secret, now.as_second(), header, body)
    }

    fn parse(&self, body: &[u8]) -> Result<News, serde_json::Error> {
        let Webhook { event, reference, outcome, code } = serde_json::from_slice(body)?;
        Ok(News { event, reference, decision: Decision { outcome, code } })
    }
}
