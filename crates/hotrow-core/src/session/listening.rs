//! A session that listens without a connection of its own: which notifications its client gets, and when. A direct
//! connection reports them outside of transactions: between two units, and directly before a ReadyForQuery.
//!
//! The channels are those of a connection that all listening sessions of a role share (`crate::notifications`). A
//! connection that the session holds listens to them as well, so the client's statements find them there, and its
//! notifications show which ReadyForQuery has notifications before it. The client gets those of the shared connection.
//!
//! A unit that may change the channels runs by itself: it begins when earlier units are answered, and the next one begins
//! when the server has been asked for the channels. A marker then shows what both connections have reported.

use std::collections::BTreeSet;

use bytes::Bytes;
use hotrow_wire::SqlState;
use hotrow_wire::backend::{Notification, Problem, Status};

use super::environment::Stop;
use super::holding::Holding;
use super::planning::Planning;
use super::replies::put_ready;
use super::reports::Reports;
use super::takeover::{Share, TakesOver, in_order};
use super::{Connection, Environment, Need, Session, SessionEnd};
use crate::limits;
use crate::notifications::{MARKER_CHANNEL, Marker};

/// The state of a session with regard to notifications.
#[derive(Debug, Default)]
pub(super) struct Listening {
    /// The channels that the shared connection reports.
    channels: BTreeSet<String>,
    /// The channels that the session no longer listens to, but that the shared connection still reports.
    ended: BTreeSet<String>,
    /// A ReadyForQuery that the client gets after the notifications before it.
    ready: Option<Status>,
    /// Everything whose sender had its answer before the client's last bytes has arrived.
    is_current: bool,
    /// More waits until the client has read what it got.
    is_held_up: bool,
}

impl Listening {
    /// Whether the shared connection reports any channel.
    pub(super) fn listens(&self) -> bool {
        !self.channels.is_empty()
    }

    /// The held connection has reported a notification. Returns whether the client does not get it now.
    fn keeps(
        &mut self,
        reports: &mut Reports,
        notification: &Notification<'_>,
        body: &[u8],
        collects: bool,
    ) -> bool {
        if notification.channel == MARKER_CHANNEL.as_bytes() {
            let is_it = |(marker, _): &mut (Marker, _)| marker.as_bytes() == notification.payload;
            if let Some((_, takes_over)) = reports.marker.take_if(is_it) {
                reports.passed = Some((reports.take_all(), self.channels.clone()));
                match takes_over {
                    TakesOver::Shared(channels) => self.channels.extend(channels),
                    TakesOver::Held => self.channels.clear(),
                }
            }
            return true;
        }
        if self.channels.is_empty() && reports.passed.is_none() {
            return false;
        }
        let is_shared =
            str::from_utf8(notification.channel).is_ok_and(|channel| self.channels.contains(channel));
        reports.add(body, is_shared, collects);
        true
    }

    /// Returns the channels that the server has not found, which the shared connection reports no longer.
    pub(super) fn end_channels(&mut self) -> Vec<String> {
        let ended = std::mem::take(&mut self.ended);
        self.channels.retain(|channel| !ended.contains(channel));
        ended.into_iter().collect()
    }
}

impl<E: Environment> Session<E> {
    /// The channels that the shared connection reports.
    pub fn shared_channels(&self) -> &BTreeSet<String> {
        &self.listening.channels
    }

    /// Whether more notifications wait until the client has read what it got.
    pub fn is_held_up(&self) -> bool {
        self.listening.is_held_up
    }

    /// The client has sent something.
    pub fn arrived(&mut self) {
        self.listening.is_current = false;
    }

    /// Whether the held connection is not read, because notifications of the shared one come before the next message.
    pub(super) fn stops_reading(&self) -> bool {
        self.listening.ready.is_some() && !self.expects_marker() || self.has_due()
    }

    /// Whether the last notification of the held connection is one that the shared one does not report, and the client
    /// gets it before a marker arrives.
    fn has_due(&self) -> bool {
        !self.collects() && self.phase.held().is_some_and(|holding| holding.reports.ends_unshared())
    }

