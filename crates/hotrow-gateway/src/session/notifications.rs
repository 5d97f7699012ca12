//! A session's notifications: what it has on its connection is handed over to the connection that all sessions of its
//! role share, so a session that only listens holds none. `hotrow_core::session` decides when the client gets them.

use std::sync::Arc;
use std::time::Duration;

use hotrow_connect::upstream;
use hotrow_core::limits;
use hotrow_core::notifications::MARKER_CHANNEL;
use hotrow_core::session::{SessionEnd, TakesOver};
use tokio::time::timeout;

use super::SessionTask;
use crate::pool::listener::{self, NotificationInbox, Subscription};
use crate::server::held::{self, HeldConnection};

impl SessionTask {
    /// Waits until everything that was notified before has arrived.
    pub(super) async fn catch_up(&mut self) -> Result<(), SessionEnd> {
        if let Some(subscription) = &self.session.env.subscription {
            subscription.catch_up().await;
        }
        self.caught_up()
    }

    /// Everything that was notified before has arrived.
    pub(super) fn caught_up(&mut self) -> Result<(), SessionEnd> {
        self.session.caught_up();
        self.relay_received()
    }

    /// Prepares a connection for a session that listens: its statements find the channels there.
    pub(super) async fn listen_on(&mut self, held: &mut HeldConnection) -> Result<(), upstream::Error> {
        held.listen(self.session.shared_channels().iter().map(String::as_str)).await?;
        if let Some(subscription) = &self.session.env.subscription {
            subscription.catch_up().await;
        }
        held.upstream.notifications.clear(); // the shared connection reports them too
        Ok(())
    }

    /// Another connection takes over. Both listen for a moment, and a marker shows where. False if it does not.
    pub(super) async fn take_over(&mut self, takes_over: TakesOver) -> Result<bool, held::Error> {
        let Some(held) = self.session.connection() else { return Ok(false) };
        held.listen([MARKER_CHANNEL].into_iter()).await?;
        let subscription = self.subscription();
        let channels = match &takes_over {
            TakesOver::Shared(channels) => channels.clone(),
            TakesOver::Held => Vec::new(),
        };
        let marker = listener::marker();
        self.session.expect_marker(Some((marker.clone(), takes_over)));
        // When the statement is complete, everything before the marker has arrived.
        let listens = subscription.add(&self.pool, channels.clone(), marker.clone()).await;
        let is_over = listens && self.until_marker().await?;
        if is_over {
            self.session.taken_over(&marker);
        } else {
            tracing::debug!("a session's channels stay where they are, because there is no marker");
            subscription.remove(&channels);
        }
        self.end_marking().await?;
        Ok(is_over)
    }

    /// The session's share of the connection that listens for the clients of its role.
    fn subscription(&mut self) -> Arc<Subscription<NotificationInbox>> {
        let new = || {
            let inbox = NotificationInbox::new(self.mailbox.clone());
            let listener = self.session.env.directory.listeners.of(&self.pool);
            Arc::new(Subscription::new(listener, inbox))
        };
        self.session.env.subscription.get_or_insert_with(new).clone()
    }

    async fn end_marking(&mut self) -> Result<(), held::Error> {
        self.session.expect_marker(None);
        if let Some(held) = self.session.connection() {
            let unlisten = include_str!("../../sql/unlisten_marker.sql").to_owned();
            held.upstream.run_each(std::iter::once(unlisten)).await?;
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
            let Some(held) = self.session.connection() else { return Ok(false) };
            held.upstream.read_some().await?;
        }
    }
}
