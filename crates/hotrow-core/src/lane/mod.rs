//! A lane's life as a state machine: events in, actions out; no sockets, no clock, no bytes.
//!
//! One lane is one upstream connection. What waits is cut into batches, a batch is one implicit transaction, and
//! its units are answered when the server has confirmed the commit. When a unit fails, the server has rolled the
//! whole batch back: the failed unit runs on a connection of its own and the others run again. When the connection
//! is lost around a commit, the lane asks what became of the transaction and guesses nothing.
//!
//! Order that is kept: units of one session. Units of one key (of calls that can be merged, those of one group) keep
//! theirs as long as nothing fails, nothing waits for a lock and no session has two units on their way; past that,
//! nobody can tell who came first.

mod batch;
mod blocked;
mod doubt;
mod pause;
mod queue;
mod slow;
mod unit;
mod view;

use std::collections::{HashSet, VecDeque};

pub use batch::{Batch, Xid};
use blocked::Blocked;
use queue::Queue;
pub use unit::{Claim, Merge, Unit};
pub use view::UnitState;

use crate::key::Key;
use crate::limits;

/// Whether the lane's batches can change anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LaneKind {
    /// Statements that write: a lost connection leaves their outcome in doubt.
    Write,
    /// Point reads: they can be run again at will.
    Read,
}

/// All that can happen to a lane.
#[derive(Debug)]
pub enum Event<P> {
    /// A session hands over a unit.
    Submit(Unit<P>),
    /// The session's client wants its earliest unit cancelled.
    Cancel(u64),
    /// The earliest batch takes long, and another lane could do what waits.
    Slow,
    /// The session has ended.
    Gone(u64),
    /// The connection is up.
    Connected,
    /// No connection could be made; `give_up` when nothing may wait any longer.
    ConnectFailed {
        /// Waiting units are refused now.
        give_up: bool,
    },
    /// The last byte of this batch was handed to the operating system.
    Written(u64),
    /// One more row of the earliest batch was locked ahead.
    Locked,
    /// One more call of the earliest batch was answered in full by the server: a statement, or a merged call.
    Answered,
    /// The unit at this place in the earliest batch has found nothing to answer and waits, or is a read whose answer has no
    /// room: once the batch is committed its session gets it back, and deals with it before all that it has sent after it.
    Waits(usize),
    /// The session's client does not read its answers: what waits of its units goes back to the session.
    Unread(u64),
    /// The earliest batch's transaction id arrived; none when it has written nothing.
    TransactionId(Option<u64>),
    /// The server reported an error for the call that is next to be answered, or for the commit.
    Failed(Failure),
    /// The server is ready again: the earliest batch is committed, or rolled back if it failed.
    Ready,
    /// The connection is gone.
    Lost,
    /// What became of the transaction that the lane asked about.
    Resolved(Outcome),
    /// The unit that was blocked on this key has been run by its session.
    Unblocked(Key),
    /// Finish what is under way, close the connection, and let what comes wait.
    Pause,
    /// Go on.
    Resume,
}

/// Why a unit failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// An error of its own.
    Error,
    /// It waited for a lock that an outsider holds.
    Blocked,
    /// None of its units failed: the catalogue may have changed since its statements were prepared, and they have to be
    /// checked before the batch runs again.
    Stale,
    /// It took longer than a statement may in a lane.
    TooSlow,
}

/// What became of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It is durable.
    Committed,
    /// It left nothing behind.
    Aborted,
    /// Nobody can tell any more.
    Unknown,
}

/// What is known of a transaction in doubt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doubt {
    /// Its id.
    Id(u64),
    /// No id arrived. It is larger than this one, the last that arrived on the connection, if any did.
    IdAfter(Option<u64>),
}

/// Why units get an error from the gateway itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The commit's outcome can't be found out: 08007.
    OutcomeUnknown,
    /// The server could not be reached; nothing was run: 57P03.
    NotSent,
    /// Too much waits already; nothing was run: 53000.
    QueueFull,
    /// The lane pauses, and has done so for too long; nothing was run: 57P03.
    Paused,
    /// The client asked for it; nothing was run: 57014.
    Cancelled,
}

