//! How a payment moves: statements that commit one by one, each a compare-and-set that is right alone. Never speaks HTTP.
//!
//! A crash may come between any two. Before a gateway is asked, an attempt stands in the database with `due_at` set;
//! that goes only when all that follows from its outcome is written. Everything here can therefore be run again by
//! whoever finds the attempt: the request itself, a webhook, a worker, or all of them at once.
//!
//! | file | holds |
//! |---|---|
//! | `begin` | the attempt, and the intent's step to where it is under way |
//! | `ask` | the gateway, and what its answer means |
//! | `settle` | the outcome, once; and what follows from it |
//! | `totals` | the merchant's day: the addition, and the recount after a doubt |
//! | `news` | webhooks of gateways |
//! | `commands` | confirm, capture, cancel, refund |

mod ask;
mod begin;
mod commands;
mod news;
mod settle;
mod totals;

use std::sync::Mutex;
use std::time::Duration;

use uuid::Uuid;

use crate::database::{Database, Error};
use crate::gateway::Gateway;
use crate::machine::Refusal;
use crate::notifications::Notifications;
use crate::records::{Attempt, Intent};
use crate::routing::Health;

pub use commands::Done;
pub use news::Webhook;

const INTENT: &str = include_str!("../../sql/intent.sql");
const ATTEMPT: &str = include_str!("../../sql/attempt.sql");

/// Why a payment did not move.
#[derive(Debug, thiserror::Error)]
pub enum Stop {
    /// There is none of this id.
    #[error("there is no such payment")]
    NotFound,
    /// It can't from where it is.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// Nobody takes the money.
    #[error("no payment gateway can be reached")]
    NoGateway,
    /// The database.
    #[error(transparent)]
    Database(#[from] Error),
}

impl Stop {
    /// Whether the payment's state has decided: asking again is another request.
    pub fn is_for_good(&self) -> bool {
        matches!(self, Self::Refused(Refusal::WrongState | Refusal::TooMuch))
    }
}

/// All that moving a payment takes.
pub struct Payments {
    /// Where payments are.
    pub database: Database,
    gateways: Vec<Box<dyn Gateway>>,
    health: Mutex<Vec<Health>>,
    /// What dependent services are to be told.
    pub notifications: Notifications,
    /// How long a gateway may take.
    gateway_limit: Duration,
    /// When a worker first looks at an attempt.
    first_look: Duration,
}

impl Payments {
    /// On this database, with these gateways.
    pub fn new(
        database: Database,
        gateways: Vec<Box<dyn Gateway>>,
        notifications: Notifications,
        gateway_limit: Duration,
        first_look: Duration,
    ) -> Self {
        let health = Mutex::new(vec![Health::default(); gateways.len()]);
        Self { database, gateways, health, notifications, gateway_limit, first_look }
    }

    /// The gateway of this name.
    pub fn gateway(&self, name: &str) -> Option<&dyn Gateway> {
        self.gateways.iter().find(|gateway| gateway.name() == name).map(AsRef::as_ref)
    }

    /// One intent.
    pub async fn intent(&self, id: Uuid) -> Result<Intent, Stop> {
        let row = self.database.row(INTENT, &[&id]).await?.ok_or(Stop::NotFound)?;
        Ok(Intent::try_from(&row)?)
    }

    /// One attempt.
    pub async fn attempt(&self, id: Uuid) -> Result<Option<Attempt>, Error> {
        self.database.row(ATTEMPT, &[&id]).await?.as_ref().map(Attempt::try_from).transpose()
    }
}
