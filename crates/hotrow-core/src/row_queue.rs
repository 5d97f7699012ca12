//! The transactions of clients that work on the same rows. A few of them work at the server, the others wait in the
//! gateway, first come, first served. Many backends that wait for one row's lock cost the server more than the work,
//! because each change of the row wakes all of them.
//!
//! A transaction that begins with work on a row queues for this row. The rows of later statements are not known when a
//! transaction begins. But transactions that begin with the same statement usually go on in the same way. So they queue
//! for this statement, and the number of them at the server follows from what they meet: it falls when one comes to a
//! row on which two others work already, and rises when one does not.
//!
//! A waiting transaction has done nothing yet: it holds no lock and no connection, so nothing waits for it. If no
//! transaction of a queue ends for a while, one of them is stuck. Then all go to the server, which knows their locks and
//! timeouts.

use std::collections::{HashMap, VecDeque};

use crate::key::Key;
use crate::limits;

/// Transactions of a row at the server: one works, and the next one waits there for the lock, so that the row is never
/// idle.
const AT_ROW_MAX: usize = 2;

/// The number of transactions that begin with a statement, at the server: counted in parts of one.
const PARTS: usize = 16;
const FIRST_LIMIT: usize = 128 * PARTS;

/// What transactions have in common that wait for each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Queue {
    /// They work on this row.
    Row(Key),
    /// They begin with the statement that has this number.
    Beginning(u64),
}

/// The queues of a database.
#[derive(Debug, Default)]
pub struct RowQueues {
    queues: HashMap<Queue, State>,
    last_ticket: u64,
}

#[derive(Debug)]
struct State {
    at_server: usize,
    /// The number at the server above which others wait, in parts of one.
    limit: usize,
    /// The tickets of those that wait.
    waiting: VecDeque<u64>,
    /// Number of transactions that have ended.
    ended: u64,
    /// No transaction waits until all that are at the server have ended.
    is_stuck: bool,
}

/// What a transaction does first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// It works.
    Works,
    /// It waits, with this ticket. So many transactions have ended before.
    Waits {
        /// The ticket.
        ticket: u64,
        /// Transactions of the queue that have ended.
        ended: u64,
    },
}

impl RowQueues {
    /// A transaction begins.
    pub fn join(&mut self, queue: Queue) -> Place {
        let ticket = self.last_ticket + 1;
        let state = self.state(queue);
        if state.is_stuck || state.waiting.is_empty() && state.has_room() {
            state.at_server += 1;
            return Place::Works;
        }
        state.waiting.push_back(ticket);
        let ended = state.ended;
        self.last_ticket = ticket;
        Place::Waits { ticket, ended }
    }

    /// A transaction at the server comes to one more row. Returns how many others work on it.
    pub fn come_to(&mut self, row: Key) -> usize {
        let state = self.state(Queue::Row(row));
        state.at_server += 1;
        state.at_server - 1
    }

    /// A transaction that has worked is over. `others` is the largest number of other transactions that it has met on
    /// one row, if it has come to any. Returns the tickets of those that work now.
    pub fn leave(&mut self, queue: Queue, others: Option<usize>) -> Vec<u64> {
        let Some(state) = self.queues.get_mut(&queue) else { return Vec::new() };
        state.at_server -= 1;
        state.ended += 1;
        if let (Queue::Beginning(_), Some(others)) = (queue, others) {
            state.learn(others);
        }
        let mut next = Vec::new();
        while state.has_room()
            && let Some(ticket) = state.waiting.pop_front()
        {
            state.at_server += 1;
            next.push(ticket);
        }
        if state.at_server == 0 {
            state.is_stuck = false;
            // What was learned about a beginning is kept.
            if state.limit == queue.first_limit() || self.queues.len() > limits::ROW_QUEUES_MAX {
                self.queues.remove(&queue);
            }
        }
        next
    }

    /// A transaction does not wait any longer, and does not work either.
    pub fn give_up(&mut self, queue: Queue, ticket: u64) {
        if let Some(state) = self.queues.get_mut(&queue) {
            state.waiting.retain(|other| *other != ticket);
        }
    }

    /// A transaction does not wait any longer, and works without its turn.
    pub fn go_on(&mut self, queue: Queue, ticket: u64) {
        self.give_up(queue, ticket);
        self.state(queue).at_server += 1;
    }

    /// A transaction has waited for a while. If none has ended meanwhile, returns the tickets of all that wait: they
    /// work now. Otherwise it waits on, and `ended` is set to the present number.
    pub fn waited(&mut self, queue: Queue, ended: &mut u64) -> Vec<u64> {
        let Some(state) = self.queues.get_mut(&queue) else { return Vec::new() };
        if state.ended != *ended {
            *ended = state.ended;
            return Vec::new();
        }
        state.is_stuck = true;
        state.limit = queue.first_limit();
        state.at_server += state.waiting.len();
        state.waiting.drain(..).collect()
    }

    /// The rows for which transactions wait, with their number.
    pub fn waiting(&self) -> impl Iterator<Item = (Key, usize)> {
        let of_row = |(queue, state): (&Queue, &State)| match queue {
            Queue::Row(key) if !state.waiting.is_empty() => Some((*key, state.waiting.len())),
            Queue::Row(_) | Queue::Beginning(_) => None,
        };
        self.queues.iter().filter_map(of_row)
    }

    fn state(&mut self, queue: Queue) -> &mut State {
        self.queues.entry(queue).or_insert_with(|| State {
            at_server: 0,
            limit: queue.first_limit(),
            waiting: VecDeque::new(),
            ended: 0,
            is_stuck: false,
        })
    }
}