    /// Whether a marker will show the order of everything that the held connection reports.
    fn collects(&self) -> bool {
        self.expects_marker() || self.channels_in_doubt() && self.listening.listens()
    }

    /// The held connection has reported a notification. Returns whether the client does not get it now.
    pub(super) fn keeps(&mut self, notification: &Notification<'_>, body: &[u8]) -> Result<bool, SessionEnd> {
        let collects = self.collects();
        let reports = &mut self.phase.held_mut().expect("called only while a connection is held").reports;
        let keeps = self.listening.keeps(reports, notification, body, collects);
        if reports.bytes() > limits::WAITING_NOTIFICATIONS_BYTES_MAX {
            return Err(too_many());
        }
        Ok(keeps)
    }

    /// Whether the client gets the server's ReadyForQuery later: there are notifications before it, or the session has
    /// channels that the shared connection may report after it.
    pub(super) fn delay_ready(&mut self) -> bool {
        let holding = self.held();
        let (status, channels_in_doubt) = (holding.status, holding.marks.channels_in_doubt());
        let is_idle = status == Status::Idle;
        let was_idle = !std::mem::replace(&mut holding.reports.in_transaction, !is_idle);
        let delays = match channels_in_doubt {
            true => is_idle,
            false => holding.reports.precede_ready(was_idle || is_idle), // also that of a BEGIN
        };
        if delays {
            self.listening.ready = Some(status);
        }
        delays
    }

    /// Everything that was notified before this need has arrived.
    pub fn caught_up(&mut self) {
        self.listening.is_current = true;
        self.deliver_due();
        if let Some(status) = self.listening.ready.take() {
            self.append(|out| put_ready(status, out));
        }
    }

    /// Hands over what the held connection has reported, in its order. The shared one has caught up. More may have
    /// arrived there, which comes after the next ReadyForQuery: notifications of the client's next units.
    fn deliver_due(&mut self) {
        let Some(holding) = self.phase.held_mut() else { return };
        for (body, is_shared) in holding.reports.take() {
            if !is_shared {
                self.put_body(&body);
                continue;
            }
            if self.held().reports.has_passed(&body) {
                continue;
            }
            match self.env.notifications_up_to(&body) {
                // The server has not signalled the shared connection yet.
                0 => self.held().reports.is_late(body),
                count => {
                    self.held().reports.forget_late();
                    (0..count).for_each(|_| drop(self.deliver_next()));
                }
            }
        }
    }

    /// Whether the server has to be asked for the session's channels.
    pub(super) fn channels_in_doubt(&self) -> bool {
        self.phase.held().is_some_and(|holding| holding.marks.channels_in_doubt())
    }

    /// The other connection has taken over at this marker, which both have reported. The client gets what was sent before.
    pub fn taken_over(&mut self, marker: &str) {
        let passed = self.phase.held_mut().and_then(|holding| holding.reports.passed.take());
        let Some((held, before)) = passed else { return };
        let mut shared = Vec::new();
        while let Some(body) = self.env.next_notification().filter(|body| !is_marker(body, marker)) {
            shared.push(body);
        }
        let order = in_order(&held, &shared, |channel| match before.contains(channel) {
            true if self.listening.ended.contains(channel) => Share::Ended,
            true => Share::Kept,
            false => Share::New,
        });
        order.iter().for_each(|body| self.put_body(body));
        if !self.listening.listens() {
            self.deliver_due(); // what the held connection has reported after the marker
        }
    }

    /// The server has found these channels on the held connection. Returns those that only this connection reports.
    pub(super) fn channels_found(&mut self, found: BTreeSet<String>) -> Vec<String> {
        let channels = &self.listening.channels;
        self.listening.ended = channels.difference(&found).cloned().collect();
        found.into_iter().filter(|channel| !channels.contains(channel)).collect()
    }

    /// The held connection will report this marker, if there is one.
    pub fn expect_marker(&mut self, marker: Option<(Marker, TakesOver)>) {
        if let Some(holding) = self.phase.held_mut() {
            holding.reports.marker = marker;
        }
    }

