//! One batch at the server: its bytes, and what its answers mean. No I/O.

use std::collections::VecDeque;

use bytes::{Bytes, BytesMut};
use hotrow_gateway::lanes::BatchEvent;
use hotrow_lane::lane::{Batch, Changes, Failure};
use hotrow_mysql_wire::WireError;
use hotrow_mysql_wire::capabilities::{STATUS_IN_TRANSACTION, STATUS_SESSION_STATE_CHANGED};
use hotrow_mysql_wire::command::{Command, ReplyShape};
use hotrow_mysql_wire::message::{ERR, Err as ErrPacket, OK, Ok as OkPacket};
use hotrow_mysql_wire::packet;
use hotrow_mysql_wire::reply::{Progress, ReplyReader};
use hotrow_mysql_wire::rows::Whole;
use hotrow_mysql_wire::scan::Scanned;

use crate::lane::Statement;
use crate::lane::checks::{Checks, Effect};
use crate::lane::watch::Watches;

/// The server's errors of a statement that another transaction holds up.
const LOCK_WAIT: [u16; 2] = [1205, 1969];
/// The errors with which the server undoes the whole transaction: a deadlock, and a row that has changed under a snapshot. After
/// others that do so, the mark of the batch is gone.
const UNDO_ALL: [u16; 2] = [1213, 1020];
/// Errors that come alone, after all columns have their values, and whose text is the same in a lane: a duplicate, foreign keys, and
/// a CHECK.
const SINGLE: [u16; 4] = [1062, 1451, 1452, 4025];
/// In the information of an UPDATE that has met no row. A row that it has met can have run a trigger without a change.
const NOTHING_MET: &[u8] = b"Rows matched: 0";
/// The longest text of an error that can be left on the session's connection.
const TEXT_BYTES_MAX: usize = 500;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// The answer to the mark.
    Mark,
    /// The answer to this unit.
    Unit(usize),
    /// The answers to questions about the tables.
    Asking,
    Committing,
    RollingBack,
}

/// What the lane does after an answer.
#[derive(Debug, PartialEq, Eq)]
pub enum Step {
    More,
    /// These statements are sent, and their answers come next.
    Ask(Vec<String>),
    /// All answers are right.
    Commit,
    RollBack,
    Over {
        was_committed: bool,
    },
    /// The connection is useless.
    Invalid,
}

/// What the judgement of a unit's answer needs.
#[derive(Clone, Copy, Debug)]
struct Answering {
    /// It leaves nothing but its error, if it fails.
    never_warns: bool,
    is_execution: bool,
    /// The most rows that it can change.
    rows_max: u64,
}

/// A batch at the server.
#[derive(Debug)]
pub struct Flight {
    pub number: u64,
    /// The answers so far of the units that do not leave the batch.
    pub replies: Vec<Vec<Vec<u8>>>,
    /// Number of units that are answered or leave.
    answered: usize,
    units: Vec<Answering>,
    /// The packets of the answer under way.
    packets: Vec<Vec<u8>>,
    stage: Stage,
    failure: Option<Failure>,
    checks: Checks,
    reader: Option<ReplyReader>,
    deprecates_eof: bool,
}

impl Flight {
    /// A batch, and the bytes up to the barrier: its mark, its statements, and the questions about its tables.
    pub fn new(
        batch: &Batch<Statement>,
        lane: &str,
        deprecates_eof: bool,
        watches: &mut Watches,
    ) -> (Self, BytesMut) {
        let mut bytes = BytesMut::new();
        let mut query = |text: &[u8]| {
            packet::put(&mut bytes, 0, &Command::Query.payload(text));
        };
        query(format!("call hotrow.mark('{lane}', {})", batch.number).as_bytes());
        let statements = batch.units.iter().map(|unit| &unit.payload);
        for statement in statements.clone() {
            query(&statement.text);
        }
        let (checks, questions) = Checks::new(lane, batch.number, statements, watches);
        for question in questions {
            query(question.as_bytes());
        }
        let flight = Flight {
            number: batch.number,
            replies: Vec::new(),
            answered: 0,
            units: batch
                .units
                .iter()
                .map(|unit| Answering {
                    never_warns: unit.payload.never_warns,
                    is_execution: unit.payload.is_execution,
                    rows_max: unit.payload.rows_max,
                })
                .collect(),
            packets: Vec::new(),
            stage: Stage::Mark,
            failure: None,
            checks,
            reader: None,
            deprecates_eof,
        };
        (flight, bytes)
    }

