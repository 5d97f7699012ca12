//! A session's notifications: what it has on its connection is handed over to the connection that all sessions of its
//! role share, so a session that only listens holds none. `hotrow_core::session` decides when the client gets them.

use std::collections::BTreeSet;
use std::time::Duration;

use hotrow_core::limits;
use hotrow_core::notifications::MARKER_CHANNEL;
use hotrow_core::session::{SessionEnd, TakesOver};
use tokio::time::timeout;

use super::SessionTask;
use crate::pool::listener::{self, NotificationInbox, Subscription};
use crate::server::held::{self, HeldConnection};
use crate::server::upstream;

impl SessionTask {
    /// Waits until everything that was notified before has arrived.
    pub(super) async fn catch_up(&mut self) -> Result<(), SessionEnd> {
        if let Some(subscription) = &self.subscription {
            subscription.catch_up().await;
        }
        self.session.caught_up();
        self.relay_received()
    }

    /// Hands over what the held connection has reported, from the shared one.
    async fn deliver_due(&mut self) {
        if let Some(subscription) = &self.subscription {
            subscription.catch_up().await;
        }
        self.session.deliver_due();
    }

    /// Prepares a connection for a session that listens: its statements find the channels there.
    pub(super) async fn listen_on(&mut self, held: &mut HeldConnection) -> Result<(), upstream::Error> {
        held.listen(self.session.shared_channels().iter().map(String::as_str)).await?;
        if let Some(subscription) = &self.subscription {
            subscription.catch_up().await;
        }
        held.upstream.notifications.clear(); // the shared connection reports them too, and has just done so
        Ok(())
    }

    /// The server has found these channels on the session's connection. Hands them over to the shared connection. False
    /// if the session has to keep its connection for them.
    pub(super) async fn share(&mut self, found: BTreeSet<String>) -> Result<bool, held::Error> {
        let Some(held) = self.session.connection() else { return Ok(true) };
        held.listens |= !found.is_empty();
        // The shared connection speaks UTF-8.
        let speaks_utf8 = held.upstream.speaks_utf8();
        if !speaks_utf8 && !self.session.shared_channels().is_empty() {
            self.take_back().await?;
        }
        let before = self.session.shared_channels().clone();
        let in_doubt = self.session.channels_in_doubt() && !before.is_empty();
        if in_doubt {
            self.deliver_due().await;
        }
        let added = self.session.channels_found(found);
        let remarks = in_doubt && !self.session.shared_channels().is_empty();
        if let Some(subscription) = &self.subscription {
            let removed: Vec<String> = before.difference(self.session.shared_channels()).cloned().collect();
            subscription.remove(&removed);
        }
        let is_shared = match added.is_empty() && !remarks {
            true => true,
            false => speaks_utf8 && self.hand_over(&added).await?,
        };
        if remarks && !is_shared && !self.hand_over(&[]).await? {
            self.end_notifications();
        }
        let count = self.session.shared_channels().len();
        self.control.activity.set_channels(count);
        if count == 0 {
            self.session.env.inbox = None;
            self.subscription = None;
        }
        Ok(is_shared)
    }

    /// Hands channels over to the shared connection. Both connections listen for a moment. A marker shows where the
    /// shared one takes over. False if it does not.
    async fn hand_over(&mut self, channels: &[String]) -> Result<bool, held::Error> {
        let Some(held) = self.session.connection() else { return Ok(false) };
        held.listen([MARKER_CHANNEL].into_iter()).await?;
        if self.subscription.is_none() {
            let inbox = NotificationInbox::new(self.mailbox.clone());
            let listener = self.directory.listeners.of(&self.pool);
            self.session.env.inbox = Some(inbox.clone());
            self.subscription = Some(Subscription::new(listener, self.mailbox.session, inbox));
        }
        let Some(subscription) = &self.subscription else { return Ok(false) };
        let marker = listener::marker();
        let takes_over = TakesOver::Shared(channels.to_vec());
        self.session.expect_marker(Some((marker.clone(), takes_over)));
        let listens = subscription.add(&self.pool, channels.to_vec(), marker.clone()).await;
        let is_shared = listens && self.until_marker().await?;
        if is_shared {
            self.session.taken_over(&marker);
        } else {
            tracing::debug!("a session keeps its connection, because no other one can listen for it");
            if let Some(subscription) = &self.subscription {
                subscription.remove(channels);
            }
        }
        self.end_marking().await?;
        Ok(is_shared)
    }

    /// The session's connection takes over from the shared one.
    async fn take_back(&mut self) -> Result<(), held::Error> {
        let Some(held) = self.session.connection() else { return Ok(()) };
        held.listen([MARKER_CHANNEL].into_iter()).await?;
        let marker = listener::marker();
        self.session.expect_marker(Some((marker.clone(), TakesOver::Held)));
        // After the marker, what the shared connection reports is dropped.
        if let Some(subscription) = &self.subscription
            && subscription.add(&self.pool, Vec::new(), marker.clone()).await
        {
            self.session.deliver_to(&marker);
            if !self.until_marker().await? {
                self.end_notifications();
            }
        }
        self.end_marking().await
    }

    /// It is not known which notifications the client misses: it is told.
    fn end_notifications(&self) {
        if let Some(inbox) = &self.session.env.inbox {
            inbox.end(&listener::lost());
        }
    }

    async fn end_marking(&mut self) -> Result<(), held::Error> {
        self.session.expect_marker(None);
        if let Some(held) = self.session.connection() {
            held.upstream.run(include_str!("../../sql/unlisten_marker.sql")).await?;
        }
        Ok(())
    }

    /// Hands the server's messages to the session until the marker is there. False if it does not arrive in time.
    async fn until_marker(&mut self) -> Result<bool, held::Error> {
        let patience = Duration::from_millis(limits::MARKER_WAIT_MS);
        timeout(patience, self.relay_to_marker()).await.unwrap_or(Ok(false))
    }

    async fn relay_to_marker(&mut self) -> Result<bool, held::Error> {
        loop {
            if let Err(end) = self.relay_received() {
                return Err(upstream::Error::Protocol(format!("{end:?}")).into());
            }
            if !self.session.expects_marker() {
                return Ok(true);
            }
            if self.session.has_due() {
                self.deliver_due().await;
                continue;
            }
            let Some(held) = self.session.connection() else { return Ok(false) };
            held.upstream.read_some().await?;
        }
    }
}
