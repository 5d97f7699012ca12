//! What every payment gateway can do, whoever runs it. Never decides what an answer means for a payment.

mod simulated;

use std::future::Future;
use std::pin::Pin;

use jiff::Timestamp;
use uuid::Uuid;

use crate::machine::Outcome;
use crate::routing::Mode;
use crate::signature::Distrust;

pub use simulated::{Report, Simulated, Webhook, Wire};

/// What is asked.
#[derive(Clone, Debug)]
pub struct Order {
    /// The attempt: the gateway does the same reference only once.
    pub reference: Uuid,
    /// The attempt that holds the money; this one if it asks to.
    pub authorization: Uuid,
    /// How much.
    pub amount: i64,
    /// Of what.
    pub currency: String,
    /// How the customer pays.
    pub mode: Mode,
    /// Later than this the gateway refuses it.
    pub valid_until: Timestamp,
}

/// What a gateway has done, in its own words.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Decision {
    /// What it is to us.
    pub outcome: Outcome,
    /// Why not.
    pub code: Option<String>,
}

/// What came back.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Answer {
    /// It has decided.
    Decided(Decision),
    /// It never got the order.
    NotSent(String),
    /// Nobody knows: it may have done it.
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

/// What a webhook tells.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct News {
    /// The gateway's name for this message: the same when it is sent again.
    pub event: String,
    /// Which attempt it is about.
    pub reference: Uuid,
    /// What became of it.
    pub decision: Decision,
}

/// What it will have said.
pub type Later<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A payment gateway.
pub trait Gateway: Send + Sync {
    /// What it is called.
    fn name(&self) -> &str;
    /// The mode of payment it is best at.
    fn own_mode(&self) -> Mode;
    /// Holds money, and takes it if told to.
    fn authorize<'a>(&'a self, order: &'a Order, take: bool) -> Later<'a, Answer>;
    /// Takes some of what is held.
    fn capture<'a>(&'a self, order: &'a Order) -> Later<'a, Answer>;
    /// Lets go of the rest.
    fn void<'a>(&'a self, order: &'a Order) -> Later<'a, Answer>;
    /// Gives some back.
    fn refund<'a>(&'a self, order: &'a Order) -> Later<'a, Answer>;
    /// What became of a reference.
    fn status(&self, reference: Uuid, valid_until: Timestamp) -> Later<'_, Status>;
    /// Whether a webhook is its own.
    fn verify(&self, header: &str, body: &[u8], now: Timestamp) -> Result<(), Distrust>;
    /// What a webhook says.
    fn parse(&self, body: &[u8]) -> Result<News, serde_json::Error>;
}
