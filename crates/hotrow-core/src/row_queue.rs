//! The transactions of clients that begin with work on the same row. A few of them work at the server, the others wait
//! in the gateway, first come, first served. Many backends that wait for one row's lock cost the server more than the
//! work, because each change of the row wakes all of them.
//!
//! A waiting transaction has done nothing yet: it holds no lock and no connection, so nothing waits for it. If no
//! transaction of a row ends for a while, one of them is stuck. Then all go to the server, which knows their locks and
//! timeouts.

use std::collections::{HashMap, VecDeque};

use crate::key::Key;

/// Transactions of a row at the server: one works, and the next one waits there for the lock, so that the row is never
/// idle.
const AT_SERVER_MAX: usize = 2;

/// The rows of a database on which transactions work.
#[derive(Debug, Default)]
pub struct RowQueues {
    rows: HashMap<Key, Row>,
    last_ticket: u64,
}

#[derive(Debug, Default)]
struct Row {
    at_server: usize,
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
        /// Transactions of the row that have ended.
        ended: u64,
    },
}

impl RowQueues {
    /// A transaction begins with work on this row.
    pub fn join(&mut self, key: Key) -> Place {
        let row = self.rows.entry(key).or_default();
        if row.is_stuck || row.waiting.is_empty() && row.at_server < AT_SERVER_MAX {
            row.at_server += 1;
            return Place::Works;
        }
        self.last_ticket += 1;
        row.waiting.push_back(self.last_ticket);
        Place::Waits { ticket: self.last_ticket, ended: row.ended }
    }

    /// A transaction that has worked is over. Returns the ticket of the one that works now.
    pub fn leave(&mut self, key: Key) -> Option<u64> {
        let row = self.rows.get_mut(&key)?;
        row.at_server -= 1;
        row.ended += 1;
        let next = row.waiting.pop_front();
        row.at_server += usize::from(next.is_some());
        if row.at_server == 0 {
            self.rows.remove(&key);
        }
        next
    }

    /// A transaction does not wait any longer, and does not work either.
    pub fn give_up(&mut self, key: Key, ticket: u64) {
        if let Some(row) = self.rows.get_mut(&key) {
            row.waiting.retain(|other| *other != ticket);
        }
    }

    /// A transaction does not wait any longer, and works without its turn.
    pub fn go_on(&mut self, key: Key, ticket: u64) {
        self.give_up(key, ticket);
        self.rows.entry(key).or_default().at_server += 1;
    }

    /// A transaction has waited for a while. If none has ended meanwhile, returns the tickets of all that wait: they
    /// work now. Otherwise it waits on, and `ended` is set to the present number.
    pub fn waited(&mut self, key: Key, ended: &mut u64) -> Vec<u64> {
        let Some(row) = self.rows.get_mut(&key) else { return Vec::new() };
        if row.ended != *ended {
            *ended = row.ended;
            return Vec::new();
        }
        row.is_stuck = true;
        row.at_server += row.waiting.len();
        row.waiting.drain(..).collect()
    }

    /// The rows for which transactions wait, with their number.
    pub fn waiting(&self) -> impl Iterator<Item = (Key, usize)> {
        self.rows.iter().map(|(key, row)| (*key, row.waiting.len())).filter(|(_, count)| *count > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROW: Key = Key { table: 1, hash: 1 };
    const OTHER: Key = Key { table: 1, hash: 2 };

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
        assert_eq!(queues.waiting().collect::<Vec<_>>(), [(ROW, 2)]);
        assert_eq!(queues.leave(ROW), Some(tickets[0]));
        let last = ticket(queues.join(ROW));
        assert_eq!([queues.leave(ROW), queues.leave(ROW)], [Some(tickets[1]), Some(last)]);
        assert_eq!([queues.leave(ROW), queues.leave(ROW)], [None, None]);
        queues.leave(OTHER);
        assert!(queues.rows.is_empty(), "a row without transactions is forgotten");
    }

    #[test]
    fn one_that_gives_up_gets_no_turn() {
        let mut queues = RowQueues::default();
        let _ = [queues.join(ROW), queues.join(ROW)];
        let tickets = [ticket(queues.join(ROW)), ticket(queues.join(ROW))];
        queues.give_up(ROW, tickets[0]);
        assert_eq!(queues.leave(ROW), Some(tickets[1]));
    }

    #[test]
    fn all_go_to_the_server_if_none_ends() {
        let mut queues = RowQueues::default();
        let _ = [queues.join(ROW), queues.join(ROW)];
        let Place::Waits { ticket: first, mut ended } = queues.join(ROW) else { panic!("works") };
        let second = ticket(queues.join(ROW));
        assert_eq!(queues.leave(ROW), Some(first));
        assert!(queues.waited(ROW, &mut ended).is_empty(), "one has ended");
        assert_eq!(queues.waited(ROW, &mut ended), [second]);
        assert_eq!(queues.join(ROW), Place::Works, "the row is stuck");
        for _ in 0..4 {
            assert_eq!(queues.leave(ROW), None);
        }
        let _ = [queues.join(ROW), queues.join(ROW)];
        assert!(matches!(queues.join(ROW), Place::Waits { .. }), "the stuck transactions are over");
    }
}
