//! A unit on its way between its session and a lane, and what a lane gives back.

use std::sync::Arc;
use std::time::Instant;

use bytes::BytesMut;
use hotrow_core::key::KeyName;
use hotrow_core::limits;
use hotrow_core::replica::LsnBound;
use hotrow_core::session::{self, RunOutcome};
use hotrow_core::unit;
use hotrow_lane::key::Key;
use hotrow_lane::lane::LaneKind;
use hotrow_lane::waiting::NotificationCount;
use hotrow_wire::backend::Problem;
use tokio::sync::oneshot;

use crate::lane::backend::Work;
use crate::lane::{inbox, message};
use crate::mailbox;
use crate::statements::Statement;

/// A session's answers.
pub type Mailbox = mailbox::Mailbox<Returned>;

pub type ToLane = message::ToLane<Envelope>;

/// A lane's inbox.
pub type Inbox = inbox::Inbox<ToLane>;

/// Keeps a key of a lane blocked until it is dropped.
pub type Unblock = message::Unblock<Envelope>;

/// A unit that a lane can run.
pub type Packed = unit::Packed<Arc<Statement>>;

/// A statement of such a unit.
pub type Run = unit::Run<Arc<Statement>>;

/// A unit on its way to a lane and back.
#[derive(Debug)]
pub struct Envelope {
    pub unit: Packed,
    /// The mailbox of the client that gets the answer.
    pub mailbox: Arc<Mailbox>,
    /// The answer's slot in the mailbox.
    pub slot: u64,
    /// When the unit arrived.
    pub came: Instant,
    /// When the unit was last given to a lane, or arrived.
    pub since: Instant,
    /// When a waiting call has to stop waiting.
    pub deadline: Option<Instant>,
    /// The count of notifications when a call that may wait was given to a lane.
    pub notified: Option<NotificationCount>,
    /// Whether its success adds or removes names of statements.
    pub changes_names: bool,
    /// What a replica must show before it runs there.
    pub lsn_bound: Option<LsnBound>,
    /// While it runs alone: keeps its key blocked in its lane until it is dropped.
    pub blocks: Option<oneshot::Sender<()>>,
}

impl Envelope {
    /// For a unit that arrived at this time.
    pub fn new(unit: Packed, mailbox: Arc<Mailbox>, came: Instant) -> Self {
        Envelope {
            unit,
            mailbox,
            slot: 0,
            came,
            since: came,
            deadline: None,
            notified: None,
            changes_names: false,
            lsn_bound: None,
            blocks: None,
        }
    }

    /// Answers it with an error of the gateway. True if the caller has to flush the mailbox. A unit whose transaction stays
    /// open then is not answered: its session refuses it.
    pub fn refuse(&self, problem: &Problem) -> bool {
        if self.changes_names {
            self.mailbox.refuses(self.slot);
        }
        self.mailbox.answer(self.slot, |out| {
            let _ = self.unit.put_refusal(problem, out);
        })
    }
}

/// What a lane gives back to the session.
#[derive(Debug)]
pub enum Returned {
    /// The session runs it on a connection of its own. A lane in which it is blocked waits for the `Unblock`.
    RunAlone(Envelope, Option<Unblock>),
    /// The session submits it again.
    Resubmit(Envelope),
    /// It found nothing: the session waits with it, and submits it again when there may be something.
    Wait(Envelope, CallWait),
    /// The gateway refuses it, and its client is in a failed transaction.
    Refuse(Envelope, Problem),
}

/// When a waiting call is repeated, and the answer that its client gets when the time is over.
#[derive(Debug)]
pub struct CallWait {
    /// The latest time of the next attempt.
    pub retry_at: Instant,
    /// The end of the wait.
    pub deadline: Instant,
    /// The whole answer, without rows.
    pub empty: BytesMut,
}

impl Work for Envelope {
    fn came(&self) -> Instant {
        self.came
    }

    fn since(&self) -> Instant {
        self.since
    }

    /// Whether one of its statements writes and returns rows, and has never been answered in a lane.
    fn is_unmeasured(&self) -> bool {
        self.unit.runs().any(|run| {
            let returns = run.packing.kind == LaneKind::Write && run.packing.returns_rows;
            returns
                && run.packing.merging.is_none()
                && run.statement.record.counts().of(RunOutcome::Packed) == 0
        })
    }

    fn must_leave_lanes(&self) -> bool {
        session::Envelope::must_leave_lanes(self)
    }

    fn name_of(&self, key: Key) -> Option<KeyName> {
        self.unit.name_of(key)
    }

    fn tables(&self) -> Vec<String> {
        self.unit.runs().map(|run| run.packing.table.clone()).collect()
    }

    fn shapes(&self) -> Vec<String> {
        self.unit.runs().map(|run| run.statement.shown(limits::SHOWN_SHAPE_CHARS_MAX)).collect()
    }
}
