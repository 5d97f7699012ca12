//! Lanes of a second kind of database: a counter in memory, whose connection can be cut at every step of a commit. They show
//! that a lane's task needs nothing of PostgreSQL.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use hotrow_lane::key::Key;
use hotrow_lane::lane::{Batch, Changes, Claimed, Doubt, Failure, LaneKind, Outcome, Refusal, Unit};
use tokio::sync::oneshot;

use super::backend::{Backend, BatchEvent, Patience, Progress, Work};
use super::inbox::{Inbox, Reader};
use super::message::{ToLane, Unblock};
use super::run;
use super::shared::LaneShared;

/// Adds a number to the counter. A negative one is an error, which undoes the whole transaction.
#[derive(Debug)]
struct Add {
    amount: i64,
    answer: oneshot::Sender<Answer>,
    came: Instant,
}

/// The counter after the addition, or why there is none.
type Answer = Result<i64, &'static str>;

impl Work for Add {
    fn came(&self) -> Instant {
        self.came
    }

    fn tables(&self) -> Vec<String> {
        vec!["counter".to_owned()]
    }

    fn shapes(&self) -> Vec<String> {
        vec!["add".to_owned()]
    }
}

/// Where the connection is cut during a batch.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Cut {
    Never,
    BeforeNumber,
    BeforeCommit,
    AfterCommit,
}

#[derive(Debug, Default)]
struct Counter {
    value: i64,
    committed: BTreeSet<u64>,
    transactions: u64,
}

struct Toy {
    shared: LaneShared,
    inbox: Arc<Inbox<ToLane<Add>>>,
    counter: Arc<Mutex<Counter>>,
    /// The fate of the next batches. Those after them are not cut.
    cuts: VecDeque<Cut>,
    /// The number of the last transaction before this connection, or before the one whose commit is in doubt.
    before: u64,
    is_up: bool,
    /// The server does nothing more on this connection.
    is_cut: bool,
    progress: VecDeque<Progress>,
    written: VecDeque<u64>,
    events: VecDeque<BatchEvent>,
    replies: BTreeMap<u64, Vec<i64>>,
}

impl Toy {
    /// Runs a batch in one transaction, until the connection is cut.
    fn run(&mut self, batch: &Batch<Add>) {
        let mut counter = self.counter.lock().unwrap();
        counter.transactions += 1;
        let (number, mut value) = (counter.transactions, counter.value);
        let mut replies = Vec::new();
        for unit in &batch.units {
            if unit.payload.amount < 0 {
                self.events.push_back(BatchEvent::Failed(Failure::Error));
                self.events.push_back(BatchEvent::Ready(batch.number));
                return;
            }
            value += unit.payload.amount;
            replies.push(value);
            self.events.push_back(BatchEvent::Answered(Changes::None));
        }
        let cut = self.cuts.pop_front().unwrap_or(Cut::Never);
        self.is_cut = cut != Cut::Never;
        if cut != Cut::BeforeNumber {
            self.events.push_back(BatchEvent::Executed(Some(number)));
        }
        if matches!(cut, Cut::Never | Cut::AfterCommit) {
            counter.value = value;
            counter.committed.insert(number);
        }
        if cut == Cut::Never {
            self.events.push_back(BatchEvent::Ready(batch.number));
        }
        self.replies.insert(batch.number, replies);
    }
}

impl Backend for Toy {
    type Work = Add;

    fn shared(&self) -> &LaneShared {
        &self.shared
    }

    fn patience(&self) -> Patience {
        let long = Duration::from_secs(60);
        Patience { idle: long, queue: long, server: long }
    }

    fn connect(&mut self, _: bool) {
        self.progress.push_back(Progress::Connected);
    }

    fn close(&mut self) {
        self.is_up = false;
    }

    fn is_up(&self) -> bool {
        self.is_up
    }

    fn resolve(&mut self, doubt: Doubt) {
        let counter = self.counter.lock().unwrap();
        let is_committed = match doubt {
            Doubt::Id(number) => counter.committed.contains(&number),
            Doubt::IdAfter(number) => {
                let after = number.unwrap_or(self.before);
                counter.committed.iter().any(|one| *one > after)
            }
        };
        let outcome = if is_committed { Outcome::Committed } else { Outcome::Aborted };
        self.progress.push_back(Progress::Resolved(outcome));
    }

    fn settle(&mut self) {
        self.before = self.counter.lock().unwrap().transactions;
    }

    async fn progress(&mut self) -> Progress {
        let Some(progress) = self.progress.pop_front() else { return std::future::pending().await };
        match &progress {
            Progress::Connected => (self.is_up, self.is_cut) = (true, false),
            Progress::Lost => self.is_up = false,
            _ => {}
        }
        progress
    }

