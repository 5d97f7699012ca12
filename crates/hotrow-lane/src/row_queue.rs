//! The transactions of clients that work on the same rows. A few of them work at the server, the others wait in the
//! gateway, in order of arrival. Many backends that wait for one row's lock cost the server more than the work,
//! because each change of the row wakes all of them.
//!
//! A transaction that begins with work on a row queues for this row. The rows of later statements are not known when a
//! transaction begins. But transactions that begin with the same statement usually go on in the same way. So they queue
//! for this statement, and the number of them at the server follows from what they meet: it falls when one comes to a
//! row on which two others work already, and rises when one does not. There is no limit as long as none has met others.
//!
//! Some begin with the same statement and only read, or wait long for their clients. They do not compete with
//! others and do not hold them up: a transaction that has not come to a row counts only as a fraction, which is the share
//! of such transactions' time that later led to a row. Because it is a share of time, a transaction whose client thinks for a
//! second weighs as much as a thousand quick ones.
//!
//! A transaction of isolation level REPEATABLE READ or SERIALIZABLE fails if another one commits a change of its row after its
//! first statement has begun. So it begins only when no other one works on the row.
//!
//! Later statements come to rows without queueing. A queue of a row lets a few of them go first, and then its earliest
//! transaction begins, whoever works there.
//!
//! A waiting transaction has done nothing yet: it holds no lock and no connection, so nothing waits for it. If no
//! transaction of a queue ends for a while, one of them is stuck. Then all that wait go to the server, which knows their
//! locks and timeouts. Later ones queue again.

use std::collections::{HashMap, VecDeque};

use crate::key::Key;
use crate::limits;

/// Transactions of a row at the server: one works, and the next one waits there for the lock, so that the row is never
/// idle.
const AT_ROW_MAX: usize = 2;

/// The number of transactions that come to a row with later statements before the earliest one that waits for the row begins.
const OVERTAKING_MAX: usize = 8;

/// The number of transactions that begin with a statement, at the server: counted in parts of one.
const PARTS: usize = 16;
/// More are not limited.
const LIMIT_MAX: usize = 128 * PARTS;
/// Resolution of the weight of a transaction that has not reached a row.
const WEIGHT: u64 = 1 << 10;
/// Each new time decays the old sum by one part in this many.
const DECAY: u64 = 64;

/// Names a queue: the work that its transactions have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum QueueId {
    /// They work on this row.
    Row(Key),
    /// They begin with the statement that has this number.
    FirstStatement(u64),
    /// They are units of several rows, among them this one, that run alone. Two of them could deadlock, so one works at a time.
    Alone(Key),
}

/// What a transaction queues for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    pub queue: QueueId,
    /// No other one may work on the row when it begins.
    pub alone: bool,
}

/// The queues of a database.
#[derive(Debug, Default)]
pub struct RowQueues {
    queues: HashMap<QueueId, State>,
    last_ticket: u64,
}

#[derive(Debug)]
struct State {
    at_server: usize,
    /// Those of them that have come to a row.
    at_rows: usize,
    /// The number at the server above which others wait, in parts of one. `None` is no limit.
    limit: Option<usize>,
    /// Recent times, in microseconds, before transactions came to a row, and of transactions that came to none.
    to_row: u64,
    without_row: u64,
    waiting: VecDeque<Waiter>,
    /// Number of transactions that have come to the row since the earliest one that waits is the earliest.
    overtaking: usize,
    /// Number of transactions that have ended.
    ended: u64,
}

#[derive(Debug)]
struct Waiter {
    ticket: u64,
    alone: bool,
}

/// What a transaction has met until it is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contention {
    /// It came to no row. It took so many microseconds.
    NoRow(u64),
    /// It came to rows. This is the largest number of other transactions that it met on one row.
    Others(usize),
}

/// What a transaction does first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    Works,
    /// It waits, with this ticket. So many transactions have ended before.
    Waits {
        ticket: u64,
        /// Transactions of the queue that have ended.
        ended: u64,
    },
}

