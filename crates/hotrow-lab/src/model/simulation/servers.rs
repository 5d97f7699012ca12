//! The servers of a simulation: transactions, the locks of rows, and the WAL.

use super::{
    AFTER_COMMIT, AT_COMMIT, BEFORE_LOCK, Owner, Request, Running, Simulation, Step, WITH_LOCK, nanoseconds,
};
use crate::model::costs::Work;
use crate::model::rows::Transaction;
use hotrow_core::limits;

impl Simulation<'_> {
    pub(super) fn arrives(&mut self, lane: usize, number: u64) {
        let batch = self.lanes[lane].lane.batch(number).expect("a batch that was written is under way");
        let mut rows: Vec<(u64, usize)> = Vec::new();
        for unit in &batch.units {
            let row = self.requests[unit.payload].row;
            match rows.last_mut() {
                Some((last, units)) if *last == row => *units += 1,
                _ => rows.push((row, 1)),
            }
        }
        let locks = batch.ahead.len();
        self.lanes[lane].arrived.push_back((rows, locks));
        self.next_batch(lane);
    }

    fn next_batch(&mut self, lane: usize) {
        let own = &mut self.lanes[lane];
        if own.is_busy {
            return;
        }
        let Some((rows, locks)) = own.arrived.pop_front() else { return };
        (own.is_busy, own.busy_since) = (true, self.now);
        let (node, threads) = (own.node, own.backend);
        let transaction = self.begins(Owner::Batch(lane), node, threads, rows, locks);
        self.run(threads, self.world.costs.batch / 2.0, Step::Runs(transaction));
    }

    /// A request runs in a transaction of its own.
    pub(super) fn run_alone(&mut self, place: usize) {
        let Request { node, row, .. } = self.requests[place];
        let threads = self.nodes[node].sessions;
        let transaction = self.begins(Owner::Request(place), node, threads, vec![(row, 1)], 0);
        self.run(threads, self.world.costs.direct(self.world.work) * BEFORE_LOCK, Step::Runs(transaction));
    }

    fn begins(
        &mut self,
        owner: Owner,
        node: usize,
        threads: usize,
        rows: Vec<(u64, usize)>,
        locks: usize,
    ) -> Transaction {
        let running = Running { owner, node, threads, rows, locks, next: 0, waits: 0, is_waiting: false };
        match self.free_running.pop() {
            Some(place) => {
                self.running[place] = Some(running);
                place
            }
            None => {
                self.running.push(Some(running));
                self.running.len() - 1
            }
        }
    }

    /// Runs statements up to the first row that another transaction has.
    pub(super) fn advance(&mut self, transaction: Transaction) {
        let running = self.running[transaction].as_mut().expect("it runs");
        let is_read = self.world.work == Work::Read;
        let node = &mut self.nodes[running.node];
        let rows = &mut node.rows;
        let mut cost = 0.0;
        while let Some((row, units)) = running.rows.get(running.next) {
            if !is_read && !rows.is_free(*row, transaction) {
                break;
            }
            if !is_read {
                rows.lock(*row, transaction);
                if *row == 0 {
                    node.first_row_since.get_or_insert(self.now);
                }
            }
            running.next += 1;
            cost += *units as f64
                * match running.owner {
                    Owner::Batch(_) => self.world.costs.unit(self.world.work),
                    Owner::Request(_) => self.world.costs.direct(self.world.work) * WITH_LOCK,
                };
        }
        let threads = running.threads;
        if running.next == running.rows.len() {
            return self.run(threads, cost, Step::Executed(transaction));
        }
        if cost > 0.0 {
            return self.run(threads, cost, Step::Runs(transaction));
        }
        running.waits += 1;
        running.is_waiting = true;
        let (row, wait, owner) = (running.rows[running.next].0, running.waits, running.owner);
        rows.lock(row, transaction);
        if let Owner::Batch(_) = owner {
            let timeout = limits::LANE_LOCK_TIMEOUT_MS * 1_000_000;
            self.at(self.now + timeout, Step::GivesUp(transaction, wait));
        }
    }

    pub(super) fn executed(&mut self, transaction: Transaction) {
        let Running { owner, threads, .. } = *self.get(transaction);
        let is_read = self.world.work == Work::Read;
        let cost = match owner {
            Owner::Batch(lane) => {
                let Running { rows, locks, .. } = self.get(transaction);
                let (locks, units) = (*locks, rows.iter().map(|(_, units)| units).sum());
                self.send(Step::Identified { lane, locks, units });
                self.world.costs.batch / 2.0
            }
            Owner::Request(_) => self.world.costs.direct(self.world.work) * AT_COMMIT,
        };
        let then = if is_read { Step::Committed(transaction) } else { Step::Flushes(transaction) };
        self.run(threads, cost, then);
    }

    pub(super) fn get(&self, transaction: Transaction) -> &Running {
        self.running[transaction].as_ref().expect("it runs")
    }

    /// One flush is under way at a time. Commits that arrive meanwhile share the next one.
    pub(super) fn flush(&mut self, transaction: Transaction) {
        let node = self.get(transaction).node;
        self.nodes[node].commits.push(transaction);
        if !self.nodes[node].flushing {
            self.next_flush(node);
        }
    }

    pub(super) fn next_flush(&mut self, node: usize) {
        let own = &mut self.nodes[node];
        own.flushing = true;
        own.flushed = std::mem::take(&mut own.commits);
        let flush = nanoseconds(self.world.costs.flush);
        own.log_busy += flush;
        self.at(self.now + flush, Step::Flushed(node));
    }

    pub(super) fn flushed(&mut self, node: usize) {
        let own = &mut self.nodes[node];
        let flushed = std::mem::take(&mut own.flushed);
        let sessions = own.sessions;
        own.flushing = !own.commits.is_empty();
        if own.flushing {
            // One of the sessions that wait is woken, and flushes for all of them when it gets a core.
            self.run(sessions, self.world.costs.wake, Step::Leads(node));
        }
        flushed.into_iter().for_each(|transaction| self.committed(transaction));
    }

    pub(super) fn committed(&mut self, transaction: Transaction) {
        let Running { owner, threads, .. } = *self.get(transaction);
        self.ends(transaction);
        match owner {
            Owner::Request(place) => {
                let cost = self.world.costs.direct(self.world.work) * AFTER_COMMIT;
                self.run(threads, cost, Step::Returns(place));
            }
            Owner::Batch(lane) => {
                self.send(Step::Ready(lane));
                self.idle(lane);
            }
        }
    }

    /// The lane's backend takes its next batch.
    pub(super) fn idle(&mut self, lane: usize) {
        let own = &mut self.lanes[lane];
        own.is_busy = false;
        own.busy += self.now - own.busy_since;
        self.next_batch(lane);
    }

    /// A transaction releases its rows. The next transaction of a row continues after the hand-over.
    pub(super) fn ends(&mut self, transaction: Transaction) {
        let running = self.running[transaction].take().expect("it runs");
        self.free_running.push(transaction);
        if self.world.work == Work::Read {
            return;
        }
        for (row, _) in &running.rows {
            let node = &mut self.nodes[running.node];
            let next = node.rows.leave(*row, transaction);
            if *row == 0
                && node.rows.is_free(0, Transaction::MAX)
                && let Some(since) = node.first_row_since.take()
            {
                node.first_row_busy += self.now - since;
            }
            let Some((next, waiting)) = next else { continue };
            let owner = self.running[next].as_mut().expect("a transaction that waits runs");
            if std::mem::replace(&mut owner.is_waiting, false) {
                let threads = owner.threads;
                let cost = self.world.costs.hand_over + self.world.costs.hand_over_each * waiting as f64;
                self.run(threads, cost, Step::Runs(next));
            }
        }
    }
}
