//! How a payment moves: by statements with a commit each, of which each is a correct compare-and-set. Never uses HTTP.
//!
//! The program can crash between any two statements. Before a gateway is asked, the database has an attempt with `due_at`
//! set. `due_at` is cleared only after all consequences of the outcome are written. The request, a webhook, a worker, or all
//! of them at the same time can therefore repeat everything here.
//!
//! | file | contents |
//! |---|---|
//! | `begin` | the attempt, and the payment's step to the state in which it is under way |
//! | `ask` | requests to the gateway, and the meaning of its answers |
//! | `settle` | the outcome, written once, and its consequences |
//! | `totals` | the merchant's day: the addition, and the recount after a doubt |
//! | `news` | webhooks of gateways |
//! | `commands` | confirm, capture, cancel, refund |

mod ask;
mod begin;
mod commands;
mod news;
mod settle;
mod totals;

use std::sync::{Arc, Mutex};
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

/// The reason why a payment did not move.
#[derive(Debug, thiserror::Error)]
pub enum Stop {
    /// There is no payment with this ID.
    #[error("there is no such payment")]
    NotFound,
    /// The payment's state does not allow it.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// No payment gateway can be reached.
    #[error("no payment gateway can be reached")]
    NoGateway,
    /// The database cannot be used.
    #[error(transparent)]
    Database(#[from] Error),
}

impl Stop {
    /// Whether the payment's state is the reason, so that a repetition gets the same answer.
    pub fn is_for_good(&self) -> bool {
        matches!(self, Self::Refused(Refusal::WrongState | Refusal::TooMuch))
    }
}

/// Everything that is needed to move payments.
pub struct Payments {
    /// The database of the payments.
    pub database: Arc<Database>,
    gateways: Vec<Gateway>,
    health: Mutex<Vec<Health>>,
    /// The messages to dependent services.
    pub notifications: Notifications,
    /// The time limit for an answer of a gateway.
    gateway_limit: Duration,
    /// When a worker first looks at an attempt.
    first_look: Duration,
}

impl Payments {
    /// Payments in this database, through these gateways.
    pub fn new(
        database: Arc<Database>,
        gateways: Vec<Gateway>,
        notifications: Notifications,
        gateway_limit: Duration,
        first_look: Duration,
    ) -> Self {
        let health = Mutex::new(vec![Health::default(); gateways.len()]);
        Self { database, gateways, health, notifications, gateway_limit, first_look }
    }

    /// The gateway of this name.
    pub fn gateway(&self, name: &str) -> Option<&Gateway> {
        self.gateways.iter().find(|gateway| gateway.name == name)
    }

    /// Reads a payment.
    pub async fn intent(&self, id: Uuid) -> Result<Intent, Stop> {
        let row = self.database.row(INTENT, &[&id]).await?.ok_or(Stop::NotFound)?;
        Ok(Intent::try_from(&row)?)
    }

    /// Reads an attempt.
    pub async fn attempt(&self, id: Uuid) -> Result<Option<Attempt>, Error> {
        self.database.row(ATTEMPT, &[&id]).await?.as_ref().map(Attempt::try_from).transpose()
    }
}
