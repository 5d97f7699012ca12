//! One batch at the server: its bytes, and what its answers mean. No I/O.

use std::collections::VecDeque;

use bytes::{Bytes, BytesMut};
use hotrow_gateway::lanes::BatchEvent;
use hotrow_lane::lane::{Batch, Changes, Failure};
use hotrow_mysql_wire::Reader;
use hotrow_mysql_wire::capabilities::{STATUS_IN_TRANSACTION, STATUS_SESSION_STATE_CHANGED};
use hotrow_mysql_wire::command::{Command, ReplyShape};
use hotrow_mysql_wire::message::{ERR, Err as ErrPacket, OK, Ok as OkPacket};
use hotrow_mysql_wire::packet;
use hotrow_mysql_wire::reply::{Progress, ReplyReader};
use hotrow_mysql_wire::scan::Scanned;

use crate::lane::Statement;

/// The server's errors of a statement that another transaction holds up.
const LOCK_WAIT: [u16; 2] = [1205, 1969];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// The answer to the mark.
    Mark,
    /// The answer to this unit.
    Unit(usize),
    /// The definition of this table.
    Definition(usize),
    Committing,
    RollingBack,
}

/// What the lane does after an answer.
#[derive(Debug, PartialEq, Eq)]
pub enum Step {
    More,
    /// All answers are right.
    Commit,
    RollBack,
    Over {
        was_committed: bool,
    },
    /// The connection is useless.
    Invalid,
}

/// A batch at the server.
#[derive(Debug)]
pub struct Flight {
    pub number: u64,
    /// The units' answers so far.
    pub replies: Vec<Bytes>,
    units: usize,
    stage: Stage,
    failure: Option<Failure>,
    /// The expected definitions of its tables.
    definitions: Vec<String>,
    definition: Option<String>,
    reader: Option<ReplyReader>,
    deprecates_eof: bool,
}

impl Flight {
    /// A batch, and the bytes up to the barrier: its mark, its statements, and the questions for its tables' definitions.
    pub fn new(batch: &Batch<Statement>, lane: &str, deprecates_eof: bool) -> (Self, BytesMut) {
        let mut bytes = BytesMut::new();
        let mut query = |text: &[u8]| {
            packet::put(&mut bytes, 0, &[&[Command::Query as u8][..], text].concat());
        };
        query(format!("call hotrow.mark('{lane}', {})", batch.number).as_bytes());
        let mut tables: Vec<(&str, &str, &str)> = Vec::new();
        for unit in &batch.units {
            query(&unit.payload.text);
            let table = (&*unit.payload.database, &*unit.payload.table, &*unit.payload.definition);
            if !tables.contains(&table) {
                tables.push(table);
            }
        }
        for (database, table, _) in &tables {
            query(format!("select hotrow.definition({}, {})", quoted(database), quoted(table)).as_bytes());
        }
        let flight = Flight {
            number: batch.number,
            replies: Vec::new(),
            units: batch.units.len(),
            stage: Stage::Mark,
            failure: None,
            definitions: tables.into_iter().map(|(.., definition)| definition.to_owned()).collect(),
            definition: None,
            reader: None,
            deprecates_eof,
        };
        (flight, bytes)
    }

    pub fn is_committing(&self) -> bool {
        self.stage == Stage::Committing
    }

    /// Reads the next packet.
    pub fn read(&mut self, payload: Bytes, events: &mut VecDeque<BatchEvent>) -> Step {
        let is_ok = payload.first() == Some(&OK);
        match self.stage {
            Stage::Mark if is_ok => {
                self.stage = Stage::Unit(0);
                Step::More
            }
            Stage::Mark => {
                tracing::warn!(error = ?ErrPacket::read(&payload), "a lane cannot mark its batch");
                Step::Invalid
            }
            Stage::Unit(place) => {
                match judge(&payload) {
                    None if self.failure.is_none() => {
                        events.push_back(BatchEvent::Answered(Changes::Rows));
                        self.replies.push(payload);
                    }
                    failure => self.failure = self.failure.or(failure),
                }
                self.stage =
                    if place + 1 < self.units { Stage::Unit(place + 1) } else { Stage::Definition(0) };
                Step::More
            }
            Stage::Definition(place) => self.definition(place, &payload),
            Stage::Committing if is_ok => Step::Over { was_committed: true },
            Stage::Committing => Step::Invalid, // whether it is committed has to be asked for
            Stage::RollingBack if is_ok => {
                self.rolled_back(&payload, events);
                Step::Over { was_committed: false }
            }
            Stage::RollingBack => Step::Invalid,
        }
    }

    fn definition(&mut self, place: usize, payload: &Bytes) -> Step {
        let scanned = Scanned::of(payload);
        let deprecates_eof = self.deprecates_eof;
        let reader = self.reader.get_or_insert_with(|| {
            ReplyReader::new(ReplyShape::Results, deprecates_eof).expect("a query has a reply")
        });
        match reader.packet(&scanned) {
            Ok(Progress::Continues) => {
                // The last packet before the end is the row.
                self.definition = Reader::new(payload)
                    .length_encoded_bytes()
                    .ok()
                    .map(|text| String::from_utf8_lossy(text).into_owned());
                Step::More
            }
            Ok(Progress::Ended { is_error, .. }) => {
                self.reader = None;
                let is_same = self.definition.take().is_some_and(|now| now == self.definitions[place]);
                if is_error || !is_same {
                    self.failure = self.failure.or(Some(Failure::Behind));
                }
                if place + 1 < self.definitions.len() {
                    self.stage = Stage::Definition(place + 1);
                    return Step::More;
                }
                let (stage, step) = match self.failure {
                    None => (Stage::Committing, Step::Commit),
                    Some(_) => (Stage::RollingBack, Step::RollBack),
                };
                self.stage = stage;
                step
            }
            Err(_) => Step::Invalid,
        }
    }

    fn rolled_back(&self, payload: &[u8], events: &mut VecDeque<BatchEvent>) {
        let failure = self.failure.unwrap_or(Failure::Error);
        if OkPacket::warnings(payload) == Ok(0) {
            return events.push_back(BatchEvent::Failed(failure));
        }
        // A table has become one whose changes cannot be rolled back: what is left of the batch is unknown.
        for _ in self.replies.len()..self.units {
            events.push_back(BatchEvent::Answered(Changes::Rows));
        }
        events.push_back(BatchEvent::Failed(Failure::Uncertain));
    }
}

/// Why an answer fails its batch. The unit then runs alone, so that its error and its warnings are its session's own.
fn judge(payload: &[u8]) -> Option<Failure> {
    if payload.first() == Some(&ERR) {
        let code = ErrPacket::read(payload).map_or(0, |error| error.code);
        return Some(if LOCK_WAIT.contains(&code) { Failure::Blocked } else { Failure::Error });
    }
    let (Ok(ok), Ok(warnings), Some(&OK)) =
        (OkPacket::read(payload), OkPacket::warnings(payload), payload.first())
    else {
        return Some(Failure::Error);
    };
    let status = ok.status & (STATUS_IN_TRANSACTION | STATUS_SESSION_STATE_CHANGED);
    (warnings > 0 || status != STATUS_IN_TRANSACTION).then_some(Failure::Error)
}

/// A name as a literal. Names that are judged have neither quotes nor backslashes.
fn quoted(name: &str) -> String {
    format!("'{}'", name.replace('\'', "''"))
}
