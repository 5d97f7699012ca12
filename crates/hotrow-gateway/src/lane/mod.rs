//! The I/O of a lane: its task carries bytes between the connection and the mailboxes. The lane's state machine decides.
//! Each lane has one task.

mod catalogue_check;
mod connect;
mod context;
mod counting;
mod hold_timer;
mod hot_keys;
mod idle_timer;
mod inbox;
mod mailbox;
mod marks;
mod merged;
mod message;
mod pausing;
mod refusals;
mod replies;
mod slow;
mod snapshot;
mod unread;
mod writer;

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use hotrow_core::classify::Alters;
use hotrow_core::session::{RunOutcome, Statement as _};
use hotrow_lane::lane::{Action, Batch, Event, Failure, Lane, LaneKind, Refusal, Times, Unit};
use hotrow_wire::backend::Problem;

pub use context::LaneContext;
pub use mailbox::Backlog;
pub use message::{CallWait, Envelope, Inbox, Mailbox, Packed, Reader, Returned, ToLane, Unblock};
pub use snapshot::{Detail, LaneSnapshot};

use crate::lane::catalogue_check::{BatchEnd, CheckFailure};
use crate::lane::connect::{LaneConnection, Progress};
use crate::lane::counting::WaitingUnits;
use crate::lane::hold_timer::HoldTimer;
use crate::lane::hot_keys::LaneKeys;
use crate::lane::idle_timer::IdleTimer;
use crate::lane::pausing::Pausing;
use crate::lane::replies::{Replies, ReplyEvent};
use crate::lane::slow::SlowTimer;
use crate::lane::snapshot::LaneTotals;
use crate::lane::writer::Writer;
use crate::metrics::{METRICS, microseconds};
use crate::server::upstream::Error;

/// Runs a lane until its task is aborted.
pub async fn run(context: Arc<LaneContext>, kind: LaneKind, index: usize, inbox: Reader) {
    let mut task = Task {
        connection: LaneConnection::new(context.clone(), kind, index),
        idle_timer: IdleTimer::new(context.config().held_idle),
        context,
        kind,
        index,
        inbox,
        core: Lane::new(kind),
        actions: Vec::new(),
        writer: Writer::default(),
        replies: Replies::default(),
        answers: VecDeque::new(),
        touched: Vec::new(),
        messages: Vec::new(),
        pausing: Pausing::default(),
        totals: LaneTotals::default(),
        hot_keys: LaneKeys::default(),
        done: None,
        executed: None,
        slow_timer: SlowTimer::default(),
        hold_timer: HoldTimer::default(),
        runs_outdated: false,
        waiting: WaitingUnits::default(),
    };
    loop {
        task.take_messages();
        task.close_outdated();
        task.report_paused();
        task.waiting.report(&task.core);
        task.inbox.wake_at(if task.slow_timer.reroutes_units() { 1 } else { task.core.wake_at() });
        task.wait().await;
    }
}

struct Task {
    context: Arc<LaneContext>,
    kind: LaneKind,
    index: usize,
    inbox: Reader,
    core: Lane<Envelope>,
    actions: Vec<Action<Envelope>>,
    connection: LaneConnection,
    idle_timer: IdleTimer,
    writer: Writer,
    replies: Replies,
    /// Replies for batches that are complete or in doubt.
    answers: VecDeque<replies::BatchReplies>,
    /// Mailboxes that have new answers and have to be flushed.
    touched: Vec<Arc<Mailbox>>,
    messages: Vec<ToLane>,
    pausing: Pausing,
    totals: LaneTotals,
    hot_keys: LaneKeys,
    /// When the last batch was done.
    done: Option<Instant>,
    /// When the server had executed the earliest batch of writes, before its commit.
    executed: Option<Instant>,
    slow_timer: SlowTimer,
    hold_timer: HoldTimer,
    /// A batch has run a statement that was analysed before a definition changed.
    runs_outdated: bool,
    waiting: WaitingUnits,
}