    /// Whether no unit has changed a row. Then there is nothing to commit.
    pub fn changed_nothing(&self) -> bool {
        self.checks.changed_nothing()
    }

    pub fn is_committing(&self) -> bool {
        self.stage == Stage::Committing
    }

    /// Reads the next packet.
    pub fn read(&mut self, payload: Bytes, events: &mut VecDeque<BatchEvent>, watches: &mut Watches) -> Step {
        let is_ok = payload.first() == Some(&OK);
        match self.stage {
            Stage::Mark => {
                self.stage = Stage::Unit(0);
                match OkPacket::read(&payload) {
                    Ok(mark) if mark.affected == 1 => {}
                    // The lane's row is gone. A new connection makes another one.
                    Ok(_) => return Step::Invalid,
                    Err(_) => {
                        tracing::warn!(error = ?ErrPacket::read(&payload), "a lane cannot mark its batch");
                        self.failure = Some(Failure::Behind);
                    }
                }
                Step::More
            }
            Stage::Unit(place) => {
                let progress = self.progress(&payload);
                self.packets.push(payload.to_vec());
                match progress {
                    Ok(Progress::Continues) => {}
                    Ok(Progress::Ended { .. }) => {
                        self.unit(place, events);
                        let is_last = place + 1 == self.units.len();
                        self.stage = if is_last { Stage::Asking } else { Stage::Unit(place + 1) };
                    }
                    Err(_) => return Step::Invalid,
                }
                Step::More
            }
            Stage::Asking => self.answered_question(&payload, watches),
            Stage::Committing if is_ok => Step::Over { was_committed: true },
            Stage::Committing => {
                // Whether it is committed has to be asked for.
                tracing::warn!(error = ?ErrPacket::read(&payload), "a lane cannot commit its batch");
                Step::Invalid
            }
            Stage::RollingBack if is_ok => {
                self.rolled_back(&payload, events);
                Step::Over { was_committed: false }
            }
            Stage::RollingBack => Step::Invalid,
        }
    }

    /// Reads a packet of a reply of one result.
    fn progress(&mut self, payload: &[u8]) -> Result<Progress, WireError> {
        let deprecates_eof = self.deprecates_eof;
        let reader = self.reader.get_or_insert_with(|| {
            ReplyReader::new(ReplyShape::Results, deprecates_eof).expect("a query has a reply")
        });
        let progress = reader.packet(&Scanned::of(payload))?;
        if matches!(progress, Progress::Ended { .. }) {
            self.reader = None;
        }
        Ok(progress)
    }

    fn unit(&mut self, place: usize, events: &mut VecDeque<BatchEvent>) {
        let packets = std::mem::take(&mut self.packets);
        if self.failure.is_some() {
            return;
        }
        match judge(packets, self.units[place], self.deprecates_eof) {
            Judged::Answer(packets) => {
                self.checks.unit(place, effect(&packets));
                self.replies.push(packets);
            }
            Judged::Leaves(failure) => {
                self.checks.left(place);
                if failure == Failure::Error {
                    self.checks.doubt();
                }
                events.push_back(BatchEvent::Leaves(place, failure));
            }
            Judged::Fails => {
                self.failure = Some(Failure::Error);
                return;
            }
        }
        self.answered += 1;
        events.push_back(BatchEvent::Answered(Changes::Rows));
    }