impl RowQueues {
    /// Whether no transaction has a place or waits for one.
    pub fn is_empty(&self) -> bool {
        self.queues.values().all(|state| state.at_server == 0 && state.waiting.is_empty())
    }

    /// A transaction begins.
    pub fn join(&mut self, Request { queue, alone }: Request) -> Turn {
        let ticket = self.last_ticket + 1;
        let state = self.state(queue);
        if state.waiting.is_empty() {
            if state.has_room(alone) {
                state.at_server += 1;
                return Turn::Works;
            }
            state.overtaking = 0;
        }
        state.waiting.push_back(Waiter { ticket, alone });
        let ended = state.ended;
        self.last_ticket = ticket;
        Turn::Waits { ticket, ended }
    }

    /// A transaction at the server comes to one more row. Returns how many others work on it.
    pub fn enter_row(&mut self, row: Key) -> usize {
        let state = self.state(QueueId::Row(row));
        state.at_server += 1;
        state.overtaking += 1;
        state.at_server - 1
    }

    /// A transaction at the server comes to its first row, so many microseconds after it began to work.
    pub fn reached_row(&mut self, queue: QueueId, microseconds: u64) {
        if let Some(state) = self.queues.get_mut(&queue) {
            state.at_rows += 1;
            state.took([microseconds, 0]);
        }
    }

    /// A transaction that has worked is over. Returns the tickets of those that work now.
    pub fn leave(&mut self, queue: QueueId, contention: Contention) -> Vec<u64> {
        let Some(state) = self.queues.get_mut(&queue) else { return Vec::new() };
        state.at_server -= 1;
        state.ended += 1;
        if let QueueId::FirstStatement(_) = queue {
            match contention {
                Contention::NoRow(microseconds) => state.took([0, microseconds]),
                Contention::Others(_) => state.at_rows -= 1,
            }
            state.learn(contention);
        }
        let mut next = Vec::new();
        while let Some(&Waiter { ticket, alone }) = state.waiting.front()
            && (state.has_room(alone) || state.overtaking >= OVERTAKING_MAX)
        {
            state.waiting.pop_front();
            state.overtaking = 0;
            state.at_server += 1;
            next.push(ticket);
        }
        if state.at_server == 0 {
            // The facts about a beginning are kept.
            if state.limit == queue.first_limit() || self.queues.len() > limits::ROW_QUEUES_MAX {
                self.queues.remove(&queue);
            }
        }
        next
    }

    /// A transaction does not wait any longer, and does not work either.
    pub fn give_up(&mut self, queue: QueueId, ticket: u64) {
        if let Some(state) = self.queues.get_mut(&queue) {
            state.waiting.retain(|waiter| waiter.ticket != ticket);
        }
    }

    /// A transaction does not wait any longer, and works without its turn.
    pub fn go_on(&mut self, queue: QueueId, ticket: u64) {
        self.give_up(queue, ticket);
        self.state(queue).at_server += 1;
    }

    /// A transaction has waited for a while. If none has ended meanwhile, returns the tickets of all that wait: they
    /// work now. Otherwise it waits on, and `ended` is set to the present number.
    pub fn waited(&mut self, queue: QueueId, ended: &mut u64) -> Vec<u64> {
        let Some(state) = self.queues.get_mut(&queue) else { return Vec::new() };
        if state.ended != *ended {
            *ended = state.ended;
            return Vec::new();
        }
        state.limit = queue.first_limit();
        state.at_server += state.waiting.len();
        state.waiting.drain(..).map(|waiter| waiter.ticket).collect()
    }

    /// The rows for which transactions wait, with their number.
    pub fn waiting(&self) -> impl Iterator<Item = (Key, usize)> {
        let of_row = |(queue, state): (&QueueId, &State)| match queue {
            QueueId::Row(key) if !state.waiting.is_empty() => Some((*key, state.waiting.len())),
            QueueId::Row(_) | QueueId::FirstStatement(_) | QueueId::Alone(_) => None,
        };
        self.queues.iter().filter_map(of_row)
    }

