//! The I/O of a lane: its task carries bytes between the connection and the clients. The lane's state machine
//! (`hotrow_lane::lane`) decides, and a backend speaks the database's protocol. Each lane has one task.

mod backend;
mod counting;
mod hold_timer;
mod hot_keys;
mod inbox;
mod lazy_timer;
mod message;
mod pausing;
mod postgres;
mod report;
mod shared;
mod slow;
mod snapshot;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::time::Instant;

use hotrow_lane::key::Key;
use hotrow_lane::lane::{Action, Batch, Event, Lane, LaneKind, Refusal, Times, Unit, UnitState};

pub use backend::Work;
pub use inbox::Reader;
pub use postgres::{
    CallWait, Envelope, Inbox, LaneContext, Mailbox, NodeTarget, OwnServer, Packed, Postgres, ReplicaTarget,
    Returned, ToLane, Unblock, newest_connection, paused,
};
pub use snapshot::{Detail, LaneSnapshot, LaneState, LaneTotals};

/// What a crate with another kind of database needs.
pub mod task {
    pub use crate::lane::backend::{Backend, BatchEvent, Patience, Progress, Work};
    pub use crate::lane::inbox::{Inbox, Reader};
    pub use crate::lane::message::{ToLane, Unblock};
    pub use crate::lane::run;
    pub use crate::lane::shared::LaneShared;
    pub use crate::lane::snapshot::Place;
}

use crate::lane::backend::{Backend, BatchEvent, Progress};
use crate::lane::counting::WaitingUnits;
use crate::lane::hold_timer::HoldTimer;
use crate::lane::hot_keys::LaneKeys;
use crate::lane::lazy_timer::LazyTimer;
use crate::lane::pausing::Pausing;
use crate::lane::slow::SlowTimer;
use crate::metrics::{METRICS, microseconds};

/// Runs a lane until its task is aborted.
pub async fn run<B: Backend>(
    backend: B,
    kind: LaneKind,
    index: usize,
    inbox: Reader<message::ToLane<B::Work>>,
) {
    let mut task = Task {
        idle_timer: LazyTimer::new(backend.patience().idle),
        backend,
        kind,
        index,
        inbox,
        core: Lane::new(kind),
        actions: Vec::new(),
        messages: Vec::new(),
        pausing: Pausing::default(),
        totals: LaneTotals::default(),
        hot_keys: LaneKeys::default(),
        sent: VecDeque::new(),
        done: None,
        executed: None,
        slow_timer: SlowTimer::default(),
        hold_timer: HoldTimer::default(),
        waiting: WaitingUnits::default(),
    };
    loop {
        task.take_messages();
        if task.renew_if_outdated() {
            task.perform();
        }
        if task.report_paused() {
            task.step(Event::Resume);
        }
        task.waiting.report(&task.core);
        task.inbox.wake_at(if task.slow_timer.reroutes_units() { 1 } else { task.core.wake_at() });
        task.wait().await;
    }
}

struct Task<B: Backend> {
    backend: B,
    kind: LaneKind,
    index: usize,
    inbox: Reader<message::ToLane<B::Work>>,
    core: Lane<B::Work>,
    actions: Vec<Action<B::Work>>,
    idle_timer: LazyTimer,
    messages: Vec<message::ToLane<B::Work>>,
    pausing: Pausing,
    totals: LaneTotals,
    hot_keys: LaneKeys,
    /// When each batch under way was put on the connection.
    sent: VecDeque<(u64, Instant)>,
    /// When the last batch was done.
    done: Option<Instant>,
    /// When the server had executed the earliest batch of writes, before its commit.
    executed: Option<Instant>,
    slow_timer: SlowTimer,
    hold_timer: HoldTimer,
    waiting: WaitingUnits,
}

impl<B: Backend> Task<B> {
    /// Waits for the next event and handles it.
    async fn wait(&mut self) {
        let is_up = self.backend.is_up();
        let (is_idle, works) = (self.core.is_idle() && is_up, !self.core.under_way().is_empty() && is_up);
        tokio::select! {
            progress = self.backend.progress() => match progress {
                Progress::Bytes => {
                    // Units that have arrived by now go into the next batch.
                    self.take_messages();
                    self.take_replies();
                }
                Progress::Written => self.report_written(),
                Progress::Connected => {
                    self.step(Event::Connected);
                    self.settle();
                }
                Progress::ConnectFailed { give_up } => self.step(Event::ConnectFailed { give_up }),
                Progress::Resolved(outcome) => {
                    self.step(Event::Resolved(outcome));
                    self.settle();
                }
                Progress::Lost => self.lost(),
            },
            () = self.inbox.woken() => {}
            () = self.idle_timer.expired(), if is_idle => self.close(),
            () = self.slow_timer.expired(), if works && !self.slow_timer.is_slow() => {
                self.batch_is_slow();
                self.take_messages(); // most waiting units are in the inbox
            }
            () = self.hold_timer.expired(), if self.hold_timer.runs() => self.end_hold(),
            () = self.pausing.time_to_look() => {
                self.expire();
                self.perform();
            }
        }
    }