    /// Whether the held connection has not reported the marker yet.
    pub fn expects_marker(&self) -> bool {
        self.phase.held().is_some_and(|holding| holding.reports.marker.is_some())
    }

    /// Called before a unit goes to a lane. Directly, the client would get earlier notifications before its answer.
    pub(super) fn catch_up(&mut self, _: &Planning) -> Result<(), Stop<E>> {
        if self.listening.channels.is_empty() || self.listening.is_current {
            return Ok(());
        }
        Err(Stop::Need(Need::Notifications))
    }

    /// Hands over all that has arrived. Called before the session holds a connection: it comes from other sessions.
    pub fn deliver_all(&mut self) {
        while self.deliver_next().is_some() {}
    }

    /// Waits for the notifications before the next message, unless the server is asked for the channels first.
    pub(super) fn wait_for_due(&self) -> Result<(), Stop<E>> {
        let asks_first = || self.channels_in_doubt() && self.is_settled();
        match self.stops_reading() && !asks_first() {
            true => Err(Stop::Need(Need::Notifications)),
            false => Ok(()),
        }
    }

    /// Hands over what has arrived, if the client's session is between two units.
    pub(super) fn deliver(&mut self) -> Result<(), Stop<E>> {
        let is_between = match self.phase.held() {
            None => !self.has_begun(),
            Some(holding) => holding.status == Status::Idle && holding.delayed_ready.is_none(),
        };
        self.listening.is_held_up = false;
        if !self.listening.listens() {
            return Ok(()); // most sessions, at each message
        }
        if !is_between || !self.is_settled() || self.alone.is_some() || self.skipping {
            return Ok(());
        }
        loop {
            self.listening.is_held_up = self.env.is_full();
            if self.listening.is_held_up {
                break;
            }
            let Some(body) = self.deliver_next() else { break };
            if let Some(holding) = self.phase.held_mut() {
                holding.reports.delivered(&body);
            }
        }
        // A client that does not read ends too: what waits for it is dropped.
        self.env.notifications_end().map_or(Ok(()), |problem| Err(Stop::End(SessionEnd::Problem(problem))))
    }

    /// Hands over the next notification of the shared connection, and returns it. None if there is none.
    fn deliver_next(&mut self) -> Option<Bytes> {
        let body = self.env.next_notification()?;
        self.deliver_body(&body);
        Some(body)
    }

    fn deliver_body(&mut self, body: &[u8]) {
        // The client may look for what the notification is about.
        self.reads.leave_replica();
        let Ok(notification) = Notification::read(body) else { return };
        // The session may have stopped to listen, and then a direct connection would drop it too.
        if str::from_utf8(notification.channel).is_ok_and(|channel| self.listening.channels.contains(channel))
        {
            self.put_notification(notification);
        }
    }

    fn put_body(&self, body: &[u8]) {
        if let Ok(notification) = Notification::read(body) {
            self.put_notification(notification);
        }
    }

    /// Clients recognise their own notifications by the process ID that they were told.
    fn put_notification(&self, mut notification: Notification<'_>) {
        let is_own = |holding: &Holding<E>| holding.connection.process_id() == notification.process_id;
        if self.phase.held().is_some_and(is_own) {
            notification.process_id = self.env.process_id();
        }
        let in_turn = !self.phase.is_held() && self.alone.is_none();
        self.env.answers(|answers| answers.notify(in_turn, |out| notification.put(out)));
    }
}

fn is_marker(body: &[u8], marker: &str) -> bool {
    Notification::read(body).is_ok_and(|notification| {
        notification.channel == MARKER_CHANNEL.as_bytes() && notification.payload == marker.as_bytes()
    })
}

fn too_many() -> SessionEnd {
    let bytes = limits::WAITING_NOTIFICATIONS_BYTES_MAX;
    SessionEnd::Problem(Problem::fatal(
        SqlState::OutOfMemory,
        format!("more than {bytes} bytes of notifications arrived while the client changed its channels"),
        "Run LISTEN and UNLISTEN in a transaction of their own. Connect again, LISTEN again, and then check for what the \
         missed notifications were about.",
    ))
}
