//! One simulated gateway: its book, its behaviour, and how it carries out an order.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::Timestamp;
use uuid::Uuid;

use super::behaviour::{Behaviour, hits};
use super::book::{Book, Entry};
use super::webhooks::Webhooks;
use crate::gateway::{Order, Report};

/// A simulated gateway.
pub struct Desk {
    webhooks: Arc<Webhooks>,
    behaviour: Mutex<Behaviour>,
    book: Mutex<Book>,
}

impl Desk {
    /// A gateway with its book in this file.
    pub fn open(
        name: &'static str,
        file: Option<PathBuf>,
        behaviour: Behaviour,
        secret: String,
    ) -> std::io::Result<Self> {
        Ok(Self {
            webhooks: Arc::new(Webhooks::new(name, secret)),
            behaviour: Mutex::new(behaviour),
            book: Mutex::new(Book::open(file.as_deref())?),
        })
    }

    /// Its behaviour.
    pub fn behaviour(&self) -> Behaviour {
        self.behaviour.lock().expect("no thread panics while it holds the behaviour").clone()
    }

    /// Changes its behaviour.
    pub fn behave(&self, behaviour: Behaviour) {
        *self.behaviour.lock().expect("no thread panics while it holds the behaviour") = behaviour;
    }

    /// Its entry for a reference.
    pub fn entry(&self, reference: Uuid) -> Option<Entry> {
        self.book.lock().expect("no thread panics while it holds the book").entry(reference).cloned()
    }

    /// All entries of its book.
    pub fn entries(&self) -> Vec<Entry> {
        self.book.lock().expect("no thread panics while it holds the book").entries().to_vec()
    }

    /// Carries an order out. None if it does not answer.
    pub async fn operate(&self, order: Order) -> Option<Report> {
        let behaviour = self.behaviour();
        if hits(behaviour.forgets) {
            return None;
        }
        let latency = Duration::from_millis(behaviour.latency_ms());
        tokio::time::sleep(latency / 2).await;
        let entered = self.book.lock().expect("no thread panics while it holds the book").enter(
            order,
            Timestamp::now(),
            hits(behaviour.declines),
        );
        let entry = match entered {
            Ok(entry) => entry,
            Err(error) => {
                tracing::error!(%error, "the book cannot be written");
                return None;
            }
        };
        let report = entry.report(Timestamp::now());
        let is_silent = hits(behaviour.silent);
        tokio::spawn(self.webhooks.clone().send(entry, behaviour));
        tokio::time::sleep(latency - latency / 2).await;
        (!is_silent).then_some(report)
    }
}
