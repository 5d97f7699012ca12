//! Waits for the server on the connection that the session holds, and hands its messages to the session.

use std::io;

use bytes::{Buf, BytesMut};
use hotrow_connect::net::{ReadHalf, WriteHalf};
use hotrow_connect::upstream::Upstream;
use hotrow_core::limits;
use hotrow_core::session::SessionEnd;

use super::SessionTask;
use super::gone::hung_up;
use crate::server::held::HeldConnection;

/// The event that woke the session.
enum Woken {
    Server(io::Result<usize>),
    Client(io::Result<usize>),
    /// The client has gone.
    Gone,
    Other,
}

impl SessionTask {
    /// Waits for one event while a connection is held, and handles it.
    pub(super) async fn relay_once(&mut self, unread: usize) -> Result<(), SessionEnd> {
        match self.wait_held(unread, true).await {
            Woken::Server(count) => self.relay(&count),
            Woken::Client(count) => self.received(&count),
            Woken::Gone => self.received(&Ok(0)),
            Woken::Other => Ok(()),
        }
    }

    /// The same while the client's next messages have to wait: the client is not read.
    pub(super) async fn relay_alone(&mut self, unread: usize) -> Result<(), SessionEnd> {
        match self.wait_held(unread, false).await {
            Woken::Server(count) => self.relay(&count),
            Woken::Gone => self.received(&Ok(0)),
            Woken::Client(_) | Woken::Other => Ok(()),
        }
    }

    /// Whether the connection leads to a primary that another one has left behind, and no statement runs there. No more
    /// statements must, because what they write will be lost.
    pub(super) fn holds_left_behind(&mut self) -> bool {
        let is_left_behind = |held: &mut HeldConnection| held.upstream.is_left_behind();
        self.session.connection().is_some_and(is_left_behind) && !self.session.held_state().0
    }

    async fn wait_held(&mut self, unread: usize, client: bool) -> Woken {
        self.control.at_events();
        let (active, status, pack, left) = self.session.held_state();
        let ends_work = active && self.ends_work();
        let Some(held) = self.session.connection() else { return Woken::Other };
        self.control.activity.set_held(active, status, pack, left);
        let was_full = is_full(held);
        write(held);
        let full = is_full(held);
        if was_full && !full {
            // the client's messages may be there already and have only waited for room
            return Woken::Other;
        }
        let Upstream { read, write, input, output, .. } = &mut held.upstream;
        let (read, write): (&mut ReadHalf, &WriteHalf) = (read, write);
        let reads = client && !full;
        tokio::select! {
            biased;
            count = read.fill(input), if unread < limits::UNREAD_BYTES_MAX => Woken::Server(count),
            woken = from_client(&mut self.read, &mut self.input, reads), if reads || ends_work => woken,
            _ = write.writable(), if !output.is_empty() => Woken::Other,
            _ = self.mailbox.write.writable(), if unread > 0 => Woken::Other,
            () = self.mailbox.task_notify.notified() => Woken::Other,
        }
    }

    /// Hands the server's messages to the session.
    fn relay(&mut self, count: &io::Result<usize>) -> Result<(), SessionEnd> {
        if self.session.connection().is_some() && !matches!(count, Ok(1..)) {
            return self.session.server_gone();
        }
        self.relay_received()
    }

    /// Hands the messages that have been received to the session.
    pub(super) fn relay_received(&mut self) -> Result<(), SessionEnd> {
        let Some(held) = self.session.connection() else { return Ok(()) };
        let mut input = std::mem::take(&mut held.upstream.input);
        if !held.upstream.notifications.is_empty() {
            let mut earlier = std::mem::take(&mut held.upstream.notifications);
            earlier.extend_from_slice(&input);
            input = earlier;
        }
        let mut taken = 0;
        let result = self.session.replies(&input, &mut taken);
        if taken == input.len() {
            input.clear();
        } else {
            input.advance(taken);
        }
        if input.is_empty() && input.capacity() > limits::SESSION_BUFFER_BYTES {
            input = BytesMut::new();
        }
        if let Some(held) = self.session.connection() {
            held.upstream.input = input;
        }
        result
    }
}

/// The client's next bytes, or its end if it is not read.
async fn from_client(read: &mut ReadHalf, input: &mut BytesMut, reads: bool) -> Woken {
    if reads {
        return Woken::Client(read.fill(input).await);
    }
    hung_up(read, input).await;
    Woken::Gone
}

/// Whether so much output waits for the server that the client has to wait too.
fn is_full(held: &HeldConnection) -> bool {
    held.upstream.output.len() > limits::UNREAD_BYTES_MAX
}

/// Writes as much as the server takes. Reading the connection shows an error again, with the server's own message.
fn write(held: &mut HeldConnection) {
    let upstream = &mut held.upstream;
    if upstream.write.try_drain(&mut upstream.output).is_err() {
        // A broken socket is always writable. With bytes left the session would spin and never read the end.
        upstream.output.clear();
    }
}