/// What the shell has to do, in this order.
#[derive(Debug)]
pub enum Action<P> {
    /// Make a connection.
    Connect,
    /// Write this batch (see [`Lane::batch`]), ending with one Sync.
    Write(u64),
    /// The batch is committed: give out its answers, in order; but units that wait are their sessions' to deal with.
    Answer(Batch<P>),
    /// Its session shall run this unit on a connection of its own when all its earlier ones are done. Where a key is
    /// given, the lane waits for [`Event::Unblocked`], also if the session is gone and nobody runs the unit.
    Alone(Unit<P>, Option<Key>),
    /// Its session shall hand this unit over again when all its earlier ones are done.
    Return(Unit<P>),
    /// Answer with an error of the gateway.
    Refuse(Vec<Unit<P>>, Refusal),
    /// Find out what became of the transaction of a batch.
    Resolve(Doubt),
    /// Close the connection, on which nothing is under way.
    Disconnect,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ConnectionState {
    Down,
    Connecting,
    Up,
    /// Up, but the first batch under way is in doubt and is being asked about.
    Resolving,
}

/// The state machine. Actions are appended to the caller's list.
#[derive(Debug)]
pub struct Lane<P> {
    kind: LaneKind,
    connection: ConnectionState,
    queue: Queue<P>,
    under_way: VecDeque<Batch<P>>,
    blocked: Blocked<P>,
    /// Sessions that got units back and have not said that they are done with them.
    returned: HashSet<u64>,
    batches: u64,
    /// The last transaction id that arrived on the connection, or on the one that was lost with batches in doubt.
    last_id: Option<u64>,
    /// The queue's length at which a second batch is worth another look, after one in which too few could go.
    look_again_at: usize,
    /// So many batches more take all their locks first, in key order, since others do not take them as this lane would.
    lock_ahead: u32,
    /// Units of batches that left nothing behind, waiting for the batches behind theirs to be resolved.
    again: Vec<Unit<P>>,
    /// What is under way is finished, and nothing new is sent.
    paused: bool,
}

impl<P> Lane<P> {
    /// A lane without a connection; it asks for one when the first unit comes.
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
            lock_ahead: 0,
            again: Vec::new(),
            paused: false,
        }
    }

    /// The sizes of more answers are known by now: those units that wait and are not unmeasured any more share batches.
    pub fn measured(&mut self, is_unmeasured: impl Fn(&P) -> bool) {
        for unit in self.queue.iter_mut().filter(|unit| unit.unmeasured) {
            unit.unmeasured = is_unmeasured(&unit.payload);
        }
    }

    /// Units that wait, parked ones included.
    pub fn waiting(&self) -> usize {
        self.queue.len() + self.blocked.len()
    }

    /// Units that wait and are not parked.
    pub fn queued(&self) -> usize {
        self.queue.len()
    }

    /// Batches that were sent and are not answered, earliest first.
    pub fn under_way(&self) -> &VecDeque<Batch<P>> {
        &self.under_way
    }

    /// Whether a lost connection left a commit in doubt that is not resolved yet.
    pub fn in_doubt(&self) -> bool {
        self.connection != ConnectionState::Up && !self.under_way.is_empty()
    }

    /// How many more units have to come before the lane would do something with them at once.
    pub fn wake_at(&self) -> usize {
        match self.under_way.len() {
            0 => 1,
            1 => self.second_at().saturating_sub(self.queue.len()).max(1),
            _ => limits::BATCH_UNITS_MAX,
        }
    }

    /// Nothing waits and nothing is under way.
    pub fn is_idle(&self) -> bool {
        self.waiting() == 0 && self.under_way.is_empty()
    }

    /// The batch of this number, while it is under way.
    pub fn batch(&self, number: u64) -> Option<&Batch<P>> {
        self.under_way.iter().find(|batch| batch.number == number)
    }

    /// Takes in one event and appends what is to be done.
    pub fn step(&mut self, event: Event<P>, actions: &mut Vec<Action<P>>) {
        match event {
            Event::Submit(unit) => self.submit(unit, actions),
            Event::Cancel(session) => self.cancel(session, actions),
            Event::Slow => self.make_way(actions),
            Event::Gone(session) => {
                self.returned.remove(&session);
            }
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
            Event::Answered => {
                if let Some(batch) = self.under_way.front_mut() {
                    batch.answered += 1;
                }
            }
            Event::Waits(place) => {
                if let Some(batch) = self.under_way.front_mut() {
                    batch.waits.push(place);
                }
            }
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
            Event::Unblocked(key) => {
                let parked = self.blocked.release(key);
                self.queue.prepend(parked);
                self.send(actions);
            }
        }
    }

    fn submit(&mut self, unit: Unit<P>, actions: &mut Vec<Action<P>>) {
        let bytes = self.queue.bytes() + self.blocked.bytes() + unit.bytes;
        if self.waiting() >= limits::LANE_QUEUE_UNITS_MAX || bytes > limits::LANE_QUEUE_BYTES_MAX {
            actions.push(Action::Refuse(vec![unit], Refusal::QueueFull));
            return;
        }
        if unit.first {
            self.returned.remove(&unit.session);
        }
        self.place(unit, actions);
        self.send(actions);
    }

    /// Puts a unit where it waits. A parked unit is overtaken by all that is in the queue or under way, so that it has
    /// nothing of its session in front of it in this lane, and nothing behind it but units of the same key.
    fn place(&mut self, unit: Unit<P>, actions: &mut Vec<Action<P>>) {
        let session = unit.session;
        if self.returned.contains(&session) {
            actions.push(Action::Return(unit));
            return;
        }
        match (self.blocked.key_of(&unit), self.blocked.key_of_session(session)) {
            (None, None) => self.queue.push(unit),
            (Some(key), Some(same)) if key == same => self.blocked.park(key, unit),
            (Some(key), None) if unit.first || !self.has(session) => self.blocked.park(key, unit),
            _ => self.give_back(unit, actions),
        }
    }

    /// Whether units of this session wait in the queue or are with the server.
    fn has(&self, session: u64) -> bool {
        self.under_way.iter().any(|batch| batch.has_session(session)) || self.queue.has_session(session)
    }

    fn give_back(&mut self, unit: Unit<P>, actions: &mut Vec<Action<P>>) {
        self.returned.insert(unit.session);
        actions.push(Action::Return(unit));
    }

    /// Cuts a batch if there is a reason to send one, or asks for the connection that it takes.
    fn send(&mut self, actions: &mut Vec<Action<P>>) {
        if self.paused {
            return self.rest(actions);
        }
        if self.queue.is_empty() {
            return;
        }
        if self.connection == ConnectionState::Down {
            self.connection = ConnectionState::Connecting;
            actions.push(Action::Connect);
        }
        if self.connection != ConnectionState::Up {
            return;
        }
        match self.under_way.len() {
            0 => self.cut(actions),
            n if n < limits::BATCHES_UNDER_WAY_MAX && self.queue.len() >= self.second_at() => {
                self.look_again_at = self.queue.len() + self.least();
                self.cut(actions);
            }
            _ => {}
        }
    }

    /// How many units the next batch must have. A second one goes behind the first when many wait; and while the server
    /// commits the first, when as many wait as that one has: then the server need not wait for them, and batches do not
    /// become smaller by it.
    fn least(&self) -> usize {
        match self.under_way.front() {
            None => 1,
            Some(first) if first.xid == Xid::Missing => limits::SECOND_BATCH_UNITS_MIN,
            Some(first) => first.units.len().min(limits::SECOND_BATCH_UNITS_MIN),
        }
    }

    /// The queue's length at which a second batch is worth a look.
    fn second_at(&self) -> usize {
        self.look_again_at.max(self.least())
    }

    fn cut(&mut self, actions: &mut Vec<Action<P>>) {
        let Some(units) = self.queue.cut(&self.under_way, self.least()) else { return };
        self.batches += 1;
        let mut batch = Batch::new(self.batches, units, !self.queue.is_empty());
        if self.lock_ahead > 0 {
            self.lock_ahead -= 1;
            batch.lock_ahead();
        }
        self.under_way.push_back(batch);
        actions.push(Action::Write(self.batches));
    }

    fn ready(&mut self, actions: &mut Vec<Action<P>>) {
        let Some(batch) = self.under_way.pop_front() else { return };
        self.look_again_at = 0;
        match batch.failure {
            None => {
                self.keep_waiting_sessions(&batch, actions);
                // The next batch goes out before the answers of this one: the server works while we hand them over.
                self.send(actions);
                actions.push(Action::Answer(batch));
            }
            Some(failure) => {
                self.rolled_back(batch, failure, actions);
                self.send(actions);
            }
        }
    }

    /// What sessions have sent behind units of a committed batch that wait goes back to them.
    fn keep_waiting_sessions(&mut self, batch: &Batch<P>, actions: &mut Vec<Action<P>>) {
        for place in &batch.waits {
            let session = batch.units[*place].session;
            self.returned.insert(session);
            self.return_followers(session, actions);
        }
    }

    /// The batch is committed, which was found out after its connection was lost.
    fn answer(&mut self, batch: Batch<P>, actions: &mut Vec<Action<P>>) {
        self.keep_waiting_sessions(&batch, actions);
        actions.push(Action::Answer(batch));
    }

    /// The batch left nothing behind. The unit at fault leaves the lane, the others run again.
    fn rolled_back(&mut self, mut batch: Batch<P>, failure: Failure, actions: &mut Vec<Action<P>>) {
        if failure == Failure::Blocked && batch.takes_locks_in_any_order() {
            self.lock_ahead = limits::LOCK_AHEAD_BATCHES;
        }
        let culprit = match batch.failed_units() {
            Some((units, statement)) if units.len() == 1 => {
                let unit = &mut batch.units[units.start];
                if unit.cancelled {
                    return self.rerun(batch, actions); // without it
                }
                unit.at_fault = statement;
                unit.too_slow = failure == Failure::TooSlow;
                units.start
            }
            None if failure == Failure::Stale => {
                let again = batch.units.into_iter().map(Unit::rerun).collect();
                self.requeue(again, actions);
                return;
            }
            Some((units, _)) => {
                // Which of the calls is at fault shows when they run one by one.
                batch.units[units].iter_mut().for_each(|unit| unit.merge = Some(Merge::NEVER));
                return self.rerun(batch, actions);
            }
            // All statements had been answered: none of them took too long.
            None if failure == Failure::TooSlow => return self.rerun(batch, actions),
            None => {
                let units = self.refuse_cancelled(batch.units, actions);
                // Every statement was fine and the commit was not (a deferred constraint): each unit finds out for itself.
                for unit in units {
                    self.set_aside(unit, None, actions);
                }
                return;
            }
        };
        let after = batch.units.split_off(culprit + 1);
        let culprit = batch.units.pop().expect("it was among the units");
        let session = culprit.session;
        let (followers, others): (Vec<_>, Vec<_>) =
            after.into_iter().partition(|unit| unit.session == session);
        let later = self.queue.take_all_of(session);
        // What the session sent before a unit that is blocked leaves with it: parked, it would wait for its session
        // to release a key, which the session does not before it is done.
        let leaves = |unit: &Unit<P>| failure == Failure::Blocked && unit.session == session;
        let (before, rest): (Vec<_>, Vec<_>) = batch.units.into_iter().partition(leaves);
        let again = rest.into_iter().chain(others).map(Unit::rerun).collect();
        self.requeue(again, actions);
        self.returned.insert(session);
        let key = match failure {
            Failure::Blocked => Some(self.block(culprit.key_at_fault(), actions)),
            Failure::Error | Failure::Stale | Failure::TooSlow => None,
        };
        let before = self.refuse_cancelled(before, actions);
        actions.extend(before.into_iter().map(|unit| Action::Alone(unit, None)));
        actions.push(Action::Alone(culprit, key));
        actions.extend(followers.into_iter().chain(later).map(Action::Return));
    }

    /// All units of a batch that left nothing behind run again, but for those that were cancelled.
    fn rerun(&mut self, batch: Batch<P>, actions: &mut Vec<Action<P>>) {
        self.requeue(batch.units.into_iter().map(Unit::rerun).collect(), actions);
    }

    /// A unit of this key is blocked: what waits for the key from now on is parked, and what its sessions sent after
    /// that goes back to them. Returns the key to release later.
    fn block(&mut self, culprit: Option<Key>, actions: &mut Vec<Action<P>>) -> Key {
        let key = self.blocked.block(culprit);
        for unit in self.queue.take(|_| true) {
            self.place(unit, actions);
        }
        key
    }

    /// Gives a unit back to its session to run it alone, and what the session sent after it to wait for that.
    fn set_aside(&mut self, unit: Unit<P>, key: Option<Key>, actions: &mut Vec<Action<P>>) {
        let session = unit.session;
        self.returned.insert(session);
        actions.push(Action::Alone(unit, key));
        self.return_followers(session, actions);
    }

    fn return_followers(&mut self, session: u64, actions: &mut Vec<Action<P>>) {
        actions.extend(self.queue.take_all_of(session).into_iter().map(Action::Return));
    }
}

#[cfg(test)]
mod tests;
