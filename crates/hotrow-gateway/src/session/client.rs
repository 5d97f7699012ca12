//! The client's socket: what arrives there, and what the client is sent.

use std::io;
use std::time::Instant;

use hotrow_core::session::SessionEnd;
use hotrow_wire::backend;

use super::SessionTask;
use super::problems::stopping;
use crate::mailbox::Backlog;

impl SessionTask {
    /// The client has sent something, or has closed its sending side.
    pub(super) fn received(&mut self, count: &io::Result<usize>) -> Result<(), SessionEnd> {
        match count {
            Ok(count @ 1..) => {
                self.control.activity.received(*count);
                self.arrived();
                self.report_settings();
                Ok(())
            }
            Ok(0) if !self.ends_work() => self.session.client_closed(),
            Ok(0) | Err(_) => {
                self.gone();
                Err(SessionEnd::Client)
            }
        }
    }

    /// Records the time at which the client has sent something.
    pub(super) fn arrived(&mut self) {
        let now = Instant::now();
        self.session.env.since = now;
        self.session.arrived();
        self.control.activity.message_received(now);
    }

    /// Reports changed settings of the server to the client, as the server would with its next answer. A client whose
    /// session holds a connection gets them from that connection.
    fn report_settings(&mut self) {
        if self.session.connection().is_some() {
            return;
        }
        if let Some(newer) = self.pool.newer_settings(&self.session.env.reported) {
            let changed = self.session.env.reported.compare(self.pool.id, newer);
            self.put_settings(&changed);
        } else if self.session.env.reported.has_news() {
            self.pool.context.doubt_settings();
        }
    }

    pub(super) fn put_settings(&self, changed: &[(String, String)]) {
        for (name, value) in changed {
            self.mailbox.answers(|answers| {
                answers.append_in_turn(|out| backend::put_parameter_status(out, name, value));
            });
        }
    }

    /// Writes as much as the client takes.
    pub(super) fn try_write(&self) -> Result<Backlog, SessionEnd> {
        self.mailbox.try_write().map_err(client_gone)
    }

    /// Waits until the client has read enough to get more.
    pub(super) async fn wait_for_room(&mut self) -> Result<(), SessionEnd> {
        while self.try_write()?.unread > 0 && self.mailbox.is_overfull(0) {
            if !self.session.waits_for_room(self.stop.stage()) {
                return Err(SessionEnd::Problem(stopping()));
            }
            tokio::select! {
                writable = self.mailbox.write.writable() => writable.map_err(client_gone)?,
                () = self.mailbox.task_notify.notified() => {} // the gateway may stop
            }
        }
        Ok(())
    }

    /// Waits until the client's socket has taken all answers.
    pub(super) async fn flush_to_client(&mut self) -> Result<(), SessionEnd> {
        while self.try_write()?.unread > 0 {
            self.mailbox.write.writable().await.map_err(client_gone)?;
        }
        Ok(())
    }

    /// Reads what the client has sent, without waiting: a refusal depends on whether there is more. Returns whether there was
    /// something.
    pub(super) async fn read_now(&mut self) -> bool {
        let count = tokio::select! {
            biased;
            count = self.read.fill(&mut self.input) => count,
            () = std::future::ready(()) => return false,
        };
        let Ok(count @ 1..) = count else { return false };
        self.control.activity.received(count);
        self.arrived();
        true
    }

    /// A cancel request has ended the session's wait.
    pub(super) async fn cancelled(&mut self) {
        self.read_now().await;
        self.session.wait_cancelled();
    }
}

/// A socket of a client that fails is a client that is gone.
pub(super) fn client_gone(_: io::Error) -> SessionEnd {
    SessionEnd::Client
}
