//! PostgreSQL's side of a lane: its connection, the messages of batches, and what the replies mean.

mod answer;
mod catalog_check;
mod citus;
mod connect;
mod context;
mod envelope;
mod giving_back;
mod left_locks;
mod left_state;
mod marks;
mod merged;
mod refusals;
mod replica;
mod replies;
mod spans;
mod target;
mod unread;
mod writer;

use std::collections::{BTreeMap, VecDeque};
use std::mem::take;
use std::sync::Arc;

use hotrow_core::classify::Alters;
use hotrow_core::session::Statement as _;
use hotrow_lane::lane::{Batch, Doubt, Failure, LaneKind, Refusal, Unit};

pub use citus::NodeTarget;
pub use connect::newest_connection;
pub use context::LaneContext;
pub use envelope::{CallWait, Envelope, Inbox, Mailbox, Packed, Returned, ToLane, Unblock};
pub use refusals::paused;
pub use replica::ReplicaTarget;
pub use target::OwnServer;

use self::catalog_check::{CheckFailure, NO_STATEMENT};
use self::connect::LaneConnection;
use self::envelope::Run;
use self::left_locks::Answer;
use self::left_state::StateCheck;
use self::replies::{BatchReplies, Check, Replies, ReplyEvent};
use self::spans::OpenSpans;
use self::writer::Writer;
use super::backend::{Backend, BatchEvent, Patience, Progress};
use super::shared::LaneShared;
use super::snapshot::Place;

/// The backend of a lane to a PostgreSQL server. The context's target says what is special about the server.
pub struct Postgres {
    context: Arc<LaneContext>,
    kind: LaneKind,
    index: usize,
    connection: LaneConnection,
    writer: Writer,
    replies: Replies,
    /// Events that come before those in the server's next replies.
    events: VecDeque<BatchEvent>,
    /// Replies to batches that are complete or in doubt.
    answers: VecDeque<BatchReplies>,
    /// Mailboxes that have new answers and have to be flushed.
    touched: Vec<Arc<Mailbox>>,
    /// Sessions that had ended when a unit was given back to them.
    gone: Vec<u64>,
    spans: OpenSpans,
    /// A batch has run a statement that was analysed before a definition changed.
    runs_outdated: bool,
}

impl Postgres {
    /// Without a connection yet.
    pub fn new(context: Arc<LaneContext>, kind: LaneKind, index: usize) -> Self {
        Postgres {
            connection: LaneConnection::new(context.clone(), kind, index),
            spans: OpenSpans::new(&context, kind, index),
            context,
            kind,
            index,
            writer: Writer::default(),
            replies: Replies::default(),
            events: VecDeque::new(),
            answers: VecDeque::new(),
            touched: Vec::new(),
            gone: Vec::new(),
            runs_outdated: false,
        }
    }

    /// The event for the lane in this reply, if there is one.
    fn handle(&mut self, reply: ReplyEvent, batch: &Batch<Envelope>) -> Option<BatchEvent> {
        Some(match reply {
            ReplyEvent::Prepared => {
                self.writer.prepared(self.connection.upstream());
                return None;
            }
            ReplyEvent::Locked => BatchEvent::Locked,
            ReplyEvent::Answered(changes) => {
                self.find_waiting_calls(batch);
                self.look_at_size(batch);
                self.events.push_back(BatchEvent::Answered(changes));
                return self.events.pop_front();
            }
            ReplyEvent::Checked(row) => match self.writer.catalog_check.passed(&row) {
                Ok(_) => return None,
                Err(error) => self.invalid(&error),
            },
            ReplyEvent::End(row) => match self.writer.catalog_check.passed(&row) {
                Ok(xid) => BatchEvent::Executed(xid),
                Err(error) => self.invalid(&error),
            },
            ReplyEvent::CheckFailed { code, check: Check::State(check) } => {
                self.state_differs(batch, check, &code)
            }
            ReplyEvent::CheckFailed { code, check } => {
                return self.check_failed(batch, check == Check::Fingerprint, &code);
            }
            ReplyEvent::Failed(failure) => {
                self.writer.has_opening &= failure != Failure::Behind; // it may not be prepared
                BatchEvent::Failed(failure)
            }
            ReplyEvent::Missing => {
                // A function has deallocated it. A new connection prepares all statements again.
                self.events.push_back(BatchEvent::Renew);
                BatchEvent::Failed(Failure::Error)
            }
            ReplyEvent::Ready(answers) => {
                // Functions may change settings while they run. The values at the end count.
                self.context.note_settings(&self.replies.take_settings());
                self.find_unread(batch, &answers);
                let is_full = self.writer.end(answers.number).state == Some(StateCheck::Full);
                if (batch.failure.is_some() || is_full)
                    && let Some(upstream) = self.connection.upstream()
                {
                    self.writer.ask_for_locks(upstream);
                    let _ = self.writer.flush(upstream); // reading the connection shows the error again
                }
                self.writer.done(answers.number);
                self.events.push_back(BatchEvent::Ready(answers.number));
                self.answers.push_back(answers);
                return self.events.pop_front();
            }
        })
    }

