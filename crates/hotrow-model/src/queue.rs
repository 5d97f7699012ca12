//! An ordered queue, as plain data: which order is handed out next, and the outcome of each order. Callers are not modelled.
//!
//! Orders of a strict group that are open (taken, ready, or waiting for another attempt) are its members. One member has its
//! turn, the others wait until it is done.

use std::collections::BTreeMap;
use std::fmt;

use crate::Time;
use crate::named::named;

/// The settings of `create_queue`.
#[derive(Clone, Debug)]
pub struct QueueTerms {
    pub strict_groups: bool,
    pub by_created_at: bool,
    pub max_attempts: i64,
    pub retry: Time,
    pub dead_letter: bool,
}

/// A receipt for an order that was taken. It is valid until the order is taken again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Receipt {
    lease: usize,
    order: u64,
}

named! {
    /// A call. Orders are named by numbers. A take without a lease completes its orders at once.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub enum QueueCommand (FUNCTIONS, function) {
        "enqueue" Enqueue(NewOrder),
        "take" Take { max: usize, lease: Option<Time> },
        "complete" Complete { receipt: Receipt },
        "fail" Fail { receipt: Receipt, retry_in: Option<Time> },
        "release" Release { receipt: Receipt },
        "extend_lease" ExtendLease { receipt: Receipt, lease: Time },
        "redrive" Redrive { max: usize },
        "pause" Pause,
        "resume" Resume,
    }
}

/// The parameters of `enqueue`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewOrder {
    pub order: u64,
    pub group: Option<String>,
    pub created_at: Option<Time>,
    pub not_before: Option<Time>,
    pub priority: i64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QueueAnswer {
    Enqueued { id: i64, duplicate: bool },
    Taken(Vec<(u64, i64, Option<Receipt>)>),
    Outcome(&'static str),
    Redriven(usize),
}

impl fmt::Display for QueueAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Enqueued { id, duplicate: false } => write!(f, "{id} enqueued"),
            Self::Enqueued { id, duplicate: true } => write!(f, "{id} duplicate"),
            Self::Taken(orders) => {
                let orders: Vec<_> =
                    orders.iter().map(|(order, attempt, _)| format!("{order}:{attempt}")).collect();
                f.write_str(&orders.join(" "))
            }
            Self::Outcome(outcome) => f.write_str(outcome),
            Self::Redriven(orders) => write!(f, "{orders}"),
        }
    }
}

/// The least rank comes first: by priority, then by the queue's order, then by arrival.
type Rank = (i64, i64, i64);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// No call has looked at the order yet.
    Arrived,
    /// Waits for its group.
    Aside,
    Ready,
    Leased {
        lease: usize,
        due: Time,
    },
    /// Waits for a time. If the order has not joined yet, this is its first time.
    Later {
        due: Time,
        joined: bool,
    },
    Done {
        at: Time,
    },
    Dead,
}

#[derive(Clone, Debug)]
struct Order {
    id: i64,
    rank: Rank,
    /// Whether it arrived in the queue's order.
    in_line: bool,
    group: Option<String>,
    not_before: Option<Time>,
    state: State,
    attempt: i64,
    member: bool,
}

/// One queue of one shard.
#[derive(Clone, Debug)]
pub struct Queue {
    terms: QueueTerms,
    orders: BTreeMap<u64, Order>,
    last_id: i64,
    last_in_line: Option<Rank>,
    leases: usize,
    paused: bool,
}

impl Queue {
    /// An empty queue.
    pub fn new(terms: QueueTerms) -> Self {
        let orders = BTreeMap::new();
        Self { terms, orders, last_id: 0, last_in_line: None, leases: 0, paused: false }
    }

