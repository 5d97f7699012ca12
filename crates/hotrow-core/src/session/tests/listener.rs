//! The shared listening connection of simulated sessions: the model of PostgreSQL behind the real hub.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::Rc;

use bytes::{Buf, Bytes};
use hotrow_wire::backend::{Notification, tag};
use hotrow_wire::{frontend, split};

use super::postgres::{Backend, Database};
use crate::notifications::{Hub, MARKER_CHANNEL};

/// The notifications that wait for one client.
pub type SimInbox = Rc<RefCell<VecDeque<Bytes>>>;

/// What a client waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waits {
    /// This client waits for everything that was notified before. Each wait has a number.
    CatchUp(usize, u64),
    /// The world waits.
    Nothing,
}

/// The listening connection.
pub struct Listener {
    hub: Hub<SimInbox, Waits>,
    backend: Backend,
    markers: usize,
    /// Clients whose wait is over, and the wait.
    done: Vec<(usize, u64)>,
    waits: u64,
    /// The channels of each client.
    channels: BTreeMap<usize, BTreeSet<String>>,
}

impl Listener {
    pub fn new(database: &Database) -> Self {
        let mut backend = Backend::new("", "");
        backend.process_id = 999;
        backend.listen_now(MARKER_CHANNEL, database);
        let (hub, channels) = (Hub::default(), BTreeMap::new());
        Listener { hub, backend, markers: 0, done: Vec::new(), waits: 0, channels }
    }

    /// Returns the number of the wait.
    pub fn catch_up(&mut self, client: usize) -> u64 {
        self.waits += 1;
        self.hub.catch_up(Waits::CatchUp(client, self.waits));
        self.waits
    }

    /// A client keeps this number of its channels.
    pub fn unsubscribe(&mut self, client: usize, ended: &[String], left: usize) {
        self.channels.entry(client).or_default().retain(|channel| !ended.contains(channel));
        self.hub.unsubscribe(client as u64, ended);
        if left == 0 {
            self.channels.remove(&client);
            self.hub.leave(client as u64);
        }
    }

    /// Adds channels of a client. Returns the marker, which is committed.
    pub fn subscribe(
        &mut self,
        client: usize,
        inbox: SimInbox,
        channels: Vec<String>,
        database: &mut Database,
    ) -> String {
        self.channels.entry(client).or_default().extend(channels.iter().cloned());
        self.markers += 1;
        let marker = format!("marker {}", self.markers);
        let added = self.hub.subscribe((client as u64, inbox), channels, marker.clone(), Waits::Nothing);
        added.expect("few channels");
        while !database.notifications.iter().any(|(_, _, payload)| *payload == marker) {
            self.step(database);
        }
        marker
    }

    /// The channels that it reports to a client.
    pub fn channels(&self, client: usize) -> BTreeSet<String> {
        self.channels.get(&client).cloned().unwrap_or_default()
    }

    /// Takes one step.
    pub fn step(&mut self, database: &mut Database) {
        if let Some(text) = self.hub.next_statement() {
            frontend::put_query(&mut self.backend.input, &text);
        }
        if !self.backend.step(database) {
            self.backend.report_idle(database);
        }
        self.read();
    }

    /// The clients whose wait is over.
    pub fn take_done(&mut self) -> Vec<(usize, u64)> {
        std::mem::take(&mut self.done)
    }

    /// A sender signals the listening connection before others.
    pub fn signal(&mut self) {
        self.backend.signal();
    }

    /// The server reports what it knows of.
    pub fn report(&mut self, database: &Database) {
        self.backend.report_idle(database);
        self.read();
    }

    fn read(&mut self) {
        let mut done = Vec::new();
        while let Ok(Some(frame)) = split(&self.backend.output.clone(), |_| usize::MAX) {
            self.backend.output.advance(frame.bytes.len());
            match frame.tag {
                tag::NOTIFICATION => {
                    let body = Bytes::copy_from_slice(frame.body());
                    let notification = Notification::read(&body).expect("valid");
                    self.hub
                        .notified(&notification)
                        .for_each(|inbox| inbox.borrow_mut().push_back(body.clone()));
                }
                tag::READY => done.extend(self.hub.complete().0),
                tag::ERROR => panic!("a statement of the listening connection fails"),
                _ => {}
            }
        }
        let clients = done.into_iter().filter_map(|waits| match waits {
            Waits::CatchUp(client, wait) => Some((client, wait)),
            Waits::Nothing => None,
        });
        self.done.extend(clients);
    }

    /// Whether no session listens.
    pub fn is_empty(&self) -> bool {
        self.hub.is_empty()
    }

    /// Whether a client waits.
    pub fn is_busy(&self) -> bool {
        self.hub.is_busy()
    }
}
