//! A lane that pauses, resumes or logs in again: the callers that wait for it, and the time limit of waiting units.

use std::time::{Duration, Instant};

use hotrow_lane::lane::Event;
use tokio::sync::oneshot;

use super::Task;
use super::backend::{Backend, Work};

/// How often a paused lane looks for units that have waited too long.
const LOOK: Duration = Duration::from_millis(100);

/// The instructions that a lane has received.
#[derive(Debug, Default)]
pub struct Pausing {
    /// The lane stays paused.
    paused: bool,
    /// The lane closes its connection, and then continues.
    renews: bool,
    /// Callers that wait until the lane has no connection.
    waiting: Vec<oneshot::Sender<()>>,
    next_look: Option<Instant>,
}

impl Pausing {
    /// Waits until it is time to look. Never returns if the lane does not pause.
    pub async fn time_to_look(&self) {
        match self.next_look {
            Some(next) => tokio::time::sleep_until(next.into()).await,
            None => std::future::pending().await,
        }
    }
}

impl<B: Backend> Task<B> {
    /// Finishes the batches under way and closes the connection. If `stays` is set, the lane stays paused until it is
    /// resumed.
    pub(super) fn pause(&mut self, stays: bool, done: oneshot::Sender<()>) {
        if stays {
            self.pausing.paused = true;
            self.pausing.next_look = Some(Instant::now() + LOOK);
            self.core.step(Event::Pause, &mut self.actions);
        } else {
            self.renew();
        }
        self.pausing.waiting.push(done);
    }

    /// Closes the connection after the batches under way; the next unit opens another. Statements that ran on it may
    /// have left state that their sessions do not have.
    pub(super) fn renew(&mut self) {
        self.pausing.renews = true;
        self.core.step(Event::Pause, &mut self.actions);
    }

    /// Renews the connection if its backend wants it. Returns whether it does.
    pub(super) fn renew_if_outdated(&mut self) -> bool {
        let is_outdated = self.backend.is_outdated() && !self.pausing.renews;
        if is_outdated {
            self.renew();
        }
        is_outdated
    }

    pub(super) fn resume(&mut self) {
        self.pausing.paused = false;
        self.pausing.next_look = None;
        if !self.pausing.renews {
            self.core.step(Event::Resume, &mut self.actions);
        }
    }

    /// If the lane has no connection, informs the callers that wait for this. Returns whether the lane continues.
    pub(super) fn report_paused(&mut self) -> bool {
        let is_told_to = self.pausing.renews || !self.pausing.waiting.is_empty();
        if !is_told_to || !self.core.is_at_rest() {
            return false;
        }
        for waits in self.pausing.waiting.drain(..) {
            let _ = waits.send(()); // the caller may be gone
        }
        std::mem::take(&mut self.pausing.renews) && !self.pausing.paused
    }

    /// Rejects units that have waited too long while the lane is paused.
    pub(super) fn expire(&mut self) {
        let patience = self.backend.patience().server;
        self.pausing.next_look = Some(Instant::now() + LOOK);
        self.core.expire(|unit| unit.payload.since().elapsed() > patience, &mut self.actions);
    }
}