    /// The comparison of the session's state has failed. Nothing of the batch is committed.
    fn state_differs(&mut self, batch: &Batch<Envelope>, check: StateCheck, code: &[u8]) -> BatchEvent {
        self.writer.left_state.unprepare();
        let failure = match check {
            // The batch that was to prepare the statement may have failed before it.
            _ if code == NO_STATEMENT => Failure::Stale,
            // The server may have read its configuration again. The first batches of a new connection compare everything.
            StateCheck::Quick => {
                self.events.push_back(BatchEvent::Renew);
                Failure::Stale
            }
            StateCheck::Full => {
                self.exclude_suspects(Some(batch));
                Failure::Error
            }
        };
        self.events.push_back(BatchEvent::Failed(failure));
        self.events.pop_front().unwrap_or(BatchEvent::Failed(failure))
    }

    /// A function has left state: its calls are no longer packed, and the connection ends.
    fn exclude_suspects(&mut self, batch: Option<&Batch<Envelope>>) {
        self.writer.left_state.exclude(batch);
        self.events.extend([BatchEvent::Excluded, BatchEvent::Renew]);
    }

    fn check_failed(
        &mut self,
        batch: &Batch<Envelope>,
        is_comparison: bool,
        code: &[u8],
    ) -> Option<BatchEvent> {
        let had_mark = self.writer.catalog_check.mark().is_some();
        let broken = self.writer.catalog_check.failed(batch.number, is_comparison, code);
        if had_mark && self.writer.catalog_check.mark().is_none() {
            tracing::info!(lane = self.index, "a lane's mark can no longer be set: continuing without it");
            self.connection.forget_mark();
        }
        let failure = match broken {
            CheckFailure::Recheck => Failure::Stale,
            CheckFailure::Changed if self.context.target.is_behind(None) => Failure::Behind,
            CheckFailure::Changed => {
                self.note_change(batch);
                // A rollback does not undo locks and settings of a new trigger.
                self.events.push_back(BatchEvent::Renew);
                Failure::Changed
            }
            CheckFailure::Unrelated => Failure::Error,
        };
        self.events.push_back(BatchEvent::Failed(failure));
        self.events.pop_front()
    }

    /// A batch has met a change of a table. That costs each of its records as much as one failure, however many of its units have to
    /// run again: a table that looks different in every batch takes its statements out of lanes, and a single change does not.
    ///
    /// Units that waited in the lane show the same change once more. Their statements have no verdict in this epoch, and verdicts
    /// that others have by now stay in force.
    fn note_change(&self, batch: &Batch<Envelope>) {
        let runs = || batch.units.iter().flat_map(|unit| unit.payload.unit.runs());
        let records: BTreeMap<_, _> =
            runs().map(|run| &run.statement.record).map(|record| (Arc::as_ptr(record), record)).collect();
        records.values().for_each(|record| record.failed());
        let (epoch, age_max) = (self.context.database.catalog_epoch(), self.context.config().catalog_age);
        let watches = |run: &&Run| run.packing.parts().any(|part| part.watch.is_some());
        if runs().filter(watches).any(|run| run.statement.packing_in(epoch, age_max).is_some()) {
            tracing::info!(lane = self.index, "a table has changed: its statements are judged again");
            self.context.database.catalog_changed(Alters::Anything);
        }
    }

    fn invalid(&self, error: &hotrow_wire::Error) -> BatchEvent {
        tracing::error!(%error, lane = self.index, "the server sent an invalid answer: connection dropped");
        BatchEvent::Invalid
    }
}

impl Backend for Postgres {
    type Work = Envelope;

    fn shared(&self) -> &LaneShared {
        &self.context.shared
    }

    fn patience(&self) -> Patience {
        let config = self.context.config();
        Patience { idle: config.held_idle, queue: config.queue_wait, server: config.server_wait }
    }

    fn connect(&mut self, in_doubt: bool) {
        self.connection.connect(in_doubt);
    }

