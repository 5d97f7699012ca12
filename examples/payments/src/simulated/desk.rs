//! One simulated gateway: its book, its manners, and what it does with an order.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::Timestamp;
use uuid::Uuid;

use super::behaviour::{Behaviour, hits};
use super::book::{Book, Entry};
use super::webhooks::Webhooks;
use crate::gateway::{Report, Wire};

/// A simulated gateway.
pub struct Desk {
    webhooks: Arc<Webhooks>,
    behaviour: Mutex<Behaviour>,
    book: Mutex<Book>,
}

impl Desk {
    /// With the book in this file.
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

    /// Its manners.
    pub fn behaviour(&self) -> Behaviour {
        self.behaviour.lock().expect("nothing panics while it holds the manners").clone()
    }

    /// Other manners from now on.
    pub fn behave(&self, behaviour: Behaviour) {
        *self.behaviour.lock().expect("nothing panics while it holds the manners") = behaviour;
    }

    /// What it knows of a reference.
    pub fn entry(&self, reference: Uuid) -> Option<Entry> {
        self.book.lock().expect("nothing panics while it holds the book").entry(reference).cloned()
    }

    /// All it has done.
    pub fn entries(&self) -> Vec<Entry> {
        self.book.lock().expect("nothing panics while it holds the book").entries().to_vec()
    }

    /// Does what is ordered. None if it doesn't say a word about it.
    pub async fn operate(&self, order: Wire) -> Option<Report> {
        let behaviour = self.behaviour();
        if hits(behaviour.forgets) {
            return None;
        }
        let latency = Duration::from_millis(behaviour.latency_ms());
        tokio::time::sleep(latency / 2).await;
        let entered = self.book.lock().expect("nothing panics while it holds the book").enter(
            order,
            Timestamp::now(),
            hits(behaviour.declines),
        );
        let entry = match entered {
            Ok(entry) => entry,
            Err(error) => {
                tracing::error!(%error, "the book can't be written");
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
