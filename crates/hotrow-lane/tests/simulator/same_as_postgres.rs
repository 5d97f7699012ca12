//! The simulated server answers the frames of batches like a real one: which frames are skipped after an error, which rows
//! are locked, whether there is an ID, what a commit or a lost connection leaves behind, and when others see the mark.

use std::time::Duration;

use fastrand::Rng;
use hotrow_core::classify::end_of_batch;
use hotrow_core::witness::XactStatus;
use hotrow_testkit::line::{Answer, Line, until};
use hotrow_testkit::seeds;

use super::backend::{Backend, Frame, Message};
use super::history::Work;
use super::model::{Reply, Statement};
use super::server::Server;
use super::workload::{plain, row};

const ROWS: u64 = 3;

/// The value to which a connection with this base sets its mark for the transaction ID 0.
const BASE: u64 = 1 << 50;

/// What an outsider sees.
#[derive(Debug, PartialEq)]
struct State {
    rows: Vec<Reply>,
    locked: Vec<bool>,
    /// The mark has the value of the last ID that the lane has got.
    is_marked: bool,
}

fn statement(random: &mut Rng) -> Statement {
    let (row, n) = (row(random.u64(..ROWS)), random.i64(-4..3));
    match random.u8(..12) {
        ..5 => Statement::Add { row, n },
        5 | 6 => Statement::Demand { row, n },
        7 => Statement::Defer { row, n },
        8 => Statement::Insert { table: 2 },
        9 | 10 => Statement::Read { row },
        _ => Statement::Poison,
    }
}

fn frames(random: &mut Rng, units: &mut Vec<Work>) -> Vec<Frame> {
    let mut frames: Vec<Frame> =
        (0..ROWS).filter(|_| random.u8(..4) == 0).map(|hash| Frame::Lock(row(hash))).collect();
    for _ in 0..random.usize(1..5) {
        units.push(plain(0, statement(random)));
        frames.push(Frame::Statement(units.len() - 1));
    }
    frames.push(Frame::AskXid);
    frames
}

fn put(frame: Frame, units: &[Work], line: &mut Line) {
    let sql = match frame {
        Frame::Lock(row) => format!("select 'locked' from stock where id = {} for no key update", row.hash),
        Frame::Statement(unit) => match units[unit].statement {
            Statement::Add { row, n } => {
                format!("update stock set n = n + {n} where id = {} and n + {n} >= 0 returning n", row.hash)
            }
            Statement::Demand { row, n } => {
                format!("update stock set n = (n + {n})::natural_number where id = {} returning n", row.hash)
            }
            Statement::Defer { row, n } => {
                format!("update stock set n = n + {n} where id = {} returning n", row.hash)
            }
            Statement::Insert { .. } => "insert into inserted default values".to_owned(),
            Statement::Read { row } => format!("select n from stock where id = {}", row.hash),
            Statement::Poison => "select 1 / 0".to_owned(),
            other => panic!("no frame here has {other:?}"),
        },
        Frame::AskXid => end_of_batch(None, Some("mark"), false)
            .replace("$1", "null::timestamptz")
            .replace("$2", &BASE.to_string()),
        Frame::Sync(_) => return line.put_sync(),
        Frame::Part(_) => panic!("no call here is merged"),
    };
    line.put_unnamed_call(&sql, &[]);
}

/// A message without what differs by nature.
fn told(message: &Message) -> String {
    match message {
        Message::Answered(_, Reply::Value(value)) => value.to_string(),
        Message::Answered(_, Reply::NoRow) => "no row".to_owned(),
        Message::Answered(_, Reply::Inserted) => "inserted".to_owned(),
        Message::Locked => "locked".to_owned(),
        Message::Xid(xid) => (if xid.is_some() { "an ID" } else { "no ID" }).to_owned(),
        Message::Failed(_) => "failed".to_owned(),
        Message::Ready => "ready".to_owned(),
        other => panic!("unexpected: {other:?}"),
    }
}

/// A connection of a lane to both servers.
struct Lane {
    backend: Backend,
    line: Line,
    xids: [Option<u64>; 2],
}

impl Lane {
    fn new() -> Self {
        let line = login("simulated");
        line.set_patience(Duration::from_secs(10));
        Lane { backend: Backend::new(Some((0, BASE)), false, false), line, xids: [None, None] }
    }

    /// Both servers run these frames. Returns their messages.
    fn run(&mut self, frames: &[Frame], model: &mut Server, units: &[Work]) -> [Vec<String>; 2] {
        for frame in frames {
            self.backend.input.push_back(*frame);
            self.backend.serve(model, units);
            put(*frame, units, &mut self.line);
        }
        let by_model: Vec<Message> = self.backend.output.drain(..).collect();
        for message in &by_model {
            if let Message::Xid(Some(xid)) = message {
                self.xids[0] = Some(*xid);
            }
        }
        let by_model: Vec<String> = by_model.iter().map(told).collect();
        if !matches!(frames.last(), Some(Frame::Sync(_))) {
            self.line.put_flush();
        }
        self.line.send().expect("the server reads");
        let by_server = self.read(by_model.len());
        [by_model, by_server]
    }

