//! The lanes that connect to one server: for writes and for reads, with the state that they share.

use std::sync::Arc;

use hotrow_lane::lane::{LaneKind, Unit};
use tokio::sync::oneshot;
use tokio::task::AbortHandle;

use crate::lane::{self, Envelope, Inbox, LaneContext, Postgres, Reader, ToLane};

/// The lanes to one server.
#[derive(Debug)]
pub struct Lanes {
    /// The state that they share.
    pub context: Arc<LaneContext>,
    writes: Vec<Arc<Inbox>>,
    reads: Vec<Arc<Inbox>>,
    tasks: Vec<AbortHandle>,
}

impl Lanes {
    /// Starts their tasks. They connect with their first unit.
    pub fn start(context: Arc<LaneContext>) -> Self {
        let lanes = context.config().lanes;
        let inboxes = || (0..lanes).map(|_| Arc::default()).collect();
        let writes = if context.target.has_substitute() { Vec::new() } else { inboxes() };
        let mut all = Lanes { context, writes, reads: inboxes(), tasks: Vec::new() };
        for kind in [LaneKind::Write, LaneKind::Read] {
            for (index, inbox) in all.of(kind).to_vec().into_iter().enumerate() {
                let lane = {
                    let backend = Postgres::new(all.context.clone(), kind, index);
                    lane::run(backend, kind, index, Reader::new(inbox))
                };
                all.tasks.push(tokio::spawn(lane).abort_handle());
            }
        }
        all
    }

    /// Ends their tasks.
    pub fn end(&self) {
        self.tasks.iter().for_each(AbortHandle::abort);
    }

    /// Number of lanes of each kind.
    pub fn count(&self) -> usize {
        self.writes.len()
    }

    fn of(&self, kind: LaneKind) -> &[Arc<Inbox>] {
        match kind {
            LaneKind::Write => &self.writes,
            LaneKind::Read => &self.reads,
        }
    }

    /// Gives a unit to a lane.
    pub fn submit(&self, kind: LaneKind, lane: usize, unit: Unit<Envelope>) {
        self.of(kind)[lane].send(ToLane::Unit(unit));
    }

    /// Sends every lane a message.
    pub fn send_all(&self, message: &impl Fn() -> ToLane) {
        for inbox in self.writes.iter().chain(&self.reads) {
            inbox.send(message());
        }
    }

    /// Sends every lane a message with a channel for the answer.
    pub fn ask<T>(&self, message: &impl Fn(oneshot::Sender<T>) -> ToLane) -> Vec<oneshot::Receiver<T>> {
        let ask = |inbox: &Arc<Inbox>| {
            let (answer, receiver) = oneshot::channel();
            inbox.send(message(answer));
            receiver
        };
        self.writes.iter().chain(&self.reads).map(ask).collect()
    }
}