    fn lost(&mut self, _: Option<u64>) {
        self.events.clear();
        self.written.clear();
        self.progress.clear();
    }

    fn put(&mut self, batch: &Batch<Add>) {
        if self.is_cut {
            return;
        }
        self.written.push_back(batch.number);
        self.run(batch);
        self.progress.push_back(Progress::Bytes);
        if self.is_cut {
            self.progress.push_back(Progress::Lost);
        }
    }

    fn written(&mut self) -> Option<u64> {
        self.written.pop_front()
    }

    fn next(&mut self, batch: Option<&Batch<Add>>) -> Option<BatchEvent> {
        batch.and_then(|_| self.events.pop_front())
    }

    fn has_replies(&self, batch: u64) -> bool {
        self.replies.contains_key(&batch)
    }

    fn keep_replies(&mut self, is_needed: impl Fn(u64) -> bool) {
        self.replies.retain(|number, _| is_needed(*number));
    }

    fn answer(&mut self, batch: Batch<Add>) {
        let replies = self.replies.remove(&batch.number).unwrap();
        for (unit, value) in batch.units.into_iter().zip(replies) {
            unit.payload.answer.send(Ok(value)).unwrap();
        }
    }

    fn refuse(&mut self, units: Vec<Unit<Add>>, _: Refusal) {
        for unit in units {
            unit.payload.answer.send(Err("refused")).unwrap();
        }
    }

    fn alone(&mut self, unit: Unit<Add>, _: Option<Unblock<Add>>) {
        let mut counter = self.counter.lock().unwrap();
        let answer = match unit.payload.amount {
            ..0 => Err("negative"),
            amount => {
                counter.value += amount;
                Ok(counter.value)
            }
        };
        unit.payload.answer.send(answer).unwrap();
    }

    fn give_back(&mut self, unit: Unit<Add>) {
        self.inbox.send(ToLane::Unit(Unit { first: true, ..unit }));
    }

    fn flush(&mut self) -> Vec<u64> {
        Vec::new()
    }
}

/// Adds these amounts, each in a session of its own, on a connection that is cut like this. Returns the answers, and the
/// counter at the end.
async fn add(amounts: &[i64], cuts: &[Cut]) -> (Vec<Answer>, i64) {
    let counter = Arc::<Mutex<Counter>>::default();
    let inbox = Arc::<Inbox<ToLane<Add>>>::default();
    let toy = Toy {
        shared: LaneShared::new(1, Arc::default()),
        inbox: inbox.clone(),
        counter: counter.clone(),
        cuts: cuts.iter().copied().collect(),
        before: 0,
        is_up: false,
        is_cut: false,
        progress: VecDeque::new(),
        written: VecDeque::new(),
        events: VecDeque::new(),
        replies: BTreeMap::new(),
    };
    let mut answers = Vec::new();
    for (session, amount) in amounts.iter().enumerate() {
        let (answer, receiver) = oneshot::channel();
        let key = Some(Key { table: 1, hash: 1 });
        let claimed = Claimed { key, rows_per_commit: 100, statements: 1, bytes: 10, ..Claimed::default() };
        let add = Add { amount: *amount, answer, came: Instant::now() };
        toy.shared.assign(LaneKind::Write, claimed.keys(), None).unwrap();
        inbox.send(ToLane::Unit(Unit::new(session as u64, true, claimed, add)));
        answers.push(receiver);
    }
    let lane = tokio::spawn(run(toy, LaneKind::Write, 0, Reader::new(inbox)));
    let mut all = Vec::new();
    for answer in answers {
        all.push(answer.await.unwrap());
    }
    lane.abort();
    let value = counter.lock().unwrap().value;
    (all, value)
}

#[tokio::test]
async fn each_unit_is_answered_once_wherever_the_connection_is_cut() {
    let cuts = [Cut::Never, Cut::BeforeNumber, Cut::BeforeCommit, Cut::AfterCommit];
    for first in cuts {
        for second in cuts {
            let (answers, value) = add(&[1; 300], &[first, second]).await;
            let mut seen: Vec<i64> = answers.into_iter().map(|answer| answer.unwrap()).collect();
            seen.sort_unstable();
            assert_eq!((seen, value), ((1..=300).collect(), 300), "{first:?} {second:?}");
        }
    }
}

#[tokio::test]
async fn a_unit_that_fails_is_the_only_one_with_an_error() {
    let (answers, value) = add(&[1, 2, -1, 4], &[]).await;
    assert_eq!(answers[2], Err("negative"));
    assert_eq!((answers.iter().filter(|answer| answer.is_ok()).count(), value), (3, 7));
}
