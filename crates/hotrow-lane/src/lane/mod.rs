//! The state machine of a lane. It turns events into actions and has no sockets, no clock and no bytes.
//!
//! A lane is one connection to the server. Waiting units are cut into batches. A batch is one transaction, and its units are answered after the server has confirmed the commit. If a unit fails, the
//! server has rolled back the whole batch. The failed unit then runs on a connection of its session, and the
//! other units run again. If the connection is lost around a commit, the lane asks for the transaction's
//! outcome and guesses nothing.
//!
//! Units of one session always keep their order. Units of one key (for calls that can be merged: of one
//! group) keep their order while nothing fails, nothing waits for a lock and no session has two units under
//! way. In other cases their order is not observable.

mod batch;
mod blocked;
mod checks;
mod doubt;
mod hold;
mod leaving;
mod pace;
mod parting;
mod pause;
mod queue;
mod sending;
mod slow;
mod unit;
mod view;

use std::collections::{HashSet, VecDeque};
use std::time::Duration;

pub use batch::{Batch, Changes, Failure, Times, Xid};
use blocked::Blocked;
use hold::Hold;
use pace::Pace;
use queue::Queue;
pub use unit::{Claim, Claimed, Leaving, Merge, Reads, Unit};
pub use view::UnitState;

use crate::key::Key;
use crate::limits;

/// The kind of units that a lane runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LaneKind {
    /// Statements that write. A lost connection leaves their outcome in doubt.
    Write,
    /// Point reads. They can run again at any time.
    Read,
}

#[derive(Debug)]
pub enum Event<P> {
    /// A session submits a unit.
    Submit(Unit<P>),
    /// The session's client cancels its earliest unit.
    Cancel(u64),
    /// The session waits no longer for another one whose unit waits for an outsider's lock. If its units are parked, it runs the
    /// first one alone. How long the server lets a statement wait for a lock then counts from here.
    Impatient(u64),
    /// The earliest batch takes long, and another lane could run the waiting units.
    Slow,
    /// The session has ended.
    Gone(u64),
    /// The connection is up.
    Connected,
    /// No connection could be opened.
    ConnectFailed {
        /// Waiting units must be refused now.
        give_up: bool,
    },
    /// The operating system has received so much of this batch that the server can commit it.
    Written(u64),
    /// One more row of the earliest batch was locked before the statements run.
    Locked,
    /// The server has completed the reply to one more call of the earliest batch: a statement, or a merged
    /// call. The reply shows these changes.
    Answered(Changes),
    /// The unit with this index in the earliest batch has found nothing and waits, or is a read whose reply
    /// has no room. After the commit its session gets it back, and handles it before all later units of the
    /// session.
    Waits(usize),
    /// The unit with this index in the earliest batch has failed and left nothing behind, and the others are not rolled back.
    /// After the commit its session runs it alone. If an outsider holds a lock, units of its key wait for the end of that.
    Leaves(usize, Failure),
    /// The session's client does not read its replies. Waiting units of the session go back to the session.
    Unread(u64),
    /// The earliest batch's transaction ID arrived. `None` if the batch has written nothing.
    TransactionId(Option<u64>),
    /// The server has taken this long for the earliest batch, whose end comes next.
    Took(Times),
    /// The time for which the next batch is held back is over.
    HoldOver,
    /// The server reported an error for the next call to be answered, or for the commit.
    Failed(Failure),
    /// The server is ready again: the earliest batch is committed, or rolled back if it failed.
    Ready,
    /// The connection is lost.
    Lost,
    /// The outcome of the transaction that the lane asked about.
    Resolved(Outcome),
    /// The session has run the unit that was blocked on this key.
    Unblocked(Key),
    /// Finish the batches under way, close the connection, and keep new units waiting.
    Pause,
    /// Continue after a pause.
    Resume,
}

/// The outcome of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It is committed durably.
    Committed,
    /// It is rolled back.
    Aborted,
    /// It cannot be found out any more.
    Unknown,
}

