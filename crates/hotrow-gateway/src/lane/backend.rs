//! What a lane's task needs from a kind of database: a connection on which batches are put and from which their events come,
//! and what becomes of units that leave the lane.

use std::fmt::Debug;
use std::future::Future;
use std::time::{Duration, Instant};

use hotrow_core::key::KeyName;
use hotrow_lane::key::Key;
use hotrow_lane::lane::{Batch, Changes, Doubt, Failure, Outcome, Refusal, Unit};

use super::message::Unblock;
use super::shared::LaneShared;
use super::snapshot::Place;

/// An event on a lane's connection.
#[derive(Debug)]
pub enum Progress {
    /// Bytes arrived.
    Bytes,
    /// The operating system has taken more bytes.
    Written,
    /// The connection is up.
    Connected,
    /// The connection could not be made.
    ConnectFailed {
        /// Units stop waiting for it.
        give_up: bool,
    },
    /// The outcome of the transaction in doubt.
    Resolved(Outcome),
    /// The connection is lost.
    Lost,
}

/// What the server's replies say about the earliest batch under way.
#[derive(Debug)]
pub enum BatchEvent {
    /// One more row is locked before the batch's own statements.
    Locked,
    /// The unit with this index has found nothing and waits, or its reply has no room. Comes before `Answered`.
    Waits(usize),
    /// The unit with this index has failed and left nothing behind, and the batch goes on. Comes before `Answered`.
    Leaves(usize, Failure),
    /// One more call is answered, with these changes.
    Answered(Changes),
    /// A statement of the batch is no longer packed. Waiting units that have it go back to their sessions.
    Excluded,
    /// The client of this session does not read its replies.
    Unread(u64),
    /// All statements have run. The transaction has this number, or has written nothing.
    Executed(Option<u64>),
    /// The next unit, or the commit, has failed.
    Failed(Failure),
    /// After the batches under way the connection has to be renewed.
    Renew,
    /// The batch is over.
    Ready(u64),
    /// The server has sent something invalid. The connection is useless.
    Invalid,
}

/// How long a lane waits, by the configuration in force.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// Until it closes an unused connection.
    pub idle: Duration,
    /// Longest estimated wait of a unit that it accepts.
    pub queue: Duration,
    /// Longest wait of a unit for the server, or for the end of a pause.
    pub server: Duration,
}

/// A database's side of one lane.
pub trait Backend: Send + 'static {
    /// A unit on its way to a lane and back.
    type Work: Work;

    /// What the lane shares with the other lanes to the same server.
    fn shared(&self) -> &LaneShared;
    /// How long it waits.
    fn patience(&self) -> Patience;

    /// Begins to make a connection. It waits longer if a commit is in doubt.
    fn connect(&mut self, in_doubt: bool);
    /// Closes the connection.
    fn close(&mut self);
    /// Whether the connection is up.
    fn is_up(&self) -> bool;
    /// Whether the connection has to be renewed after the batches under way. It says so once.
    fn is_outdated(&mut self) -> bool {
        false
    }
    /// Begins to ask for the outcome of a transaction.
    fn resolve(&mut self, doubt: Doubt);
    /// No commit is in doubt any more: a later connection is compared with this one.
    fn settle(&mut self) {}
    /// The next event on the connection. Cancel safe.
    fn progress(&mut self) -> impl Future<Output = Progress> + Send;
    /// The connection is lost while this batch is the earliest one under way.
    fn lost(&mut self, batch: Option<u64>);

    /// Puts a batch on the connection, and as much of it as the socket takes.
    fn put(&mut self, batch: &Batch<Self::Work>);
    /// The next batch that the server can commit, because the operating system has taken all that it needs for this.
    fn written(&mut self) -> Option<u64>;
    /// The next event in the server's replies to the earliest batch under way. None until more bytes arrive.
    fn next(&mut self, batch: Option<&Batch<Self::Work>>) -> Option<BatchEvent>;
    fn has_replies(&self, batch: u64) -> bool;
    /// Drops the replies to other batches than these.
    fn keep_replies(&mut self, is_needed: impl Fn(u64) -> bool);

    /// The batch is committed: answers its units, or gives them back to their sessions if they wait.
    fn answer(&mut self, batch: Batch<Self::Work>);
    /// The units are refused.
    fn refuse(&mut self, units: Vec<Unit<Self::Work>>, refusal: Refusal);
    /// The session must run this unit on a connection of its own, and drop what unblocks its key afterwards.
    fn alone(&mut self, unit: Unit<Self::Work>, unblock: Option<Unblock<Self::Work>>);
    /// The session must submit this unit again.
    fn give_back(&mut self, unit: Unit<Self::Work>);
    /// Sends the answers, and returns the sessions that have ended before a unit was given back to them.
    fn flush(&mut self) -> Vec<u64>;

    /// Where the lane leads, for people.
    fn place(&mut self) -> Place {
        Place::default()
    }
}

/// A unit as a lane's task sees it.
pub trait Work: Debug + Send + 'static {
    /// When it arrived.
    fn came(&self) -> Instant;
    /// When it was last given to a lane, or arrived.
    fn since(&self) -> Instant {
        self.came()
    }
    /// Whether its reply's size is unknown.
    fn is_unmeasured(&self) -> bool {
        false
    }
    /// Whether one of its statements is no longer packed, or is superseded.
    fn must_leave_lanes(&self) -> bool {
        false
    }
    /// One of its rows in words.
    fn name_of(&self, _: Key) -> Option<KeyName> {
        None
    }
    /// The tables or functions of its statements.
    fn tables(&self) -> Vec<String>;
    /// The shapes of its statements.
    fn shapes(&self) -> Vec<String> {
        Vec::new()
    }
}