impl Task {
    /// Waits for the next event and handles it.
    async fn wait(&mut self) {
        let is_up = self.connection.upstream().is_some();
        let (is_idle, works) = (self.core.is_idle() && is_up, !self.core.under_way().is_empty() && is_up);
        tokio::select! {
            progress = self.connection.progress(&mut self.writer) => match progress {
                Progress::Bytes => {
                    // Units that have arrived by now go into the next batch.
                    self.take_messages();
                    self.take_replies();
                }
                Progress::Written => self.report_written(),
                Progress::Connected => {
                    if let Some(upstream) = self.connection.upstream() {
                        self.context.note_settings(&upstream.parameters);
                    }
                    self.writer.reset(self.connection.mark(), self.connection.needs_block());
                    self.replies.reset();
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
            () = self.slow_timer.expired(), if works && !self.slow_timer.is_slow() => self.batch_is_slow(),
            () = self.hold_timer.expired(), if self.hold_timer.runs() => self.end_hold(),
            () = self.pausing.time_to_look() => self.expire(),
        }
    }

    /// The connection has been idle for too long. The next unit opens another.
    fn close(&mut self) {
        tracing::debug!(lane = self.index, kind = ?self.kind, "an unused connection of a lane is closed");
        self.connection.close();
        self.writer.reset(None, false);
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
        self.leave_old_primary();
        let mut messages = std::mem::take(&mut self.messages);
        self.inbox.take(&mut messages);
        self.core.set_queue_wait(self.context.config().queue_wait);
        for message in messages.drain(..) {
            let event = match message {
                ToLane::Unit(unit) => Event::Submit(unit),
                ToLane::Cancel(session) => Event::Cancel(session),
                ToLane::Gone(session) => Event::Gone(session),
                ToLane::Unblocked(key) => {
                    self.hot_keys.unblocked(key);
                    Event::Unblocked(key)
                }
                ToLane::Pause(done) => {
                    self.pause(true, done);
                    continue;
                }
                ToLane::Renew(done) => {
                    self.pause(false, done);
                    continue;
                }
                ToLane::Resume => {
                    self.resume();
                    continue;
                }
                ToLane::Abandon => {
                    if self.connection.upstream().is_some() {
                        self.connection.close();
                        self.lost();
                    }
                    continue;
                }
                ToLane::Snapshot { detail, answer } => {
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

    fn step(&mut self, event: Event<Envelope>) {
        self.core.step(event, &mut self.actions);
        self.perform();
    }

    fn settle(&mut self) {
        if !self.core.in_doubt() {
            self.connection.settle();
        }
    }

    fn lost(&mut self) {
        METRICS.lost.inc();
        self.totals.losses += 1;
        self.report_written();
        let under_way: usize = self.core.under_way().iter().map(|batch| batch.units.len()).sum();
        tracing::warn!(
            lane = self.index,
            kind = ?self.kind,
            under_way,
            waiting = self.core.waiting(),
            "a lane has lost its connection to the server"
        );
        self.answers.extend(self.replies.cut_off(self.core.under_way().front().map(|batch| batch.number)));
        self.writer.reset(None, false);
        self.slow_batch_over();
        self.executed = None;
        self.ask_replica_soon(true);
        self.step(Event::Lost);
    }

    fn report_written(&mut self) {
        while let Some(number) = self.writer.written() {
            self.core.step(Event::Written(number), &mut self.actions);
        }
    }

    fn take_replies(&mut self) {
        while let Some(upstream) = self.connection.upstream() {
            let Some(batch) = self.core.under_way().front() else {
                self.replies.idle(&mut upstream.input);
                self.context.note_settings(&self.replies.take_settings());
                return;
            };
            let end = self.writer.end(batch.number);
            match self.replies.next(&mut upstream.input, batch, end, self.kind) {
                Ok(Some(event)) => self.handle_reply(event, end),
                Ok(None) => return,
                Err(error) => return self.drop_invalid(&error),
            }
        }
    }

    /// The server has sent something invalid.
    fn drop_invalid(&mut self, error: &hotrow_wire::Error) {
        tracing::error!(%error, lane = self.index, "the server sent an invalid answer: connection dropped");
        self.connection.close();
        self.lost();
    }

    fn handle_reply(&mut self, event: ReplyEvent, end: BatchEnd) {
        match event {
            ReplyEvent::Prepared => self.writer.prepared(self.connection.upstream()),
            ReplyEvent::Locked => self.core.step(Event::Locked, &mut self.actions),
            ReplyEvent::Answered(changes) => {
                self.find_waiting_calls();
                self.return_overfull();
                self.core.step(Event::Answered(changes), &mut self.actions);
            }
            ReplyEvent::End(row) => match self.writer.catalogue_check.passed(end, &row) {
                Ok(xid) => {
                    self.executed = Some(Instant::now());
                    self.step(Event::TransactionId(xid));
                }
                Err(error) => self.drop_invalid(&error),
            },
            ReplyEvent::CheckFailed(code) => {
                let had_mark = self.writer.catalogue_check.has_mark();
                let broken = self.writer.catalogue_check.failed(end, &code);
                if had_mark && !self.writer.catalogue_check.has_mark() {
                    tracing::info!(
                        lane = self.index,
                        "a lane's mark can no longer be set: continuing without it"
                    );
                    self.connection.forget_mark();
                }
                let failure = match broken {
                    CheckFailure::Recheck => Failure::Stale,
                    // The replica shows another state of the catalogue than the primary.
                    CheckFailure::Changed if self.context.replica.is_some() => Failure::Behind,
                    CheckFailure::Changed => {
                        tracing::info!(
                            lane = self.index,
                            "a table has changed: its statements are judged again"
                        );
                        self.context.database.catalogue_changed(Alters::Anything);
                        // A rollback does not undo locks and settings of a new trigger.
                        self.renew();
                        Failure::Error
                    }
                    CheckFailure::Unrelated => Failure::Error,
                };
                self.core.step(Event::Failed(failure), &mut self.actions);
            }
            ReplyEvent::Failed(Failure::Behind) => {
                self.writer.replica_check_failed();
                self.ask_replica_soon(false);
                self.core.step(Event::Failed(Failure::Behind), &mut self.actions);
            }
            ReplyEvent::Failed(failure) => self.core.step(Event::Failed(failure), &mut self.actions),
            ReplyEvent::Ready(answers) => {
                // Functions may change settings while they run. The values at the end count.
                self.context.note_settings(&self.replies.take_settings());
                self.return_unread(&answers);
                self.report_times(answers.number);
                self.writer.done(answers.number);
                self.answers.push_back(answers);
                self.slow_batch_over();
                self.slow_timer.restart(Instant::now()); // the next batch, if there is one
                self.step(Event::Ready);
            }
        }
    }

    fn perform(&mut self) {
        let mut actions = std::mem::take(&mut self.actions);
        for action in actions.drain(..) {
            match action {
                Action::Connect => self.connection.connect(self.core.in_doubt()),
                Action::Write(number) => self.write(number),
                Action::Answer(batch) => self.answer(batch),
                Action::Alone(unit, _) if self.context.replica.is_some() => self.failed_on_replica(unit),
                Action::Alone(unit, key) => self.alone(unit, key),
                Action::Return(unit) => self.return_unit(unit, Returned::Resubmit),
                Action::Refuse(units, refusal)
                    if self.context.replica.is_some() && refusal != Refusal::Cancelled =>
                {
                    units.into_iter().for_each(|unit| self.return_unit(unit, Returned::Resubmit));
                }
                Action::Refuse(units, Refusal::NotSent)
                    if self.connection.failure().is_some_and(Error::is_full) =>
                {
                    let alone = |unit| self.return_unit(unit, |packed| Returned::RunAlone(packed, None));
                    units.into_iter().for_each(alone);
                }
                Action::Refuse(units, refusal) => self.refuse(units, refusal),
                Action::Resolve(doubt) => self.connection.resolve(doubt),
                Action::Disconnect => self.connection.close(),
                Action::Hold(time) => self.hold_timer.start(time),
            }
        }
        self.actions = actions;
        for mailbox in self.touched.drain(..) {
            mailbox.flush();
        }
        let core = &self.core;
        self.answers.retain(|answers| core.batch(answers.number).is_some());
    }

    fn write(&mut self, number: u64) {
        let Some(batch) = self.core.batch(number) else { return };
        let number_of_connection = self.connection.number();
        let Some(upstream) = self.connection.upstream() else { return };
        let now = Instant::now();
        self.hold_timer.stop();
        self.idle_timer.restart(now, self.context.config().held_idle);
        if self.core.under_way().len() == 1 {
            self.slow_timer.restart(now);
        }
        METRICS.batch_units.record(batch.units.len() as u64);
        METRICS.queue_microseconds.record(microseconds(now - batch.units[0].payload.since));
        // Such a statement was judged before a definition changed. Its left-over state ends with the connection.
        let is_outdated = |packed: &Envelope| packed.unit.runs().any(|run| run.statement.is_superseded());
        let runs_outdated = batch.units.iter().any(|unit| is_outdated(&unit.payload));
        self.writer.put(batch, self.kind, (now, number_of_connection), &self.context, upstream);
        if self.writer.flush(upstream).is_ok() {
            self.report_written();
        } // reading the connection shows the error again
        self.runs_outdated |= runs_outdated;
    }

    /// Reports how long the server has taken for this batch, which is over.
    fn report_times(&mut self, number: u64) {
        let now = Instant::now();
        let executed = self.executed.take();
        let Some(since) = self.writer.since(number) else { return };
        METRICS.batch_microseconds.record(microseconds(now - since));
        let began = self.done.replace(now).map_or(since, |before| before.max(since));
        let times = Times {
            execution: executed.unwrap_or(now).saturating_duration_since(began),
            commit: executed.map(|executed| now - executed),
        };
        self.core.step(Event::Took(times), &mut self.actions);
    }

    fn answer(&mut self, batch: Batch<Envelope>) {
        let index = self.answers.iter().position(|answers| answers.number == batch.number);
        let Some(answers) = index.and_then(|index| self.answers.remove(index)) else {
            self.refuse(batch.units, Refusal::OutcomeUnknown);
            return;
        };
        self.count(&batch, Instant::now());
        self.context.release(self.kind, self.index, batch.units.iter());
        let measures = batch.units.iter().any(|unit| unit.unmeasured);
        let is_merged = |call: &Range<usize>| call.len() > 1 || batch.units[call.start].claimed.may_wait;
        let calls: Vec<_> =
            batch.calls().map(|call| (batch.answers_owed(&call), is_merged(&call), call)).collect();
        let waits = batch.waits;
        let mut units = batch.units.into_iter().map(|Unit { claimed, mut payload, .. }| {
            payload.unit.claimed = claimed;
            payload
        });
        let on_replica = self.context.replica.is_some();
        let mut first = 0;
        for (owed, is_merged, call) in calls {
            let places = first..first + owed;
            first += owed;
            if is_merged {
                let bytes = answers.of(places.start).unwrap_or_default();
                let waits: Vec<_> = waits.iter().filter_map(|place| place.checked_sub(call.start)).collect();
                self.answer_merged(units.by_ref().take(call.len()).collect(), &waits, bytes, &answers.commit);
                continue;
            }
            let Some(packed) = units.next() else { return };
            if waits.contains(&call.start) {
                self.return_envelope(packed, Returned::Resubmit);
                continue;
            }
            if let Some(oversized) = places.clone().position(|place| answers.of(place).is_none()) {
                packed.unit.runs().skip(oversized).take(1).for_each(|run| run.statement.record.exclude());
                let mailbox = packed.mailbox.clone();
                mailbox.give_back(packed.slot, Returned::RunAlone(packed, None));
                continue;
            }
            packed.unit.runs().for_each(|run| {
                if batch.is_too_slow && on_replica {
                    run.statement.record.keep_off_replicas();
                } else if batch.is_too_slow {
                    run.statement.record.failed()
                } else {
                    run.statement.record.succeeded()
                }
                run.statement.record.count(RunOutcome::Packed);
            });
            let bytes = places.filter_map(|place| answers.of(place));
            let put = |out: &mut bytes::BytesMut| packed.unit.put_answer(bytes, &answers.commit, out);
            if packed.mailbox.answer(packed.slot, put) {
                self.touched.push(packed.mailbox);
            }
        }
        if measures {
            self.core.measured(Envelope::is_unmeasured);
        }
    }

    /// The replica is asked at once how far it is, and left out before if its connection is lost.
    fn ask_replica_soon(&self, is_lost: bool) {
        if let Some(replica) = &self.context.replica {
            replica.replicas.ask_soon(replica.index, is_lost);
        }
    }

    /// A unit has failed on a replica. Its session runs it on the primary, which shows whether the fault is the unit's.
    fn failed_on_replica(&mut self, unit: Unit<Envelope>) {
        unit.payload.unit.runs().for_each(|run| run.statement.record.keep_off_replicas());
        self.return_unit(unit, Returned::Resubmit);
    }

    fn alone(&mut self, unit: Unit<Envelope>, key: Option<hotrow_lane::key::Key>) {
        METRICS.rolled_back.inc();
        let (outcome, metric) = match key {
            Some(_) => (RunOutcome::Blocked, &METRICS.blocked),
            None if unit.too_slow => (RunOutcome::TooSlow, &METRICS.too_slow),
            None => (RunOutcome::Failed, &METRICS.failed),
        };
        metric.inc();
        for run in unit.payload.unit.runs().skip(unit.at_fault.into()).take(1) {
            run.statement.record.count(outcome);
            match outcome {
                RunOutcome::TooSlow => run.statement.record.was_too_slow(),
                RunOutcome::Failed => run.statement.record.failed(),
                _ => {}
            }
        }
        if let Some(key) = key {
            self.hot_keys.blocked(key, &unit);
        }
        let unblock = key.map(|key| Unblock { inbox: self.inbox.inbox(), key });
        self.return_unit(unit, |packed| Returned::RunAlone(packed, unblock));
    }

    fn return_unit(&mut self, unit: Unit<Envelope>, returned: impl FnOnce(Envelope) -> Returned) {
        self.context.release(self.kind, self.index, std::iter::once(&unit));
        let Unit { claimed, payload: mut packed, .. } = unit;
        packed.unit.claimed = claimed;
        self.return_envelope(packed, returned);
    }

    /// Gives a unit that has left the lane back to its session.
    fn return_envelope(&mut self, packed: Envelope, returned: impl FnOnce(Envelope) -> Returned) {
        let mailbox = packed.mailbox.clone();
        let slot = packed.slot;
        if !mailbox.give_back(slot, returned(packed)) {
            // The session has ended: the lane forgets its state about it.
            self.core.step(Event::Gone(mailbox.session), &mut self.actions);
        }
    }
}

/// The error for a client that has waited too long during a pause.
pub fn paused(outcome: &str, retry: &str) -> Problem {
    let message = format!("the database was paused by an operator, and not resumed in time; {outcome}");
    let hint = format!(
        "{retry} An operator ends the pause with RESUME; server_wait_ms limits how long clients wait."
    );
    Problem::error("57P03", message, hint)
}