/// The available evidence about a transaction in doubt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doubt {
    Id(u64),
    /// No ID arrived. The ID is greater than this one, the last that arrived on the connection, if there was
    /// one.
    IdAfter(Option<u64>),
}

/// The reason for an error that the gateway itself reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The commit's outcome cannot be found out.
    OutcomeUnknown,
    /// The replies say that rows were changed, and the server's transaction has changed none.
    WrittenElsewhere,
    /// The server could not be reached, and nothing ran.
    NotSent,
    /// Too many units or bytes wait, or the estimated wait is too long, and nothing ran.
    QueueFull,
    /// The lane has been paused for too long, and nothing ran.
    Paused,
    /// The client cancelled the unit, and nothing ran.
    Cancelled,
}

/// An action for the lane's I/O, to be done in order.
#[derive(Debug)]
pub enum Action<P> {
    /// Open a connection.
    Connect,
    /// Write this batch (see [`Lane::batch`]) and its commit.
    Write(u64),
    /// The batch is committed. Send its replies, in order. Units that wait go back to their sessions.
    Answer(Batch<P>),
    /// The session must run this unit on a connection of its own after all its earlier units. If a key is
    /// given, the lane waits for [`Event::Unblocked`], even if the session has ended and does not run the
    /// unit.
    Alone(Unit<P>, Option<Key>),
    /// The session must submit this unit again after all its earlier units.
    Return(Unit<P>),
    /// Reply with an error of the gateway.
    Refuse(Vec<Unit<P>>, Refusal),
    /// Find out the outcome of a batch's transaction.
    Resolve(Doubt),
    /// Close the connection. Nothing is under way on it.
    Disconnect,
    /// The next batch is held back. Report [`Event::HoldOver`] after this time, and before units that come later.
    Hold(Duration),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ConnectionState {
    Down,
    Connecting,
    Up,
    /// Open, but the first batch under way is in doubt and its outcome is being asked for.
    Resolving,
}

/// The state machine. It appends actions to the caller's list.
#[derive(Debug)]
pub struct Lane<P> {
    kind: LaneKind,
    connection: ConnectionState,
    queue: Queue<P>,
    under_way: VecDeque<Batch<P>>,
    blocked: Blocked<P>,
    /// Sessions that got units back and have not finished them.
    returned: HashSet<u64>,
    batches: u64,
    /// The last transaction ID that arrived on this connection, or on the lost one while batches are in
    /// doubt.
    last_id: Option<u64>,
    /// The length of the queue at which the lane tries a second batch again, after a try with too few units.
    look_again_at: usize,
    hold: Hold,
    pace: Pace,
    /// The longest estimated wait of a new unit.
    queue_wait: Duration,
    /// Number of further batches that lock all rows first, in key order, because outsiders lock them in
    /// another order.
    lock_ahead: u32,
    /// Units of rolled-back batches. They wait until the later batches are resolved.
    again: Vec<Unit<P>>,
    /// Batches under way are finished, and no new batch is sent.
    paused: bool,
}

impl<P> Lane<P> {
    /// A lane without a connection. It opens one when the first unit arrives.
    pub fn new(kind: LaneKind) -> Self {
        Lane {
            kind,
            connection: ConnectionState::Down,
            queue: Queue::default(),
            under_way: VecDeque::new(),
            blocked: Blocked::default(),
            returned: HashSet::new(),
            batches: 0,
            last_id: None,
            look_again_at: 0,
            hold: Hold::default(),
            pace: Pace::default(),
            queue_wait: Duration::from_millis(limits::QUEUE_WAIT_MS),
            lock_ahead: 0,
            again: Vec::new(),
            paused: false,
        }
    }

    /// The reply sizes of more statements are known. Waiting units whose size is known can share batches.
    pub fn measured(&mut self, is_unmeasured: impl Fn(&P) -> bool) {
        for unit in self.queue.iter_mut().filter(|unit| unit.unmeasured) {
            unit.unmeasured = is_unmeasured(&unit.payload);
        }
    }