impl Queue {
    fn first_limit(self) -> usize {
        match self {
            Queue::Row(_) => AT_ROW_MAX * PARTS,
            Queue::Beginning(_) => FIRST_LIMIT,
        }
    }
}

impl State {
    fn has_room(&self) -> bool {
        self.at_server < self.limit / PARTS
    }

    /// Adapts the limit. It falls in proportion and rises by a quarter of a transaction, so that it settles where some
    /// transactions still find that the rows they need have one waiting transaction each.
    fn learn(&mut self, others: usize) {
        self.limit = match others < AT_ROW_MAX {
            true => (self.limit + PARTS / 4).min(FIRST_LIMIT),
            false => (self.limit - self.limit / PARTS).max(AT_ROW_MAX * PARTS),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: Key = Key { table: 1, hash: 1 };
    const ROW: Queue = Queue::Row(KEY);
    const OTHER: Queue = Queue::Row(Key { table: 1, hash: 2 });
    const BEGINNING: Queue = Queue::Beginning(7);

    fn ticket(place: Place) -> u64 {
        match place {
            Place::Waits { ticket, .. } => ticket,
            Place::Works => panic!("works"),
        }
    }

    #[test]
    fn two_work_and_the_others_wait_in_their_order() {
        let mut queues = RowQueues::default();
        assert_eq!([queues.join(ROW), queues.join(ROW)], [Place::Works, Place::Works]);
        let tickets = [ticket(queues.join(ROW)), ticket(queues.join(ROW))];
        assert_eq!(queues.join(OTHER), Place::Works);
        assert_eq!(queues.waiting().collect::<Vec<_>>(), [(KEY, 2)]);
        assert_eq!(queues.leave(ROW, None), [tickets[0]]);
        let last = ticket(queues.join(ROW));
        assert_eq!([queues.leave(ROW, None), queues.leave(ROW, None)], [[tickets[1]], [last]]);
        assert!(queues.leave(ROW, None).is_empty());
        assert!(queues.leave(ROW, None).is_empty());
        queues.leave(OTHER, None);
        assert!(queues.queues.is_empty(), "a row without transactions is forgotten");
    }

    #[test]
    fn one_that_gives_up_gets_no_turn() {
        let mut queues = RowQueues::default();
        let _ = [queues.join(ROW), queues.join(ROW)];
        let tickets = [ticket(queues.join(ROW)), ticket(queues.join(ROW))];
        queues.give_up(ROW, tickets[0]);
        assert_eq!(queues.leave(ROW, None), [tickets[1]]);
    }

    #[test]
    fn all_go_to_the_server_if_none_ends() {
        let mut queues = RowQueues::default();
        let _ = [queues.join(ROW), queues.join(ROW)];
        let Place::Waits { ticket: first, mut ended } = queues.join(ROW) else { panic!("works") };
        let second = ticket(queues.join(ROW));
        assert_eq!(queues.leave(ROW, None), [first]);
        assert!(queues.waited(ROW, &mut ended).is_empty(), "one has ended");
        assert_eq!(queues.waited(ROW, &mut ended), [second]);
        assert_eq!(queues.join(ROW), Place::Works, "the row is stuck");
        for _ in 0..4 {
            assert!(queues.leave(ROW, None).is_empty());
        }
        let _ = [queues.join(ROW), queues.join(ROW)];
        assert!(matches!(queues.join(ROW), Place::Waits { .. }), "the stuck transactions are over");
    }

    #[test]
    fn a_row_that_later_statements_come_to_counts_them() {
        let mut queues = RowQueues::default();
        assert_eq!([queues.come_to(KEY), queues.come_to(KEY), queues.come_to(KEY)], [0, 1, 2]);
        let first = ticket(queues.join(ROW));
        assert!(queues.leave(ROW, None).is_empty(), "two others work on it");
        assert_eq!(queues.leave(ROW, None), [first]);
    }

    /// Transactions of 64 clients that all come to one row, or to one of many. Returns how many of them are at the server
    /// in the end.
    fn settled(rows: u64) -> usize {
        let mut queues = RowQueues::default();
        let (mut begun, mut waiting, mut at_rows, mut number) = (0_usize, 0, VecDeque::new(), 0);
        for _ in 0..10_000 {
            while begun + at_rows.len() + waiting < 64 {
                match queues.join(BEGINNING) {
                    Place::Works => begun += 1,
                    Place::Waits { .. } => waiting += 1,
                }
            }
            // To come to a row takes a third of the time that the work on it takes.
            let arrive = begun.min(3);
            for _ in 0..arrive {
                number += 7;
                let row = Key { table: 1, hash: number % rows };
                at_rows.push_back((row, queues.come_to(row)));
            }
            let (row, others) = at_rows.pop_front().unwrap();
            queues.leave(Queue::Row(row), None);
            let next = queues.leave(BEGINNING, Some(others)).len();
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
            assert_eq!(queues.join(BEGINNING), Place::Works);
            queues.leave(BEGINNING, Some(2));
        }
        let _ = [queues.join(BEGINNING), queues.join(BEGINNING)];
        let Place::Waits { ticket, mut ended } = queues.join(BEGINNING) else { panic!("works") };
        assert_eq!(queues.waited(BEGINNING, &mut ended), [ticket]);
        for _ in 0..3 {
            queues.leave(BEGINNING, None);
        }
        assert!(queues.queues.is_empty(), "it is forgotten");
    }
}