    /// The connection has been idle for too long. The next unit opens another.
    fn close(&mut self) {
        tracing::debug!(lane = self.index, kind = ?self.kind, "an unused connection of a lane is closed");
        self.backend.close();
        self.step(Event::Lost);
    }

    /// The time for which the next batch is held back is over.
    fn end_hold(&mut self) {
        self.hold_timer.stop();
        self.take_messages();
        self.step(Event::HoldOver);
    }

    fn take_messages(&mut self) {
        if self.hold_timer.is_over() {
            self.hold_timer.stop();
            self.core.step(Event::HoldOver, &mut self.actions);
        }
        self.renew_if_outdated();
        let mut messages = std::mem::take(&mut self.messages);
        self.inbox.take(&mut messages);
        self.core.set_queue_wait(self.backend.patience().queue);
        for message in messages.drain(..) {
            let event = match message {
                message::ToLane::Unit(unit) => Event::Submit(unit),
                message::ToLane::Cancel(session) => Event::Cancel(session),
                message::ToLane::Impatient(session) => Event::Impatient(session),
                message::ToLane::Gone(session) => Event::Gone(session),
                message::ToLane::Unblocked(key) => {
                    self.hot_keys.unblocked(key);
                    Event::Unblocked(key)
                }
                message::ToLane::Pause(done) => {
                    self.pause(true, done);
                    continue;
                }
                message::ToLane::Renew(done) => {
                    self.return_leaving(); // the next batches would fail for them, and be undone
                    self.pause(false, done);
                    continue;
                }
                message::ToLane::Resume => {
                    self.resume();
                    continue;
                }
                message::ToLane::Abandon => {
                    if self.backend.is_up() {
                        self.backend.close();
                        self.lost();
                    }
                    continue;
                }
                message::ToLane::Snapshot { detail, answer } => {
                    let _ = answer.send(self.snapshot(detail)); // the caller may be gone
                    continue;
                }
            };
            self.core.step(event, &mut self.actions);
        }
        self.messages = messages;
        if self.slow_timer.reroutes_units() {
            self.core.step(Event::Slow, &mut self.actions);
        }
        self.perform();
    }

    fn step(&mut self, event: Event<B::Work>) {
        self.core.step(event, &mut self.actions);
        self.perform();
    }

    fn settle(&mut self) {
        if !self.core.in_doubt() {
            self.backend.settle();
        }
    }

    fn lost(&mut self) {
        METRICS.lost.inc();
        self.totals.connections_lost += 1;
        self.report_written();
        let under_way: usize = self.core.under_way().iter().map(|batch| batch.units.len()).sum();
        tracing::warn!(
            lane = self.index,
            kind = ?self.kind,
            under_way,
            waiting = self.core.waiting(),
            "a lane has lost its connection to the server"
        );
        self.backend.lost(self.core.under_way().front().map(|batch| batch.number));
        self.sent.clear();
        self.slow_batch_over();
        self.executed = None;
        self.step(Event::Lost);
    }

    fn report_written(&mut self) {
        while let Some(number) = self.backend.written() {
            self.core.step(Event::Written(number), &mut self.actions);
        }
    }

    fn take_replies(&mut self) {
        while let Some(event) = self.backend.next(self.core.under_way().front()) {
            self.handle_reply(event);
        }
    }

    fn handle_reply(&mut self, event: BatchEvent) {
        let event = match event {
            BatchEvent::Locked => Event::Locked,
            BatchEvent::Waits(place) => Event::Waits(place),
            BatchEvent::Leaves(place, failure) => Event::Leaves(place, failure),
            BatchEvent::Answered(changes) => Event::Answered(changes),
            BatchEvent::Failed(failure) => Event::Failed(failure),
            BatchEvent::Unread(session) => Event::Unread(session),
            BatchEvent::Excluded => return self.return_leaving(),
            BatchEvent::Renew => return self.renew(),
            BatchEvent::Executed(number) => {
                self.executed = Some(Instant::now());
                return self.step(Event::TransactionId(number));
            }
            BatchEvent::Ready(number) => {
                self.report_times(number);
                self.slow_batch_over();
                self.slow_timer.restart(Instant::now()); // the next batch, if there is one
                return self.step(Event::Ready);
            }
            BatchEvent::Invalid => {
                self.backend.close();
                return self.lost();
            }
        };
        self.core.step(event, &mut self.actions);
    }

