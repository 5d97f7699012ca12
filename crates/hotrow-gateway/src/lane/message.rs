//! What sessions and lanes send each other: a unit in an envelope that says where its answer goes, what a lane can be told, and
//! what a lane gives back.

use std::sync::Arc;
use std::time::Instant;

use bytes::BytesMut;
use hotrow_core::key::Key;
use hotrow_core::lane::LaneKind;
use hotrow_core::lane::Unit;
use hotrow_core::unit::{self, put_refusals};
use hotrow_core::waiting::NotificationCount;
use hotrow_wire::backend::Problem;
use tokio::sync::oneshot;

use super::snapshot::LaneSnapshot;
use super::{inbox, mailbox};
use crate::statements::Statement;
use crate::statements::counts::RunOutcome;

/// A session's answers.
pub type Mailbox = mailbox::Mailbox<Returned>;

/// A lane's inbox.
pub type Inbox = inbox::Inbox<Message>;

/// A unit that a lane can run.
pub type Packed = unit::Packed<Arc<Statement>>;

/// A statement of such a unit.
pub type Run = unit::Run<Arc<Statement>>;

/// How a statement can be part of such a unit.
pub type Plan = unit::Plan<Arc<Statement>>;

/// Such a unit that is being made.
pub type Draft<'o> = unit::UnitBuilder<'o, Arc<Statement>>;

/// A unit on its way to a lane and back.
#[derive(Debug)]
pub struct Envelope {
    /// The unit.
    pub unit: Packed,
    /// The client that is to be answered.
    pub mailbox: Arc<Mailbox>,
    /// The answer's place there.
    pub slot: u64,
    /// When it came.
    pub came: Instant,
    /// When it was last handed to a lane, or came.
    pub since: Instant,
    /// Of a call that waits: when it has to stop waiting.
    pub deadline: Option<Instant>,
    /// Of a call that may wait: what was known when it was handed to a lane.
    pub mark: Option<NotificationCount>,
    /// How often its session was cancelled before it was.
    pub cancels: u64,
    /// If it succeeds, it gives names of statements or takes them away.
    pub changes_names: bool,
}

impl Envelope {
    /// For a unit that came at this time.
    pub fn new(unit: Packed, mailbox: Arc<Mailbox>, came: Instant) -> Self {
        Envelope {
            unit,
            mailbox,
            slot: 0,
            came,
            since: came,
            deadline: None,
            mark: None,
            cancels: 0,
            changes_names: false,
        }
    }

    /// Whether one of its statements may not be packed any more.
    pub fn has_lost_credit(&self) -> bool {
        self.unit.runs().any(|run| !run.statement.has_credit())
    }

    /// Whether one of its statements writes and returns rows, and was never answered in a lane.
    pub fn is_unmeasured(&self) -> bool {
        self.unit.runs().any(|run| {
            let returns = run.packing.kind == LaneKind::Write && run.packing.returns_rows;
            returns && run.packing.merging.is_none() && run.statement.counts.of(RunOutcome::Packed) == 0
        })
    }

    /// Puts the gateway's own error in its place. True if the caller has to flush the mailbox.
    pub fn refuse(&self, problem: &Problem) -> bool {
        if self.changes_names {
            self.mailbox.refuses(self.slot);
        }
        self.mailbox.answer(self.slot, |out| put_refusals(problem, self.unit.readies(), out))
    }
}

/// What a lane gives back to the session.
#[derive(Debug)]
pub enum Returned {
    /// Run it on a connection of your own. A lane that waits for a unit that is blocked wants to hear when it is done.
    RunAlone(Envelope, Option<Unblock>),
    /// Hand it over again.
    Resubmit(Envelope),
    /// It has found nothing to answer: wait with it, and hand it over again when there may be something.
    Wait(Envelope, CallWait),
}

/// A call that has found nothing: when it is to be asked again, and what its client gets when its time is over.
#[derive(Debug)]
pub struct CallWait {
    /// At the latest then.
    pub again: Instant,
    /// Its time is over.
    pub deadline: Instant,
    /// The whole answer, without a row.
    pub empty: BytesMut,
}

/// What a lane can be told.
#[expect(clippy::large_enum_variant, reason = "nearly all messages are units")]
#[derive(Debug)]
pub enum Message {
    /// Run this.
    Unit(Unit<Envelope>),
    /// The session's client wants its earliest unit cancelled.
    Cancel(u64),
    /// The session has ended.
    Gone(u64),
    /// The unit that was blocked on this key has been run.
    Unblocked(Key),
    /// Come to rest, with no connection, and say so.
    Pause(oneshot::Sender<()>),
    /// Log in anew, and say when the old connection is closed.
    Renew(oneshot::Sender<()>),
    /// Go on.
    Resume,
    /// Report the lane's state.
    Snapshot {
        /// With its units.
        with_units: bool,
        /// Where the report goes.
        answer: oneshot::Sender<LaneSnapshot>,
    },
}

impl inbox::Urgency for Message {
    fn is_urgent(&self) -> bool {
        !matches!(self, Message::Unit(_))
    }
}

/// Tells the lane, when dropped, that the unit which was blocked on this key is done with: it has been run, or its
/// session has ended before. A lane that waits for this in vain would hold up the key for ever.
#[derive(Debug)]
pub struct Unblock {
    /// The lane.
    pub inbox: Arc<Inbox>,
    /// The key.
    pub key: Key,
}

impl Drop for Unblock {
    fn drop(&mut self) {
        self.inbox.send(Message::Unblocked(self.key));
    }
}