    /// Runs calls of one function one after another at one moment, as its batch function does.
    pub fn apply(&mut self, commands: &[QueueCommand], at: Time) -> Vec<QueueAnswer> {
        let base = self.last_id;
        let answers = commands.iter().enumerate().map(|(place, command)| match command {
            QueueCommand::Enqueue(new) => {
                self.enqueue(new, base + 1 + i64::try_from(place).unwrap_or(i64::MAX), at)
            }
            QueueCommand::Take { max, lease } => QueueAnswer::Taken(self.take(*max, *lease, at)),
            QueueCommand::Complete { receipt } => self.settle(*receipt, at, |queue, order, _| {
                queue.leave(order, State::Done { at });
                "completed"
            }),
            QueueCommand::Fail { receipt, retry_in } => {
                self.settle(*receipt, at, |queue, order, attempt| queue.fail(order, attempt, *retry_in, at))
            }
            QueueCommand::Release { receipt } => self.settle(*receipt, at, |queue, order, _| {
                let order = queue.order(order);
                order.attempt -= 1;
                order.state = State::Ready;
                "released"
            }),
            QueueCommand::ExtendLease { receipt, lease } => self.settle(*receipt, at, |queue, _, _| {
                for order in queue.orders.values_mut() {
                    if let State::Leased { lease: of, due } = &mut order.state
                        && *of == receipt.lease
                    {
                        *due = (*due).max(at + lease);
                    }
                }
                "extended"
            }),
            QueueCommand::Redrive { max } => self.redrive(*max),
            QueueCommand::Pause => {
                self.paused = true;
                QueueAnswer::Outcome("paused")
            }
            QueueCommand::Resume => {
                self.paused = false;
                QueueAnswer::Outcome("resumed")
            }
        });
        let answers: Vec<_> = answers.collect();
        // A batch that adds nothing uses no IDs.
        let added = |answer: &QueueAnswer| matches!(answer, QueueAnswer::Enqueued { duplicate: false, .. });
        if answers.iter().any(added) {
            self.last_id = base + i64::try_from(answers.len()).unwrap_or(i64::MAX);
        }
        answers
    }

    /// The orders in a state, with the states of `list_orders`, in order of arrival.
    pub fn listed(&self, state: &str, at: Time) -> Vec<u64> {
        let is_in = |order: &Order| match order.state {
            State::Arrived if !order.in_line && order.not_before.is_some_and(|time| time > at) => "delayed",
            State::Arrived | State::Aside | State::Ready => "waiting",
            State::Leased { .. } => "leased",
            State::Later { .. } => "delayed",
            State::Done { .. } => "processed",
            State::Dead => "dead",
        };
        let mut names: Vec<_> =
            self.orders.iter().filter(|(_, order)| is_in(order) == state).map(|(name, _)| *name).collect();
        names.sort_by_key(|name| self.orders[name].id);
        names
    }

    pub fn done_at(&self, order: u64) -> Option<Time> {
        match self.orders.get(&order)?.state {
            State::Done { at } => Some(at),
            _ => None,
        }
    }

    fn enqueue(&mut self, new: &NewOrder, id: i64, at: Time) -> QueueAnswer {
        let NewOrder { order, ref group, created_at, not_before, priority } = *new;
        if let Some(known) = self.orders.get(&order) {
            return QueueAnswer::Enqueued { id: known.id, duplicate: true };
        }
        // Without a created_at an order counts as created now, which is later than any earlier whole step.
        let created = created_at.map_or(at * 2 + 1, |created_at| created_at * 2);
        let rank = (-priority, if self.terms.by_created_at { created } else { 0 }, id);
        let in_line =
            not_before.is_none() && priority == 0 && self.last_in_line.is_none_or(|last| rank >= last);
        if in_line {
            self.last_in_line = Some(rank);
        }
        let group = group.clone().filter(|_| self.terms.strict_groups);
        let (state, attempt, member) = (State::Arrived, 0, false);
        self.orders.insert(order, Order { id, rank, in_line, group, not_before, state, attempt, member });
        QueueAnswer::Enqueued { id, duplicate: false }
    }

    fn take(&mut self, max: usize, lease: Option<Time>, at: Time) -> Vec<(u64, i64, Option<Receipt>)> {
        let mut taken = Vec::new();
        if self.paused {
            return taken;
        }
        self.end_leases(at);
        self.look_at_late_arrivals(at);
        self.leases += 1;
        while taken.len() < max {
            let waits =
                |order: &Order| order.state == State::Ready || order.state == State::Arrived && order.in_line;
            let next =
                self.orders.iter().filter(|(_, order)| waits(order)).min_by_key(|(_, order)| order.rank);
            let Some((name, order)) = next.map(|(name, order)| (*name, order.clone())) else { break };
            if order.state == State::Arrived && self.has_members(order.group.as_ref()) {
                self.join(name, State::Aside);
                continue;
            }
            let attempt = order.attempt + 1;
            self.order(name).attempt = attempt;
            match lease {
                Some(lease) => {
                    self.join(name, State::Leased { lease: self.leases, due: at + lease });
                    taken.push((name, attempt, Some(Receipt { lease: self.leases, order: name })));
                }
                None => {
                    self.leave(name, State::Done { at });
                    taken.push((name, attempt, None));
                }
            }
        }
        taken
    }