    /// A statement is no longer packed, or is superseded: waiting units that must leave for it go back to their sessions.
    fn return_leaving(&mut self) {
        let waits = |(place, unit): &(UnitState, &Unit<B::Work>)| {
            *place == UnitState::Queued && unit.payload.must_leave_lanes()
        };
        let sessions: Vec<_> = self.core.units().filter(waits).map(|(_, unit)| unit.session).collect();
        for session in sessions {
            self.core.step(Event::Unread(session), &mut self.actions);
        }
    }

    fn perform(&mut self) {
        let mut actions = std::mem::take(&mut self.actions);
        for action in actions.drain(..) {
            match action {
                Action::Connect => self.backend.connect(self.core.in_doubt()),
                Action::Write(number) => self.write(number),
                Action::Answer(batch) => self.answer(batch),
                Action::Alone(unit, key) => self.alone(unit, key),
                Action::Return(unit) => {
                    self.release(std::slice::from_ref(&unit));
                    self.backend.give_back(unit);
                }
                Action::Refuse(units, refusal) => self.refuse(units, refusal),
                Action::Resolve(doubt) => self.backend.resolve(doubt),
                Action::Disconnect => self.backend.close(),
                Action::Hold(time) => self.hold_timer.start(time),
            }
        }
        self.actions = actions;
        for session in self.backend.flush() {
            // The session has ended: the lane forgets its state about it.
            self.core.step(Event::Gone(session), &mut self.actions);
        }
        let core = &self.core;
        self.backend.keep_replies(|number| core.batch(number).is_some());
    }

    fn write(&mut self, number: u64) {
        let Some(batch) = self.core.batch(number).filter(|_| self.backend.is_up()) else { return };
        let now = Instant::now();
        self.hold_timer.stop();
        self.idle_timer.restart(now, self.backend.patience().idle);
        if self.core.under_way().len() == 1 {
            self.slow_timer.restart(now);
        }
        METRICS.batch_units.record(batch.units.len() as u64);
        METRICS.queue_microseconds.record(microseconds(now - batch.units[0].payload.since()));
        self.sent.push_back((number, now));
        self.backend.put(batch);
        self.report_written();
    }

    /// Reports how long the server has taken for this batch, which is over.
    fn report_times(&mut self, number: u64) {
        let now = Instant::now();
        let executed = self.executed.take();
        let Some(since) = self.sent_at(number) else { return };
        METRICS.batch_microseconds.record(microseconds(now - since));
        let began = self.done.replace(now).map_or(since, |before| before.max(since));
        let times = Times {
            execution: executed.unwrap_or(now).saturating_duration_since(began),
            commit: executed.map(|executed| now - executed),
        };
        self.core.step(Event::Took(times), &mut self.actions);
    }

    /// When the batch was put on the connection. Asked once per batch, in order.
    fn sent_at(&mut self, number: u64) -> Option<Instant> {
        while let Some((batch, since)) = self.sent.pop_front() {
            if batch == number {
                return Some(since);
            }
        }
        None
    }

    fn answer(&mut self, batch: Batch<B::Work>) {
        if !self.backend.has_replies(batch.number) {
            return self.refuse(batch.units, Refusal::OutcomeUnknown);
        }
        self.count(&batch, Instant::now());
        self.release(&batch.units);
        let measures = batch.units.iter().any(|unit| unit.unmeasured);
        self.backend.answer(batch);
        if measures {
            self.core.measured(Work::is_unmeasured);
        }
    }

    fn alone(&mut self, unit: Unit<B::Work>, key: Option<Key>) {
        if let Some(key) = key {
            self.hot_keys.blocked(key, &unit);
        }
        self.release(std::slice::from_ref(&unit));
        let unblock = key.map(|key| message::Unblock { inbox: self.inbox.inbox(), key });
        self.backend.alone(unit, unblock);
    }

    fn refuse(&mut self, units: Vec<Unit<B::Work>>, refusal: Refusal) {
        self.release(&units);
        self.backend.refuse(units, refusal);
    }

    /// These units leave the lane.
    fn release(&self, units: &[Unit<B::Work>]) {
        self.backend.shared().release(self.kind, self.index, units.iter());
    }
}
