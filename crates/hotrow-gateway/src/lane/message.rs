//! What a lane is sent: units, instructions, and the ends of what it waits for.

use std::fmt;
use std::sync::Arc;

use hotrow_lane::key::Key;
use hotrow_lane::lane::Unit;
use tokio::sync::oneshot;

use super::inbox::{self, Inbox};
use super::snapshot::{Detail, LaneSnapshot};

/// A message for a lane whose units carry `W`.
#[derive(Debug)]
pub enum ToLane<W> {
    /// Run this unit.
    Unit(Unit<W>),
    /// Cancel this session's earliest unit.
    Cancel(u64),
    /// This session's parked unit waits no longer for another session.
    Impatient(u64),
    /// The session has ended.
    Gone(u64),
    /// The unit that was blocked on this key has been run.
    Unblocked(Key),
    /// Finish all batches, close the connection, report it, and stay paused.
    Pause(oneshot::Sender<()>),
    /// Close the connection after the batches under way, report it, and log in again.
    Renew(oneshot::Sender<()>),
    /// End the pause.
    Resume,
    /// The server does not answer: close the connection as if it were lost.
    Abandon,
    /// Report the lane's state.
    Snapshot {
        /// What it includes besides the lane's own state.
        detail: Detail,
        /// Where the report goes.
        answer: oneshot::Sender<LaneSnapshot>,
    },
}

impl<W> inbox::Urgency for ToLane<W> {
    fn is_urgent(&self) -> bool {
        !matches!(self, ToLane::Unit(_))
    }
}

/// When dropped, tells the lane that the unit blocked on this key was run, or that its session has ended. Otherwise the
/// lane would hold up the key forever.
pub struct Unblock<W> {
    pub inbox: Arc<Inbox<ToLane<W>>>,
    pub key: Key,
}

impl<W> Drop for Unblock<W> {
    fn drop(&mut self) {
        self.inbox.send(ToLane::Unblocked(self.key));
    }
}

impl<W> fmt::Debug for Unblock<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Unblock").field("key", &self.key).finish_non_exhaustive()
    }
}