    fn answered_question(&mut self, payload: &Bytes, watches: &mut Watches) -> Step {
        let progress = self.progress(payload);
        self.packets.push(payload.to_vec());
        let is_error = match progress {
            Ok(Progress::Continues) => return Step::More,
            Ok(Progress::Ended { is_error, .. }) => is_error,
            Err(_) => return Step::Invalid,
        };
        let packets = std::mem::take(&mut self.packets);
        let answer = Whole::of(packets, self.deprecates_eof).ok().filter(|_| !is_error);
        self.checks.answered(answer, watches);
        if self.checks.is_waiting() {
            return Step::More;
        }
        if self.failure.is_none() {
            let questions = self.checks.more(watches);
            if !questions.is_empty() {
                return Step::Ask(questions);
            }
        }
        self.failure = self.failure.or(self.checks.failure());
        let (stage, step) = match self.failure {
            None => (Stage::Committing, Step::Commit),
            Some(_) => (Stage::RollingBack, Step::RollBack),
        };
        self.stage = stage;
        step
    }

    fn rolled_back(&self, payload: &[u8], events: &mut VecDeque<BatchEvent>) {
        let failure = self.failure.unwrap_or(Failure::Error);
        if OkPacket::warnings(payload) == Ok(0) {
            return events.push_back(BatchEvent::Failed(failure));
        }
        // A table has become one whose changes cannot be rolled back: what is left of the batch is unknown.
        for _ in self.answered..self.units.len() {
            events.push_back(BatchEvent::Answered(Changes::Rows));
        }
        events.push_back(BatchEvent::Failed(Failure::Uncertain));
    }
}

/// What an answer means.
#[derive(Debug, PartialEq, Eq)]
enum Judged {
    /// This is the unit's answer.
    Answer(Vec<Vec<u8>>),
    /// The unit has left nothing behind. It runs alone, so that its error is its session's own, and the batch goes on.
    Leaves(Failure),
    /// The batch is rolled back, and the unit runs alone, so that its warnings are its session's own.
    Fails,
}

fn judge(packets: Vec<Vec<u8>>, unit: Answering, deprecates_eof: bool) -> Judged {
    let last = packets.last().map_or(&[][..], Vec::as_slice);
    if last.first() == Some(&ERR) {
        return match ErrPacket::read(last) {
            Ok(error) if LOCK_WAIT.contains(&error.code) => Judged::Leaves(Failure::Blocked),
            Ok(error) if UNDO_ALL.contains(&error.code) => Judged::Fails,
            Ok(error) if packets.len() == 1 && unit.never_warns && is_repeatable(&error) => {
                Judged::Answer(packets)
            }
            _ => Judged::Leaves(Failure::Error),
        };
    }
    answer(packets, unit, deprecates_eof).map_or(Judged::Fails, Judged::Answer)
}

/// What an answer tells of rows.
fn effect(packets: &[Vec<u8>]) -> Effect {
    let [packet] = packets else { return Effect::Other };
    match OkPacket::read(packet) {
        Ok(ok) if ok.affected > 0 => Effect::Changed,
        Ok(_) if packet.windows(NOTHING_MET.len()).any(|part| part == NOTHING_MET) => Effect::Nothing,
        _ => Effect::Other,
    }
}

/// The packets as the client gets them. None if it cannot be answered by the lane.
fn answer(packets: Vec<Vec<u8>>, unit: Answering, deprecates_eof: bool) -> Option<Vec<Vec<u8>>> {
    let whole = Whole::of(packets, deprecates_eof).ok()?;
    let (status, warnings) = whole.status_and_warnings().ok()?;
    if whole.affected().is_some_and(|rows| rows > unit.rows_max) {
        return None; // its key is none any more
    }
    let status = status & (STATUS_IN_TRANSACTION | STATUS_SESSION_STATE_CHANGED);
    if warnings > 0 || status != STATUS_IN_TRANSACTION {
        return None;
    }
    let whole = if unit.is_execution { whole.of_execution()? } else { whole };
    Some(whole.outside_of_transaction().ok()?.into_packets())
}

/// Whether the session's connection can be given the same error.
fn is_repeatable(error: &ErrPacket) -> bool {
    SINGLE.contains(&error.code)
        && error.message.is_ascii()
        && error.message.len() <= TEXT_BYTES_MAX
        && error.sqlstate.bytes().all(|byte| byte.is_ascii_alphanumeric())
}
