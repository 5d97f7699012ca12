//! The work that a simulated gateway has done: each reference once, and never more taken than is held. If it has a file, each
//! entry is a line there, and a gateway that is killed knows afterwards what it did.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::gateway::{Order, Report};
use crate::machine::{Kind, Outcome};

/// One entry.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Entry {
    /// The order, as it came.
    #[serde(flatten)]
    pub order: Order,
    /// Its outcome.
    pub outcome: Outcome,
    /// The reason of a refusal.
    pub code: Option<String>,
}

impl Entry {
    /// The answer to a client.
    pub fn report(&self, now: Timestamp) -> Report {
        Report { outcome: Some(self.outcome), code: self.code.clone(), known: true, now }
    }
}

/// The sums of one payment.
#[derive(Clone, Copy, Debug, Default)]
struct Account {
    held: i64,
    captured: i64,
    refunded: i64,
}

/// All entries, and their sums.
#[derive(Default)]
pub struct Book {
    entries: Vec<Entry>,
    by_reference: HashMap<Uuid, usize>,
    accounts: HashMap<Uuid, Account>,
    file: Option<File>,
}

impl Book {
    /// The one in this file, or a new one.
    pub fn open(path: Option<&Path>) -> io::Result<Self> {
        let mut book = Self::default();
        let Some(path) = path else { return Ok(book) };
        let file = OpenOptions::new().create(true).append(true).read(true).open(path)?;
        for line in BufReader::new(&file).lines() {
            // A half line belongs to an order that was not answered.
            if let Ok(entry) = serde_json::from_str(&line?) {
                book.note(entry);
            }
        }
        book.file = Some(file);
        Ok(book)
    }

    /// The entry for a reference.
    pub fn entry(&self, reference: Uuid) -> Option<&Entry> {
        self.by_reference.get(&reference).map(|index| &self.entries[*index])
    }

    /// All entries.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Carries an order out, once, if that is possible.
    pub fn enter(&mut self, order: Order, now: Timestamp, declines: bool) -> io::Result<Entry> {
        if let Some(entry) = self.entry(order.reference) {
            return Ok(entry.clone());
        }
        let account = self.accounts.get(&order.authorization).copied().unwrap_or_default();
        let enough = match order.kind {
            Kind::Authorize | Kind::Purchase => order.amount > 0,
            Kind::Capture | Kind::Void => order.amount <= account.held,
            Kind::Refund => order.amount <= account.captured - account.refunded,
        };
        let (outcome, code) = if now > order.valid_until {
            (Outcome::NotExecuted, Some("too_late"))
        } else if !enough {
            (Outcome::Declined, Some("more_than_there_is"))
        } else if declines {
            (Outcome::Declined, Some("insufficient_funds"))
        } else {
            (Outcome::Succeeded, None)
        };
        let entry = Entry { order, outcome, code: code.map(str::to_owned) };
        if let Some(file) = &mut self.file {
            let mut line = serde_json::to_vec(&entry)?;
            line.push(b'\n');
            file.write_all(&line)?;
        }
        self.note(entry.clone());
        Ok(entry)
    }

    fn note(&mut self, entry: Entry) {
        let order = &entry.order;
        if entry.outcome == Outcome::Succeeded {
            let account = self.accounts.entry(order.authorization).or_default();
            match order.kind {
                Kind::Authorize => account.held = order.amount,
                Kind::Purchase => account.captured = order.amount,
                Kind::Capture => {
                    account.held -= order.amount;
                    account.captured += order.amount;
                }
                Kind::Void => account.held -= order.amount,
                Kind::Refund => account.refunded += order.amount,
            }
        }
        self.by_reference.insert(order.reference, self.entries.len());
        self.entries.push(entry);
    }
}
