//! LISTEN and NOTIFY in the model of PostgreSQL: what a backend reports, and when.

use std::collections::BTreeSet;

use hotrow_wire::backend::{Notification, Status};

use super::postgres::{Backend, Database};

/// A committed notification: the sender's process ID, the channel and the payload.
pub type Sent = (u32, String, String);

/// A backend's channels and notifications.
#[derive(Debug, Default)]
pub struct Listens {
    pub channels: BTreeSet<String>,
    /// The changes that the transaction under way has made of them: a channel begins or ends.
    changes: Vec<(String, bool)>,
    /// The notifications of the transaction under way, each once.
    sent: Vec<(String, String)>,
    /// Number of committed notifications that it has read.
    read: usize,
    /// A sender has signalled this backend, and maybe no other one yet.
    is_signalled: bool,
}

/// The state to which a savepoint goes back.
pub type Position = (usize, usize);

impl Listens {
    pub fn position(&self) -> Position {
        (self.changes.len(), self.sent.len())
    }

    pub fn roll_back(&mut self, (changes, sent): Position) {
        self.changes.truncate(changes);
        self.sent.truncate(sent);
    }
}

impl Backend {
    /// Listens to a channel outside of a transaction.
    pub fn listen_now(&mut self, channel: &str, database: &Database) {
        if self.listens.channels.is_empty() {
            self.listens.read = database.notifications.len();
        }
        self.listens.channels.insert(channel.to_owned());
    }

    pub(super) fn run_on_channels(&mut self, words: &[&str]) {
        match *words {
            ["listen", channel] => self.listens.changes.push((channel.trim_matches('"').to_owned(), true)),
            ["unlisten", "*"] => {
                let all = self.listens.channels.iter().cloned().map(|channel| (channel, false));
                let begun = self.listens.changes.iter().map(|(channel, _)| (channel.clone(), false));
                let ends: Vec<_> = all.chain(begun).collect();
                self.listens.changes.extend(ends);
            }
            ["unlisten", channel] => self.listens.changes.push((channel.trim_matches('"').to_owned(), false)),
            ["notify", channel, ..] => {
                let payload = words[2..].join(" ").trim_matches('\'').to_owned();
                let sent = (channel.trim_end_matches(',').to_owned(), payload);
                if !self.listens.sent.contains(&sent) {
                    self.listens.sent.push(sent);
                }
            }
            _ => panic!("the model has no such statement: {words:?}"),
        }
        self.complete(&words[0].to_ascii_uppercase());
    }

    /// The transaction is committed.
    pub(super) fn commit_channels(&mut self, database: &mut Database) {
        if self.listens.channels.is_empty() {
            self.listens.read = database.notifications.len();
        }
        for (channel, begins) in std::mem::take(&mut self.listens.changes) {
            match begins {
                true => self.listens.channels.insert(channel),
                false => self.listens.channels.remove(&channel),
            };
        }
        let process_id = self.process_id;
        let sent = std::mem::take(&mut self.listens.sent);
        let has_sent = !sent.is_empty();
        database
            .notifications
            .extend(sent.into_iter().map(|(channel, payload)| (process_id, channel, payload)));
        if has_sent {
            database.signalled = database.notifications.len(); // the client of a model learns of its commit later
        }
    }

    /// A sender signals this backend first.
    pub fn signal(&mut self) {
        self.listens.is_signalled = true;
    }

    /// Reports notifications, if no transaction is under way. Without a signal it does not look for them.
    pub(super) fn report_notifications(&mut self, database: &Database) {
        let is_signalled = self.listens.is_signalled || database.signalled > self.listens.read;
        if self.status != Status::Idle || !is_signalled {
            return;
        }
        self.listens.is_signalled = false;
        for (process_id, channel, payload) in
            &database.notifications[self.listens.read.min(database.notifications.len())..]
        {
            if self.listens.channels.contains(channel) {
                let (channel, payload) = (channel.as_bytes(), payload.as_bytes());
                Notification { process_id: *process_id, channel, payload }.put(&mut self.kept);
            }
        }
        self.listens.read = database.notifications.len();
    }

    /// Reports notifications between two units, at any time.
    pub fn report_idle(&mut self, database: &Database) {
        if !self.is_dead && !self.is_in_unit && self.copy.is_none() && !self.listens.channels.is_empty() {
            self.report_notifications(database);
            self.flush();
        }
    }

    /// The channels as `pg_listening_channels()` shows them, in one row.
    pub(super) fn shown_channels(&self) -> String {
        self.listens.channels.iter().cloned().collect::<Vec<_>>().join(" ")
    }
}