    fn state(&mut self, queue: QueueId) -> &mut State {
        self.queues.entry(queue).or_insert_with(|| State {
            at_server: 0,
            at_rows: 0,
            limit: queue.first_limit(),
            to_row: 0,
            without_row: 0,
            waiting: VecDeque::new(),
            overtaking: 0,
            ended: 0,
        })
    }
}

impl QueueId {
    fn first_limit(self) -> Option<usize> {
        match self {
            QueueId::Row(_) => Some(AT_ROW_MAX * PARTS),
            QueueId::Alone(_) => Some(PARTS),
            QueueId::FirstStatement(_) => None,
        }
    }
}

impl State {
    fn has_room(&self, alone: bool) -> bool {
        if alone && self.at_server > 0 {
            return false;
        }
        self.limit.is_none_or(|limit| self.competing() * (PARTS as u64) < limit as u64 * WEIGHT)
    }

    /// The number at the server that work on rows, or are expected to come to one, in parts of one.
    fn competing(&self) -> u64 {
        let without_row = self.at_server.saturating_sub(self.at_rows) as u64;
        let weight = (self.to_row * WEIGHT).checked_div(self.to_row + self.without_row).unwrap_or(WEIGHT);
        self.at_rows as u64 * WEIGHT + without_row * weight
    }

    /// Notes the time of a transaction before it came to a row, and that of one which came to none.
    fn took(&mut self, [to_row, without_row]: [u64; 2]) {
        self.to_row = self.to_row - self.to_row / DECAY + to_row;
        self.without_row = self.without_row - self.without_row / DECAY + without_row;
    }