    fn close(&mut self) {
        self.connection.close();
    }

    fn is_up(&self) -> bool {
        self.connection.is_up()
    }

    fn is_outdated(&mut self) -> bool {
        take(&mut self.runs_outdated)
            || self.connection.upstream().is_some_and(|upstream| upstream.is_left_behind())
    }

    fn resolve(&mut self, doubt: Doubt) {
        self.connection.resolve(doubt);
    }

    fn settle(&mut self) {
        self.connection.settle();
    }

    async fn progress(&mut self) -> Progress {
        let progress = self.connection.progress(&mut self.writer).await;
        if let (Progress::Connected, Some(upstream)) = (&progress, self.connection.upstream()) {
            self.context.note_new_connection(&upstream.parameters);
            let (mark, state) = (self.connection.mark(), self.connection.lane_state());
            self.writer.reset(mark, state, self.connection.needs_block());
            self.replies.reset();
        }
        progress
    }

    fn lost(&mut self, batch: Option<u64>) {
        self.answers.extend(self.replies.cut_off(batch));
        self.events.clear();
        self.writer.reset(None, None, false);
        self.context.target.lost();
    }

    fn put(&mut self, batch: &Batch<Envelope>) {
        let number_of_connection = self.connection.number();
        let Some(upstream) = self.connection.upstream() else { return };
        // Such a statement was judged before a definition changed. Its left-over state ends with the connection.
        let is_outdated = |packed: &Envelope| packed.unit.runs().any(|run| run.statement.is_superseded());
        self.runs_outdated |= batch.units.iter().any(|unit| is_outdated(&unit.payload));
        self.writer.put(batch, self.kind, number_of_connection, &self.context, upstream);
        self.spans.begin(batch);
        let _ = self.writer.flush(upstream); // reading the connection shows the error again
    }

    fn written(&mut self) -> Option<u64> {
        self.writer.written()
    }

    fn next(&mut self, batch: Option<&Batch<Envelope>>) -> Option<BatchEvent> {
        if let Some(event) = self.events.pop_front() {
            return Some(event);
        }
        loop {
            let upstream = self.connection.upstream()?;
            if self.writer.left_locks.is_next(batch.map(|batch| batch.number)) {
                match self.writer.left_locks.read(&mut upstream.input, &mut self.replies) {
                    Ok(Answer::Incomplete) => return None,
                    Ok(Answer::None) => {
                        self.writer.left_state.clear_suspects();
                        continue;
                    }
                    Ok(Answer::Some) => {
                        self.exclude_suspects(None);
                        return self.events.pop_front();
                    }
                    Err(error) => return Some(self.invalid(&error)),
                }
            }
            let Some(batch) = batch else {
                self.replies.idle(&mut upstream.input);
                self.context.note_settings(&self.replies.take_settings());
                return None;
            };
            let end = self.writer.end(batch.number);
            let target = &*self.context.target;
            let event = match self.replies.next(&mut upstream.input, batch, end, self.kind, target) {
                Ok(reply) => self.handle(reply?, batch),
                Err(error) => Some(self.invalid(&error)),
            };
            if event.is_some() {
                return event;
            }
        }
    }

    fn has_replies(&self, batch: u64) -> bool {
        self.answers.iter().any(|answers| answers.number == batch)
    }

    fn keep_replies(&mut self, is_needed: impl Fn(u64) -> bool) {
        self.answers.retain(|answers| is_needed(answers.number));
        self.spans.keep(is_needed);
    }

    fn answer(&mut self, batch: Batch<Envelope>) {
        self.spans.committed(batch.number);
        self.answer_batch(batch);
    }

    fn refuse(&mut self, units: Vec<Unit<Envelope>>, refusal: Refusal) {
        if matches!(refusal, Refusal::OutcomeUnknown | Refusal::WrittenElsewhere) {
            self.spans.unknown(&units);
        }
        self.refuse_units(units, refusal);
    }

    fn alone(&mut self, unit: Unit<Envelope>, unblock: Option<Unblock>) {
        self.run_alone(unit, unblock);
    }

    fn give_back(&mut self, unit: Unit<Envelope>) {
        self.return_unit(unit, Returned::Resubmit);
    }

    fn flush(&mut self) -> Vec<u64> {
        self.touched.drain(..).for_each(|mailbox| mailbox.flush());
        take(&mut self.gone)
    }

    fn place(&mut self) -> Place {
        let backend_pid = self.connection.upstream().map(|upstream| upstream.process_id);
        Place { backend_pid, ..self.context.target.place() }
    }
}
