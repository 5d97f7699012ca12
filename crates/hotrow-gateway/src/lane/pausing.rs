//! A lane that is told to pause, to go on, or to log in anew: who wants to hear of it, and how long what waits may wait.

use std::time::{Duration, Instant};

use hotrow_core::lane::Event;
use tokio::sync::oneshot;

use super::Task;

/// How often a lane that pauses looks for what has waited for too long.
const LOOK: Duration = Duration::from_millis(100);

/// What a lane was told.
#[derive(Debug, Default)]
pub struct Pausing {
    /// It shall stay at rest.
    paused: bool,
    /// It shall come to rest, and may then go on.
    renews: bool,
    /// Who wants to hear that it is at rest.
    waiting: Vec<oneshot::Sender<()>>,
    next_look: Option<Instant>,
}

impl Pausing {
    /// Until it is time to look. For ever if the lane does not pause.
    pub async fn time_to_look(&self) {
        match self.next_look {
            Some(next) => tokio::time::sleep_until(next.into()).await,
            None => std::future::pending().await,
        }
    }
}

impl Task {
    /// Comes to rest, and stays there until it is told to go on, or only closes its connection on the way.
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

    /// Closes the connection once nothing is under way on it; the next unit opens another. What ran on it may have left something
    /// that its session does not have.
    pub(super) fn renew(&mut self) {
        self.pausing.renews = true;
        self.core.step(Event::Pause, &mut self.actions);
    }

    /// Does so if a batch has run a statement as it was before a definition changed.
    pub(super) fn close_outdated(&mut self) {
        if std::mem::take(&mut self.runs_outdated) {
            self.renew();
            self.perform();
        }
    }

    pub(super) fn resume(&mut self) {
        self.pausing.paused = false;
        self.pausing.next_look = None;
        if !self.pausing.renews {
            self.core.step(Event::Resume, &mut self.actions);
        }
    }

    /// If the lane is at rest, tells who wants to hear of it, and goes on unless it stays there.
    pub(super) fn report_paused(&mut self) {
        let is_told_to = self.pausing.renews || !self.pausing.waiting.is_empty();
        if !is_told_to || !self.core.is_at_rest() {
            return;
        }
        for waits in self.pausing.waiting.drain(..) {
            let _ = waits.send(()); // who asked may be gone
        }
        if std::mem::take(&mut self.pausing.renews) && !self.pausing.paused {
            self.step(Event::Resume);
        }
    }

    /// Refuses what has waited for too long while the lane pauses.
    pub(super) fn expire(&mut self) {
        let patience = self.context.config().server_wait;
        self.pausing.next_look = Some(Instant::now() + LOOK);
        self.core.expire(|unit| unit.payload.since.elapsed() > patience, &mut self.actions);
        self.perform();
    }
}
