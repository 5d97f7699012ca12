//! One of many clients: runs its commands one after another, also across lost connections, and records its answers and
//! their times. Never starts or stops other clients.

use std::sync::atomic::Ordering::SeqCst;
use std::thread;
use std::time::{Duration, Instant};

use hotrow_model::linear::Operation;
use hotrow_model::{Command, Id, Value};
use hotrow_testkit::line::{Answer, Line, Report};

use crate::history::{COUNTERS, ITEMS, OPERATIONS_PER_SUBJECT, PATIENCE, Shared};
use crate::sql::{self, Call};

/// Errors of units that were not run or whose outcome is unknown. The client sends the unit again with the same ID.
const TRY_AGAIN: [&str; 6] = ["08007", "08006", "57P01", "57P02", "57P03", "53300"];

/// Citus reports an unknown outcome as an internal error, if a node ends during the commit.
fn is_to_be_repeated(report: &Report) -> bool {
    TRY_AGAIN.contains(&report.code.as_str())
        || report.message.starts_with("could not commit transaction for shard")
}

/// The state of one client.
pub struct Client<'a> {
    shared: &'a Shared,
    number: usize,
    random: fastrand::Rng,
    pub line: Option<Line>,
}

impl<'a> Client<'a> {
    pub fn new(shared: &'a Shared, number: usize) -> Self {
        Self { shared, number, random: fastrand::Rng::new(), line: None }
    }

    pub fn work(mut self) {
        while !self.shared.stop.load(SeqCst) {
            let Some(command) = self.choose() else { return };
            self.run(command);
        }
    }

    /// A command on a subject that has room left.
    fn choose(&mut self) -> Option<Command> {
        let open = |subject: &&str| {
            let history = self.shared.history.lock().unwrap();
            let name = format!("{}{subject}", self.shared.mark);
            history.get(&name).is_none_or(|operations| operations.len() < OPERATIONS_PER_SUBJECT)
        };
        let subjects: Vec<_> = COUNTERS.into_iter().chain(ITEMS).filter(open).collect();
        let subject = *subjects.get(self.random.usize(0..subjects.len().max(1)))?;
        let name = format!("{}{subject}", self.shared.mark);
        let request = (self.shared.disturbed || self.random.bool()).then(|| Id(self.random.u128(..)));
        if COUNTERS.contains(&subject) {
            return Some(match self.random.u8(0..12) {
                0 => Command::Drain { counter: name, request },
                1 => Command::Counter { counter: name },
                _ => Command::Increment { counter: name, amount: self.random.i64(-5..=7), request },
            });
        }
        let of_item = ITEMS.iter().position(|item| *item == subject);
        let made = self.shared.reservations.lock().unwrap();
        let newest: Vec<Id> =
            made.iter().rev().filter(|(item, _)| Some(*item) == of_item).map(|(_, id)| *id).collect();
        drop(made);
        // The newest reservations, because several clients should decide about the same ones.
        let reservation = newest.get(self.random.usize(0..5)).copied();
        Some(match (self.random.u8(0..16), reservation) {
            (0..4, Some(reservation)) => Command::Cancel { reservation },
            (4..6, Some(reservation)) => Command::Confirm { reservation },
            (6, _) => Command::Sale { item: name },
            (7, _) => Command::Restock { item: name, quantity: self.random.i64(1..=2), request },
            _ => {
                let buyer = ["ann", "bob", "eve", "joe", "sue"][self.random.usize(0..5)].to_owned();
                let quantity = self.random.i64(1..=3);
                Command::Reserve { item: name, buyer, quantity, request, new: Id::default() }
            }
        })
    }

    /// Sends a command until it is answered, and records the answer.
    pub fn run(&mut self, mut command: Command) {
        let subject = self.subject(&command);
        let called = self.shared.tick();
        let mut call = Call::of(&command, self.shared.clock);
        // Not if connections can be lost: a repeated call may be answered "busy" although the first attempt took
        // effect.
        if !self.shared.disturbed && matches!(command, Command::Reserve { .. }) && self.random.u8(0..5) == 0 {
            call = call.nowait();
        }
        let deadline = Instant::now() + PATIENCE;
        let row = loop {
            assert!(Instant::now() < deadline, "{command} was not answered");
            let Some(answer) = self.ask(&call) else { continue };
            if !answer.whole {
                self.line = None;
            }
            if !self.shared.disturbed && (!answer.whole || answer.error().is_some()) {
                return self.shared.fail(format!("{command}: {:?}", answer.error()));
            }
            match answer.error() {
                None if answer.whole => break answer.rows().remove(0),
                None => {}
                Some(report) if is_to_be_repeated(&report) => self.shared.note(&report),
                Some(report) => return self.shared.fail(format!("{command}: {report:?}")),
            }
        };
        let answered = self.shared.tick();
        if row[0].as_deref() == Some("busy") {
            assert_eq!(row[1], None, "nothing is reserved for {command}");
            return; // the call was not decided
        }
        command.give(&sql::new_reservations(&row));
        if let Command::Reserve { item, new, .. } = &command
            && new.0 > 0
        {
            let index = ITEMS.iter().position(|name| item.ends_with(name)).expect("the item exists");
            self.shared.reservations.lock().unwrap().push((index, *new));
        }
        let operation = Operation { command, answer: Some(sql::answer(&row)), called, answered };
        self.shared.history.lock().unwrap().entry(subject).or_default().push(operation);
        self.shared.answered.fetch_add(1, SeqCst);
    }

    /// Sends a call once, in one of the ways that drivers use.
    fn ask(&mut self, call: &Call) -> Option<Answer> {
        if self.line.is_none() {
            let port = &self.shared.ports[self.number % self.shared.ports.len()];
            self.line = connect(port.load(SeqCst));
        }
        let Some(line) = &mut self.line else {
            thread::sleep(Duration::from_millis(5)); // nothing signals that the other end is back
            return None;
        };
        if self.number % 4 == 3 {
            line.put_query(&call.text());
        } else {
            let (sql, values) = call.with_parameters();
            let values: Vec<_> = values.iter().map(Option::as_deref).collect();
            line.put_unnamed_call(&sql, &values);
            line.put_sync();
        }
        if line.send().is_err() {
            self.line = None;
            return None;
        }
        Some(line.answer())
    }

    /// The subject whose history gets the command.
    fn subject(&self, command: &Command) -> String {
        match command.values()[0] {
            Value::Subject(name) => name.to_owned(),
            Value::Reservation(id) => {
                let made = self.shared.reservations.lock().unwrap();
                let (item, _) =
                    made.iter().find(|(_, made)| *made == id).expect("a client has made the reservation");
                format!("{}{}", self.shared.mark, ITEMS[*item])
            }
            other => unreachable!("{other:?}: the command belongs to several histories"),
        }
    }
}

pub fn connect(port: u16) -> Option<Line> {
    let line = Line::connect(port, "public").ok()?.ok()?;
    Some(line)
}

/// A value that a query returns.
pub fn value(line: &mut Line, query: &str) -> String {
    let answer = line.query(query);
    assert_eq!(answer.error(), None, "{query}");
    answer.rows().remove(0).remove(0).unwrap_or_default()
}