    /// Adapts the limit. It falls in proportion and rises by a quarter of a transaction, so that it settles where some
    /// transactions still find that the rows they need have one waiting transaction each.
    fn learn(&mut self, contention: Contention) {
        let has_met = matches!(contention, Contention::Others(others) if others >= AT_ROW_MAX);
        self.limit = match (self.limit, has_met) {
            (None, false) => None,
            (None, true) => Some((self.at_server * PARTS).clamp(AT_ROW_MAX * PARTS, LIMIT_MAX)),
            (Some(limit), true) => Some((limit - limit / PARTS).max(AT_ROW_MAX * PARTS)),
            (Some(limit), false) => Some(limit + PARTS / 4).filter(|limit| *limit < LIMIT_MAX),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: Key = Key { table: 1, hash: 1 };
    const ROW: QueueId = QueueId::Row(KEY);
    const OTHER: QueueId = QueueId::Row(Key { table: 1, hash: 2 });
    const BEGINNING: QueueId = QueueId::FirstStatement(7);
    const DONE: Contention = Contention::NoRow(0);

    fn join(queues: &mut RowQueues, queue: QueueId) -> Turn {
        queues.join(Request { queue, alone: false })
    }

    fn ticket(place: Turn) -> u64 {
        match place {
            Turn::Waits { ticket, .. } => ticket,
            Turn::Works => panic!("works"),
        }
    }

    #[test]
    fn two_work_and_the_others_wait_in_their_order() {
        let mut queues = RowQueues::default();
        assert_eq!([join(&mut queues, ROW), join(&mut queues, ROW)], [Turn::Works, Turn::Works]);
        let tickets = [ticket(join(&mut queues, ROW)), ticket(join(&mut queues, ROW))];
        assert_eq!(join(&mut queues, OTHER), Turn::Works);
        assert_eq!(queues.waiting().collect::<Vec<_>>(), [(KEY, 2)]);
        assert_eq!(queues.leave(ROW, DONE), [tickets[0]]);
        let last = ticket(join(&mut queues, ROW));
        assert_eq!([queues.leave(ROW, DONE), queues.leave(ROW, DONE)], [[tickets[1]], [last]]);
        assert!(queues.leave(ROW, DONE).is_empty());
        assert!(queues.leave(ROW, DONE).is_empty());
        queues.leave(OTHER, DONE);
        assert!(queues.queues.is_empty(), "a row without transactions is forgotten");
    }

    #[test]
    fn one_that_keeps_its_snapshot_begins_when_no_other_one_works() {
        let mut queues = RowQueues::default();
        let mut alone = || queues.join(Request { queue: ROW, alone: true });
        assert_eq!(alone(), Turn::Works);
        let tickets = [ticket(alone()), ticket(alone())];
        let last = ticket(join(&mut queues, ROW));
        assert_eq!(queues.leave(ROW, DONE), [tickets[0]]);
        assert_eq!(queues.leave(ROW, DONE), [tickets[1], last], "the last one does not work alone");
        let alone = ticket(queues.join(Request { queue: ROW, alone: true }));
        assert!(queues.leave(ROW, DONE).is_empty());
        assert_eq!(queues.leave(ROW, DONE), [alone]);
    }

    #[test]
    fn units_that_run_alone_work_one_at_a_time_and_hold_up_no_transaction_of_the_row() {
        const UNITS: QueueId = QueueId::Alone(KEY);
        let mut queues = RowQueues::default();
        assert_eq!([join(&mut queues, UNITS), join(&mut queues, ROW)], [Turn::Works, Turn::Works]);
        let tickets = [ticket(join(&mut queues, UNITS)), ticket(join(&mut queues, UNITS))];
        assert_eq!(join(&mut queues, ROW), Turn::Works);
        assert_eq!(queues.leave(UNITS, DONE), [tickets[0]]);
        assert_eq!(queues.waited(UNITS, &mut 1), [tickets[1]], "the one at the server is stuck");
        for _ in 0..2 {
            assert!(queues.leave(UNITS, DONE).is_empty());
            queues.leave(ROW, DONE);
        }
        assert!(queues.queues.is_empty());
    }

    #[test]
    fn one_that_gives_up_gets_no_turn() {
        let mut queues = RowQueues::default();
        let _ = [join(&mut queues, ROW), join(&mut queues, ROW)];
        let tickets = [ticket(join(&mut queues, ROW)), ticket(join(&mut queues, ROW))];
        queues.give_up(ROW, tickets[0]);
        assert_eq!(queues.leave(ROW, DONE), [tickets[1]]);
    }

    #[test]
    fn all_go_to_the_server_if_none_ends() {
        let mut queues = RowQueues::default();
        let _ = [join(&mut queues, ROW), join(&mut queues, ROW)];
        let Turn::Waits { ticket: first, mut ended } = join(&mut queues, ROW) else { panic!("works") };
        let second = ticket(join(&mut queues, ROW));
        assert_eq!(queues.leave(ROW, DONE), [first]);
        assert!(queues.waited(ROW, &mut ended).is_empty(), "one has ended");
        assert_eq!(queues.waited(ROW, &mut ended), [second]);
        let third = ticket(join(&mut queues, ROW));
        assert!(queues.leave(ROW, DONE).is_empty(), "two are still there");
        assert_eq!(queues.leave(ROW, DONE), [third], "the queue works again");
    }

    #[test]
    fn a_row_that_later_statements_come_to_counts_them() {
        let mut queues = RowQueues::default();
        assert_eq!([queues.enter_row(KEY), queues.enter_row(KEY), queues.enter_row(KEY)], [0, 1, 2]);
        let first = ticket(join(&mut queues, ROW));
        assert!(queues.leave(ROW, DONE).is_empty(), "two others work on it");
        assert_eq!(queues.leave(ROW, DONE), [first]);
    }

    #[test]
    fn transactions_that_come_to_a_row_later_overtake_only_for_a_while() {
        for alone in [false, true] {
            let mut queues = RowQueues::default();
            let _ = [queues.enter_row(KEY), queues.enter_row(KEY), queues.enter_row(KEY)];
            let mut join = || ticket(queues.join(Request { queue: ROW, alone }));
            let tickets = [join(), join()];
            for ticket in tickets {
                for _ in 0..OVERTAKING_MAX - 1 {
                    queues.enter_row(KEY);
                    assert!(queues.leave(ROW, DONE).is_empty());
                }
                queues.enter_row(KEY);
                assert_eq!(queues.leave(ROW, DONE), [ticket], "the next one waits as long");
            }
        }
    }

    /// Transactions of 64 clients that all come to one row, or to one of many. Returns how many of them are at the server
    /// in the end.
    fn settled(rows: u64) -> usize {
        let mut queues = RowQueues::default();
        let (mut begun, mut waiting, mut at_rows, mut number) = (0_usize, 0, VecDeque::new(), 0);
        for _ in 0..10_000 {
            while begun + at_rows.len() + waiting < 64 {
                match join(&mut queues, BEGINNING) {
                    Turn::Works => begun += 1,
                    Turn::Waits { .. } => waiting += 1,
                }
            }
            // To come to a row takes a third of the time that the work on it takes.
            let arrive = begun.min(3);
            for _ in 0..arrive {
                number += 7;
                let row = Key { table: 1, hash: number % rows };
                at_rows.push_back((row, queues.enter_row(row)));
                queues.reached_row(BEGINNING, 100);
            }
            let (row, others) = at_rows.pop_front().unwrap();
            queues.leave(QueueId::Row(row), DONE);
            let next = queues.leave(BEGINNING, Contention::Others(others)).len();
            (begun, waiting) = (begun - arrive + next, waiting - next);
        }
        begun + at_rows.len() + 1
    }

    #[test]
    fn few_work_if_they_meet_on_a_row_and_all_if_they_do_not() {
        assert!((2..8).contains(&settled(1)), "{}", settled(1));
        assert_eq!(settled(100), 64);
    }

    #[test]
    fn what_was_learned_about_a_beginning_is_kept_until_it_is_stuck() {
        let mut queues = RowQueues::default();
        for _ in 0..100 {
            assert_eq!(join(&mut queues, BEGINNING), Turn::Works);
            queues.reached_row(BEGINNING, 100);
            queues.leave(BEGINNING, Contention::Others(2));
        }
        let _ = [join(&mut queues, BEGINNING), join(&mut queues, BEGINNING)];
        let Turn::Waits { ticket, mut ended } = join(&mut queues, BEGINNING) else { panic!("works") };
        assert_eq!(queues.waited(BEGINNING, &mut ended), [ticket]);
        for _ in 0..3 {
            queues.leave(BEGINNING, DONE);
        }
        assert!(queues.queues.is_empty(), "it is forgotten");
    }

    /// Two transactions meet on a row all the time. How many of 200 that only read, each for a second, can begin?
    #[test]
    fn transactions_that_come_to_no_row_are_not_held_up() {
        let mut queues = RowQueues::default();
        for _ in 0..200 {
            assert_eq!(join(&mut queues, BEGINNING), Turn::Works, "nothing is known");
        }
        for round in 0..1_000 {
            join(&mut queues, BEGINNING);
            queues.reached_row(BEGINNING, 1_000);
            queues.leave(BEGINNING, Contention::Others(2));
            if round % 10 == 0 {
                queues.leave(BEGINNING, Contention::NoRow(1_000_000));
                assert_eq!(join(&mut queues, BEGINNING), Turn::Works, "round {round}");
            }
        }
        let begun = (0..10).filter(|_| join(&mut queues, BEGINNING) == Turn::Works).count();
        assert!(begun > 0, "those that change the row are not held up either");
    }

    #[test]
    fn what_was_learned_is_forgotten_when_none_meets_others_any_more() {
        let mut queues = RowQueues::default();
        let _ = [join(&mut queues, BEGINNING), join(&mut queues, BEGINNING)];
        for _ in 0..100 {
            join(&mut queues, BEGINNING);
            queues.reached_row(BEGINNING, 100);
            queues.leave(BEGINNING, Contention::Others(2));
        }
        assert!(matches!(join(&mut queues, BEGINNING), Turn::Waits { .. }));
        for _ in 0..128 * 4 + 2 {
            queues.leave(BEGINNING, Contention::NoRow(100));
            join(&mut queues, BEGINNING);
        }
        let all = (0..1_000).filter(|_| join(&mut queues, BEGINNING) == Turn::Works).count();
        assert_eq!(all, 1_000, "there is no limit any more");
    }
}