    /// The next messages of the real server, or fewer if it sends no more.
    fn read(&mut self, count: usize) -> Vec<String> {
        let (mut messages, mut values) = (Vec::new(), Vec::new());
        while messages.len() < count
            && let Ok(bytes) = self.line.frame()
        {
            let answer = Answer { bytes, whole: true };
            match answer.frames()[0].0 {
                'D' => values = answer.rows().remove(0),
                'C' => {
                    let value = values.first().cloned().flatten();
                    let is_end = values.len() > 1;
                    if is_end && value.is_some() {
                        self.xids[1] = value.as_ref().and_then(|xid| xid.parse().ok());
                    }
                    messages.push(match (is_end, value) {
                        (true, xid) => (if xid.is_some() { "an ID" } else { "no ID" }).to_owned(),
                        (false, Some(value)) => value,
                        _ if answer.command().is_some_and(|tag| tag == "INSERT 0 1") => "inserted".to_owned(),
                        _ => "no row".to_owned(),
                    });
                    values.clear();
                }
                'E' => {
                    values.clear();
                    messages.push("failed".to_owned());
                }
                'Z' => messages.push("ready".to_owned()),
                _ => {}
            }
        }
        messages
    }

    /// What an outsider sees of both servers.
    fn states(&self, model: &mut Server, outsider: &mut Line) -> [State; 2] {
        let rows = || (0..ROWS).map(row);
        let locked = rows().map(|row| model.is_locked(None, row)).collect();
        let read = |row| model.run_alone(&[(0, Statement::Read { row })]).1[0];
        let is_marked = |mark: u64, xid: Option<u64>| xid.is_none_or(|xid| mark == BASE + xid);
        let by_model = State { rows: rows().map(read).collect(), locked, is_marked: true };
        let by_model = State { is_marked: is_marked(model.mark(0), self.xids[0]), ..by_model };
        let number = |text: &Option<String>| text.as_ref().expect("not null").parse().expect("a number");
        let values = outsider.query("select n from stock order by id").rows();
        let lock = |row: u64| format!("select from stock where id = {row} for no key update nowait");
        let mark = number(&outsider.query("select last_value from mark").rows()[0][0]);
        let by_server = State {
            rows: values.iter().map(|row| Reply::Value(number(&row[0]) as i64)).collect(),
            locked: (0..ROWS).map(|row| outsider.query(&lock(row)).error().is_some()).collect(),
            is_marked: is_marked(mark, self.xids[1]),
        };
        [by_model, by_server]
    }

    /// The connection is lost, and the servers have noticed. Returns what they say about the last transaction with an ID.
    fn lose(
        mut self,
        last: &[Frame],
        model: &mut Server,
        units: &[Work],
        outsider: &mut Line,
    ) -> [String; 2] {
        self.backend.input.extend(last);
        self.backend.client_gone = true;
        while !self.backend.dead {
            self.backend.serve(model, units);
        }
        last.iter().for_each(|frame| put(*frame, units, &mut self.line));
        self.line.send().expect("the server reads");
        drop(self.line);
        let backends = "select from pg_stat_activity where application_name = 'simulated'";
        until("the backend has ended", || outsider.query(backends).rows().is_empty());
        let status = match self.xids[0].map(|xid| model.xact_status(xid)) {
            None => "no ID",
            Some(XactStatus::Committed) => "committed",
            Some(XactStatus::Aborted) => "aborted",
            Some(_) => "another",
        };
        let by_server = self.xids[1].map(|xid| {
            let rows = outsider.query(&format!("select pg_xact_status('{xid}')")).rows();
            rows[0][0].clone().expect("the ID is recent")
        });
        [status.to_owned(), by_server.unwrap_or_else(|| "no ID".to_owned())]
    }
}

fn login(name: &str) -> Line {
    Line::to_shared_server(&[("user", "postgres"), ("database", "postgres"), ("application_name", name)])
}

fn compare(seed: u64, outsider: &mut Line) {
    outsider.query("update stock set n = 4 where n <> 4");
    let mut random = Rng::with_seed(seed);
    let (mut model, mut units) = (Server::default(), Vec::new());
    let mut lane = Lane::new();
    let same = |[model, server]: [String; 2], frames: &[Frame], units: &[Work]| {
        let run = || frames.iter().map(|frame| format!("{frame:?}")).collect::<Vec<_>>();
        assert_eq!(
            model,
            server,
            "HOTROW_SEED={seed}: the model and the server after {:#?}\n{units:#?}",
            run()
        );
    };
    for batch in 0..random.u64(1..4) {
        let mut frames = frames(&mut random, &mut units);
        let said = lane.run(&frames, &mut model, &units);
        // The server reports an error before it rolls back.
        let has_failed = said[0].last().is_some_and(|last| last == "failed");
        same(said.map(|said| format!("{said:?}")), &frames, &units);
        if !has_failed {
            let states = lane.states(&mut model, outsider);
            same(states.map(|state| format!("{state:?}")), &frames, &units);
        }
        frames.push(Frame::Sync(batch));
        if random.u8(..4) == 0 {
            let last = if random.bool() { &frames[frames.len() - 1..] } else { &[] };
            let xids = lane.xids;
            let outcomes = lane.lose(last, &mut model, &units, outsider);
            same(outcomes, &frames, &units);
            lane = Lane { xids, ..Lane::new() };
        } else {
            let said = lane.run(&frames[frames.len() - 1..], &mut model, &units);
            same(said.map(|said| format!("{said:?}")), &frames, &units);
        }
        let states = lane.states(&mut model, outsider);
        same(states.map(|state| format!("{state:?}")), &frames, &units);
    }
    lane.lose(&[], &mut model, &units, outsider);
}

#[test]
fn the_simulated_server_answers_batches_like_a_real_one() {
    let mut outsider = login("outsider");
    let made = outsider.query(include_str!("same_as_postgres.sql"));
    assert!(made.error().is_none(), "{:?}", made.error());
    seeds(40).for_each(|seed| compare(seed, &mut outsider));
}