    /// Processes one event and appends the resulting actions.
    pub fn step(&mut self, event: Event<P>, actions: &mut Vec<Action<P>>) {
        match event {
            Event::Submit(unit) => self.submit(unit, actions),
            Event::Cancel(session) => self.cancel(session, actions),
            Event::Impatient(session) => self.leave_parking(session, actions),
            Event::Slow => self.make_way(actions),
            Event::Gone(session) => drop(self.returned.remove(&session)),
            Event::Connected => {
                self.connection = ConnectionState::Resolving;
                self.resolve_next(actions);
            }
            Event::ConnectFailed { give_up } => self.connect_failed(give_up, actions),
            Event::Written(number) => {
                if let Some(batch) = self.under_way.iter_mut().find(|batch| batch.number == number) {
                    batch.written = true;
                }
            }
            Event::Locked => {
                if let Some(batch) = self.under_way.front_mut() {
                    batch.locked += 1;
                }
            }
            Event::Answered(changes) => {
                if let Some(batch) = self.under_way.front_mut() {
                    batch.answered += 1;
                    batch.changes = batch.changes.max(changes);
                }
            }
            Event::Waits(place) => {
                if let Some(batch) = self.under_way.front_mut() {
                    batch.waits.push(place);
                }
            }
            Event::Leaves(place, failure) => self.leaves(place, failure),
            Event::Unread(session) => {
                if self.queue.has_session(session) {
                    self.returned.insert(session);
                    self.return_followers(session, actions);
                }
            }
            Event::TransactionId(xid) => {
                if let Some(batch) = self.under_way.front_mut() {
                    batch.xid = xid.map_or(Xid::NothingWritten, Xid::Known);
                }
                self.last_id = xid.or(self.last_id);
                self.look_again_at = 0;
                self.send(actions);
            }
            Event::Took(times) => self.took(times),
            Event::HoldOver => {
                self.hold.over();
                self.send(actions);
            }
            Event::Failed(failure) => {
                if let Some(batch) = self.under_way.front_mut() {
                    batch.failure = Some(failure);
                }
            }
            Event::Ready => self.ready(actions),
            Event::Lost => self.lost(actions),
            Event::Resolved(outcome) => self.resolved(outcome, actions),
            Event::Pause => self.pause(actions),
            Event::Resume => self.resume(actions),
            Event::Unblocked(key) => self.unblocked(key, actions),
        }
        self.check();
    }

    fn submit(&mut self, unit: Unit<P>, actions: &mut Vec<Action<P>>) {
        if !self.admits(&unit) {
            actions.push(Action::Refuse(vec![unit], Refusal::QueueFull));
            return;
        }
        if unit.first {
            self.returned.remove(&unit.session);
        }
        self.place(unit, actions);
        self.send(actions);
    }

    fn ready(&mut self, actions: &mut Vec<Action<P>>) {
        let Some(mut batch) = self.under_way.pop_front() else { return };
        debug_assert!(batch.failure.is_some() || batch.is_complete(self.kind), "committed before its end");
        self.look_again_at = 0;
        match batch.failure {
            None if batch.has_written_elsewhere() => {
                self.send(actions);
                actions.push(Action::Refuse(batch.units, Refusal::WrittenElsewhere));
            }
            None => {
                self.part_with_leaving(&mut batch, actions);
                self.keep_waiting_sessions(&batch, actions);
                if self.under_way.is_empty() && !self.paused {
                    let held = self.hold.begin(batch.units.len(), self.queue.len());
                    actions.extend(held.map(Action::Hold));
                }
                // The next batch is sent before the replies of this one. The server works while the gateway
                // sends the replies.
                self.send(actions);
                actions.push(Action::Answer(batch));
            }
            Some(Failure::Behind) => {
                self.give_all_back(batch, actions);
                self.send(actions);
            }
            Some(failure) => {
                self.rolled_back(batch, failure, actions);
                self.send(actions);
            }
        }
    }