    /// Makes the changes that are due: first leases that ended, then orders whose time has come.
    fn end_leases(&mut self, at: Time) {
        let ended = self.named(|order| matches!(order.state, State::Leased { due, .. } if due <= at));
        let back = self.named(|order| matches!(order.state, State::Later { due, joined: true } if due <= at));
        let come =
            self.named(|order| matches!(order.state, State::Later { due, joined: false } if due <= at));
        let (last, again): (Vec<_>, Vec<_>) =
            ended.into_iter().partition(|name| self.orders[name].attempt >= self.terms.max_attempts);
        for name in again.into_iter().chain(back) {
            self.order(name).state = State::Ready;
        }
        for name in last {
            self.bury(name, at);
        }
        self.admit(come);
    }

    fn look_at_late_arrivals(&mut self, at: Time) {
        let arrived = self.named(|order| order.state == State::Arrived && !order.in_line);
        let (early, now): (Vec<_>, Vec<_>) =
            arrived.into_iter().partition(|name| self.orders[name].not_before.is_some_and(|time| time > at));
        for name in early {
            let due = self.orders[&name].not_before.unwrap_or(at);
            self.order(name).state = State::Later { due, joined: false };
        }
        self.admit(now);
    }

    /// Handles orders that can be taken from now on, in their order. Each is ready, or is put aside if its group has a member.
    fn admit(&mut self, names: Vec<u64>) {
        for name in names {
            let busy = self.has_members(self.orders[&name].group.clone().as_ref());
            self.join(name, if busy { State::Aside } else { State::Ready });
        }
    }

    fn settle(
        &mut self,
        receipt: Receipt,
        at: Time,
        what: impl FnOnce(&mut Self, u64, i64) -> &'static str,
    ) -> QueueAnswer {
        self.end_leases(at);
        match self.orders.get(&receipt.order) {
            Some(Order { state: State::Leased { lease, .. }, attempt, .. }) if *lease == receipt.lease => {
                let attempt = *attempt;
                QueueAnswer::Outcome(what(self, receipt.order, attempt))
            }
            _ => QueueAnswer::Outcome("lease_lost"),
        }
    }

    fn fail(&mut self, order: u64, attempt: i64, retry_in: Option<Time>, at: Time) -> &'static str {
        if attempt >= self.terms.max_attempts {
            self.bury(order, at);
            return "dead";
        }
        let pause = retry_in.unwrap_or_else(|| (self.terms.retry << (attempt - 1)).min(24));
        self.order(order).state =
            if pause == 0 { State::Ready } else { State::Later { due: at + pause, joined: true } };
        "retrying"
    }

    fn bury(&mut self, order: u64, at: Time) {
        self.leave(order, if self.terms.dead_letter { State::Dead } else { State::Done { at } });
    }

    fn redrive(&mut self, max: usize) -> QueueAnswer {
        let mut dead = self.named(|order| order.state == State::Dead);
        dead.sort_by_key(|name| self.orders[name].id);
        dead.truncate(max);
        dead.sort_by_key(|name| self.orders[name].rank);
        for name in &dead {
            self.order(*name).attempt = 0;
        }
        let redriven = dead.len();
        self.admit(dead);
        QueueAnswer::Redriven(redriven)
    }

    fn join(&mut self, name: u64, state: State) {
        let order = self.order(name);
        order.member = order.group.is_some();
        order.state = state;
    }

    /// Records that an order is done. The next order of its group is the least of those that are aside.
    fn leave(&mut self, name: u64, state: State) {
        let order = self.order(name);
        order.state = state;
        let (group, was_member) = (order.group.clone(), std::mem::take(&mut order.member));
        if was_member {
            let aside = |order: &Order| order.state == State::Aside && order.group == group;
            let next = self.named(aside).first().copied();
            if let Some(next) = next {
                self.order(next).state = State::Ready;
            }
        }
    }

    fn has_members(&self, group: Option<&String>) -> bool {
        group.is_some() && self.orders.values().any(|order| order.member && order.group.as_ref() == group)
    }

    /// The numbers of the orders that match, in the queue's order.
    fn named(&self, wanted: impl Fn(&Order) -> bool) -> Vec<u64> {
        let mut names: Vec<_> =
            self.orders.iter().filter(|(_, order)| wanted(order)).map(|(name, _)| *name).collect();
        names.sort_by_key(|name| self.orders[name].rank);
        names
    }

    fn order(&mut self, name: u64) -> &mut Order {
        self.orders.get_mut(&name).expect("an order is never forgotten")
    }
}
