//! Searches for a serial order of recorded units that explains every answer, by running them one after another on
//! direct connections. Never connects to a gateway.  A unit runs when all units that must precede it have run: the
//! earlier units of its session, those that were answered before it was sent, and every reader of a version that it
//! replaces. Units that show their version must then get exactly the same bytes. Units that do not show it, and changed
//! nothing, are tried in a rolled-back transaction until they fit.

use std::collections::HashMap;

use hotrow_testkit::line::{Answer, Line};

use super::history::{Observation, Place, Record};
use super::units::STATEMENTS;

struct Session {
    line: Line,
    records: Vec<(Record, Place)>,
    next: usize,
}

impl Session {
    fn upcoming(&self) -> Option<&(Record, Place)> {
        self.records.get(self.next)
    }

    /// Whether its next unit was answered before this one was sent.
    fn must_precede(&self, record: &Record) -> bool {
        self.upcoming().is_some_and(|(own, _)| own.answered < record.sent)
    }
}

struct Replay {
    sessions: Vec<Session>,
    control: Line,
    /// Each row's current version.
    versions: HashMap<i64, u64>,
    /// How many units that have not run yet saw this version of this row and left it.
    readers: HashMap<(i64, u64), usize>,
}

/// Runs all sessions' records again on the server at this port. Panics if no order explains them.
pub fn explain(port: u16, schema: &str, sessions: Vec<Vec<Record>>) {
    // A replay need not be durable, and it is faster without waiting for the log.
    let start = format!("{schema} -c synchronous_commit=off");
    let connect = || Line::connect(port, &start).unwrap().expect("the server accepts the login");
    let mut control = connect();
    let rows = control.query("select id, v from account").rows();
    let number =
        |value: &Option<String>| value.as_deref().and_then(|value| value.parse().ok()).expect("a number");
    let versions = rows.iter().map(|row| (number(&row[0]), number(&row[1]) as u64)).collect();
    let mut replay = Replay { sessions: Vec::new(), control, versions, readers: HashMap::new() };
    for records in sessions {
        let mut line = connect();
        prepare(&mut line);
        let with_place = |record: Record| {
            let place = record.place();
            (record, place)
        };
        let records: Vec<_> = records.into_iter().map(with_place).collect();
        for (_, place) in &records {
            for observation in place.exact().iter().filter(|seen| seen.before == seen.after) {
                *replay.readers.entry((observation.row, observation.before)).or_default() += 1;
            }
        }
        replay.sessions.push(Session { line, records, next: 0 });
    }
    replay.run();
}

/// Prepares all statements and returns the answers.
pub fn prepare(line: &mut Line) -> Vec<Answer> {
    for (index, sql) in STATEMENTS.iter().enumerate() {
        line.put_prepare(&format!("s{index}"), sql);
    }
    line.send().unwrap();
    STATEMENTS.iter().map(|_| line.answer()).collect()
}

impl Place {
    fn exact(&self) -> &[Observation] {
        match self {
            Self::Exact(observations) => observations,
            Self::Late => &[],
        }
    }
}

impl Replay {
    fn run(&mut self) {
        loop {
            let mut moved = false;
            for index in 0..self.sessions.len() {
                while self.advance(index) {
                    moved = true;
                }
            }
            let waiting: Vec<usize> =
                (0..self.sessions.len()).filter(|index| self.sessions[*index].upcoming().is_some()).collect();
            if waiting.is_empty() {
                return;
            }
            let reasons = || waiting.iter().map(|index| self.reason(*index)).collect::<Vec<_>>().join("\n\n");
            assert!(moved, "no serial order explains the next units:\n{}", reasons());
        }
    }

    /// The reason, in words, why a session's next unit cannot run.
    fn reason(&self, index: usize) -> String {
        let Some((record, place)) = self.sessions[index].upcoming() else {
            return "the session is done".to_owned();
        };
        let before = self.sessions.iter().enumerate().filter(|(_, other)| other.must_precede(record));
        let before: Vec<usize> = before.map(|(index, _)| index).collect();
        let rows = place.exact().iter().map(|seen| {
            let readers = self.readers.get(&(seen.row, seen.before)).copied().unwrap_or(0);
            format!("{seen:?}, now at {:?} with {readers} readers to come", self.versions.get(&seen.row))
        });
        let rows = rows.collect::<Vec<_>>().join(", ");
        let kind = if matches!(place, Place::Late) { "does not fit yet" } else { "exact" };
        format!("session {index} waits for sessions {before:?}; {kind}: {rows}\n{record:?}")
    }

    /// Runs the session's next unit if it can be the next of all.
    fn advance(&mut self, index: usize) -> bool {
        let session = &self.sessions[index];
        let Some((record, place)) = session.upcoming() else { return false };
        if self.sessions.iter().any(|other| other.must_precede(record)) {
            return false;
        }
        match place {
            Place::Exact(observations) => {
                let ready = observations.iter().all(|seen| {
                    let version = self.versions.get(&seen.row).copied().unwrap_or(0);
                    let readers = self.readers.get(&(seen.row, seen.before)).copied().unwrap_or(0);
                    version == seen.before && (seen.after == seen.before || readers == 0)
                });
                ready && self.run_exactly(index)
            }
            Place::Late => self.try_out(index),
        }
    }

    fn run_exactly(&mut self, index: usize) -> bool {
        let Session { line, records, next } = &mut self.sessions[index];
        let (record, place) = &records[*next];
        if let Some(id) = record.event_id() {
            let set = self.control.query(&format!("select setval('event_id_seq', {id}, false)"));
            assert_eq!(set.error(), None);
        }
        record.unit.put(line);
        line.send().unwrap();
        let answer = line.answer();
        let direct = Record { answer, ..record.clone() };
        assert!(direct.answer == record.answer, "\n{record:?}, and directly\n{direct:?}");
        for seen in place.exact() {
            if seen.before == seen.after {
                *self.readers.get_mut(&(seen.row, seen.before)).expect("the reader was counted") -= 1;
            } else {
                self.versions.insert(seen.row, seen.after);
            }
        }
        *next += 1;
        true
    }

    fn try_out(&mut self, index: usize) -> bool {
        let Session { line, records, next } = &mut self.sessions[index];
        let (record, _) = &records[*next];
        line.put_query("begin");
        record.unit.put(line);
        line.put_query("rollback");
        line.send().unwrap();
        let [_, answer, _] = [line.answer(), line.answer(), line.answer()];
        // The last byte is the transaction status, and a transaction is open here.
        let without_status = |answer: &Answer| answer.bytes[..answer.bytes.len() - 1].to_vec();
        let fits = without_status(&answer) == without_status(&record.answer);
        *next += usize::from(fits);
        fits
    }
}