    /// The batch was rolled back. The unit that failed leaves the lane, and the others run again.
    fn rolled_back(&mut self, mut batch: Batch<P>, failure: Failure, actions: &mut Vec<Action<P>>) {
        let is_blocked = matches!(failure, Failure::Blocked | Failure::TableBlocked);
        if is_blocked && batch.takes_locks_in_any_order() {
            self.lock_ahead = limits::LOCK_AHEAD_BATCHES;
        }
        let (culprit, row) = match batch.failed_units() {
            Some((units, statement, row)) if units.len() == 1 => {
                let unit = &mut batch.units[units.start];
                if unit.cancelled {
                    return self.rerun(batch, actions); // without the unit
                }
                unit.at_fault = statement;
                unit.leaving = failure.into();
                (units.start, row)
            }
            None if failure == Failure::Stale => {
                let again = batch.units.into_iter().map(Unit::rerun).collect();
                self.requeue(again, actions);
                return;
            }
            Some((units, ..)) => {
                // When the calls run one by one, the failing one shows.
                batch.units[units].iter_mut().for_each(|unit| unit.is_single = true);
                return self.rerun(batch, actions);
            }
            // All statements had been answered. None of them took too long.
            None if failure == Failure::TooSlow => return self.rerun(batch, actions),
            None if batch.may_be_committed_elsewhere() => {
                actions.push(Action::Refuse(batch.units, Refusal::OutcomeUnknown));
                return;
            }
            None => {
                let units = self.refuse_cancelled(batch.units, actions);
                // Every statement succeeded and the commit failed, because of a deferred constraint. Each
                // unit runs alone to get its own result.
                for unit in units {
                    self.set_aside(Unit { leaving: failure.into(), ..unit }, None, actions);
                }
                return;
            }
        };
        let after = batch.units.split_off(culprit + 1);
        let culprit = batch.units.pop().expect("the failed unit is in the batch");
        let session = culprit.session;
        let (followers, others): (Vec<_>, Vec<_>) =
            after.into_iter().partition(|unit| unit.session == session);
        let later = self.queue.take_all_of(session);
        // Earlier waiting units of the session leave with a blocked unit. If they were parked, they would
        // wait for the session to release a key, and the session releases it only after they are done.
        let leaves = |unit: &Unit<P>| is_blocked && unit.session == session;
        let (before, rest): (Vec<_>, Vec<_>) = batch.units.into_iter().partition(leaves);
        let again = rest.into_iter().chain(others).map(Unit::rerun).collect();
        self.requeue(again, actions);
        self.returned.insert(session);
        let at_fault = row.map(|row| (row, false)).or_else(|| culprit.key_at_fault());
        let key = if is_blocked { self.block(at_fault, failure, actions) } else { None };
        let before = self.refuse_cancelled(before, actions);
        actions.extend(before.into_iter().map(|unit| Action::Alone(unit, None)));
        actions.push(Action::Alone(culprit, key));
        actions.extend(followers.into_iter().chain(later).map(Action::Return));
    }

    /// No unit of the batch can run in this lane. All go back to their sessions, and so do later units of these sessions.
    fn give_all_back(&mut self, batch: Batch<P>, actions: &mut Vec<Action<P>>) {
        let units = self.refuse_cancelled(batch.units, actions);
        let sessions: Vec<u64> = units.iter().map(|unit| unit.session).collect();
        self.returned.extend(&sessions);
        actions.extend(units.into_iter().map(Action::Return));
        for session in sessions {
            self.return_followers(session, actions);
        }
    }

    /// All units of a rolled-back batch run again, except cancelled ones.
    fn rerun(&mut self, batch: Batch<P>, actions: &mut Vec<Action<P>>) {
        self.requeue(batch.units.into_iter().map(Unit::rerun).collect(), actions);
    }
}
