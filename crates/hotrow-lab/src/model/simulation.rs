//! The simulation: events in the order of their times. Lanes and their batches are those of the gateway itself
//! (`hotrow_lane::lane`, `hotrow_lane::affinity`). It has no clock, and its random numbers come from a seed.

mod agenda;
mod end;
mod servers;
mod start;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::time::Duration;

use fastrand::Rng;
use hotrow_core::limits;
use hotrow_lane::affinity::Affinity;
use hotrow_lane::key::Key;
use hotrow_lane::lane::{Action, Changes, Claimed, Event, Failure, Lane, Times, Unit};

use super::keys::{Keys, node_of};
use super::processors::Processors;
use super::rows::{Rows, Transaction};
use super::world::{Arrivals, Observed, Way, World};

/// A time in nanoseconds since the beginning.
type Time = u64;

/// Versions of a narrow row in one commit, as the gateway estimates them for the benchmark's table.
const ROWS_PER_COMMIT: u16 = 100;
const TABLE: u32 = 1;
/// The parts of a client's own update: until it wants the lock, with the lock, at the commit before the flush, and after it.
const BEFORE_LOCK: f64 = 0.35;
const WITH_LOCK: f64 = 0.25;
const AT_COMMIT: f64 = 0.2;
const AFTER_COMMIT: f64 = 0.2;

/// Something that happens next.
#[derive(Debug)]
enum Step {
    /// A task of these threads has ended, and this follows.
    Ends(usize, Box<Step>),
    /// A client has made a request, or the next one of an open loop is due.
    Asks(usize),
    Due,
    /// It has arrived at the gateway, is read there, or has arrived at the server, at the coordinator or at a node.
    Received(usize),
    AtGateway(usize),
    AtServer(usize),
    ToNode(usize),
    AtNode(usize),
    /// A batch has left the gateway, and has arrived at its node.
    Sends(usize, u64),
    Arrives(usize, u64),
    /// A transaction runs on, has run its statements, commits, and is committed.
    Runs(Transaction),
    Executed(Transaction),
    Flushes(Transaction),
    Flushed(usize),
    /// A session begins the next flush.
    Leads(usize),
    Committed(Transaction),
    /// The gateway gets the answers to a batch and the transaction's ID, and learns of its end.
    Identified {
        lane: usize,
        locks: usize,
        units: usize,
    },
    /// The gateway learns that a unit of a batch has failed behind this number of others.
    Fails(usize, usize),
    Ready(usize),
    /// A lane no longer holds its next batch back.
    HoldOver(usize),
    /// The gateway has handled the answers of a batch.
    Answers(usize, Vec<usize>),
    /// A lane has waited too long for a lock.
    GivesUp(Transaction, u64),
    /// The answer of a request that ran by itself has left its transaction, has left the server, and has arrived.
    Returns(usize),
    Leaves(usize),
    Answered(usize),
}

/// A request on its way.
#[derive(Debug, Clone, Copy)]
struct Request {
    since: Time,
    row: u64,
    node: usize,
    gateway: usize,
    /// The lane that waits until the request has run alone, with the key to release.
    alone: Option<(usize, Key)>,
}

/// The owner of a transaction.
#[derive(Debug, Clone, Copy)]
enum Owner {
    Request(usize),
    Batch(usize),
}

#[derive(Debug)]
struct Running {
    owner: Owner,
    node: usize,
    threads: usize,
    /// The rows in order, with the number of units of each.
    rows: Vec<(u64, usize)>,
    /// Number of rows that its batch locks ahead.
    locks: usize,
    /// The first row that it does not have yet.
    next: usize,
    /// Number of its waits, so that an old timer is not mistaken for a new one.
    waits: u64,
    is_waiting: bool,
}

#[derive(Debug, Default)]
struct Node {
    machine: usize,
    sessions: usize,
    rows: Rows,
    flushing: bool,
    commits: Vec<Transaction>,
    flushed: Vec<Transaction>,
    log_busy: Time,
    /// The most wanted row: since when transactions have it one after another, and for how long they had it before.
    first_row_since: Option<Time>,
    first_row_busy: Time,
}

#[derive(Debug)]
struct LaneOfGateway {
    lane: Lane<usize>,
    gateway: usize,
    node: usize,
    /// Its index in the affinity of its gateway for its node.
    place: usize,
    backend: usize,
    arrived: VecDeque<(Vec<(u64, usize)>, usize)>,
    is_busy: bool,
    busy_since: Time,
    busy: Time,
    /// When the ID of the earliest batch's transaction arrived.
    identified: Time,
}

#[derive(Debug)]
struct Gateway {
    machine: usize,
    threads: usize,
    affinities: Vec<Affinity>,
}

struct Simulation<'a> {
    world: &'a World,
    now: Time,
    events: BinaryHeap<Reverse<(Time, u64, usize)>>,
    steps: Vec<Option<Step>>,
    free_steps: Vec<usize>,
    /// Events so far, which keeps those of one time in order.
    order: u64,
    processors: Processors<Step>,
    random: Rng,
    keys: Keys,
    requests: Vec<Request>,
    free_requests: Vec<usize>,
    running: Vec<Option<Running>>,
    free_running: Vec<usize>,
    nodes: Vec<Node>,
    gateways: Vec<Gateway>,
    lanes: Vec<LaneOfGateway>,
    client: Option<usize>,
    coordinator: Option<(usize, usize)>,
    next_gateway: usize,
    counting_since: Option<Time>,
    latencies: Vec<Time>,
    refused: u64,
    batches: u64,
    units: u64,
}

pub fn simulate(world: &World) -> Observed {
    let mut simulation = Simulation::new(world);
    simulation.begin();
    let (warm_up, end) =
        (nanoseconds(world.warm_up * 1e6), nanoseconds((world.warm_up + world.seconds) * 1e6));
    while let Some(Reverse((time, _, place))) = simulation.events.pop() {
        if simulation.counting_since.is_none() && time >= warm_up {
            simulation.start_counting(warm_up);
        }
        if time >= end {
            break;
        }
        simulation.now = time;
        let step = simulation.steps[place].take().expect("an event has a step");
        simulation.free_steps.push(place);
        simulation.act(step);
    }
    simulation.now = end;
    simulation.observed()
}

fn nanoseconds(microseconds: f64) -> Time {
    (microseconds * 1e3).round() as Time
}

impl Simulation<'_> {
    /// The next gateway in turn, for a client that connects.
    fn choose_gateway(&mut self) -> usize {
        let gateway = self.next_gateway;
        self.next_gateway = (gateway + 1) % self.world.gateways.max(1);
        gateway
    }

    /// A client of this gateway makes a request.
    fn ask(&mut self, gateway: usize) {
        let row = self.keys.next(&mut self.random);
        let node = node_of(row, self.world.nodes);
        let request = Request { since: self.now, row, node, gateway, alone: None };
        let place = match self.free_requests.pop() {
            Some(place) => {
                self.requests[place] = request;
                place
            }
            None => {
                self.requests.push(request);
                self.requests.len() - 1
            }
        };
        match self.client {
            Some(client) => self.run(client, self.world.costs.client, Step::Asks(place)),
            None => self.act(Step::Asks(place)),
        }
    }

    fn answered(&mut self, place: usize) {
        if self.counting_since.is_some() {
            self.latencies.push(self.now - self.requests[place].since);
        }
        self.free_requests.push(place);
        if let Arrivals::Closed(_) = self.world.arrivals {
            self.ask(self.requests[place].gateway);
        }
    }

    fn act(&mut self, step: Step) {
        let costs = &self.world.costs;
        match step {
            Step::Ends(threads, step) => {
                let mut started = Vec::new();
                self.processors.end(threads, &mut started);
                self.started(started);
                self.act(*step);
            }
            Step::Due => {
                let Arrivals::Open(rate) = self.world.arrivals else { return };
                let gateway = self.choose_gateway();
                self.ask(gateway);
                let gap = -(1.0 - self.random.f64()).ln() / rate * 1e6;
                self.at(self.now + nanoseconds(gap), Step::Due);
            }
            Step::Asks(place) => match self.world.way {
                Way::Gateways => self.send(Step::Received(place)),
                Way::Direct => self.send(Step::AtServer(place)),
            },
            Step::Received(place) => {
                let threads = self.gateways[self.requests[place].gateway].threads;
                self.run(threads, costs.gateway_unit / 2.0, Step::AtGateway(place));
            }
            Step::AtGateway(place) => self.submit(place),
            Step::AtServer(place) => match self.coordinator {
                Some((_, sessions)) => self.run(sessions, costs.coordinator, Step::ToNode(place)),
                None => self.run_alone(place),
            },
            Step::ToNode(place) => self.send(Step::AtNode(place)),
            Step::AtNode(place) => self.run_alone(place),
            Step::Sends(lane, number) => self.send(Step::Arrives(lane, number)),
            Step::Arrives(lane, number) => self.arrives(lane, number),
            Step::Runs(transaction) => self.advance(transaction),
            Step::Executed(transaction) => self.executed(transaction),
            Step::Committed(transaction) => self.committed(transaction),
            Step::Flushes(transaction) => self.flush(transaction),
            Step::Flushed(node) => self.flushed(node),
            Step::Leads(node) => self.next_flush(node),
            Step::Identified { lane, locks, units } => {
                (0..locks).for_each(|_| self.step(lane, Event::Locked));
                (0..units).for_each(|_| self.step(lane, Event::Answered(Changes::None)));
                self.lanes[lane].identified = self.now;
                self.step(lane, Event::TransactionId(Some(1)));
            }
            Step::Fails(lane, answered) => {
                (0..answered).for_each(|_| self.step(lane, Event::Answered(Changes::None)));
                self.step(lane, Event::Failed(Failure::Blocked));
            }
            Step::Ready(lane) => {
                let took = Duration::from_nanos(self.now - self.lanes[lane].identified);
                self.step(lane, Event::Took(Times { commit: Some(took), ..Times::default() }));
                self.step(lane, Event::Ready);
            }
            Step::HoldOver(lane) => self.step(lane, Event::HoldOver),
            Step::Answers(lane, requests) => self.answers(lane, &requests),
            Step::GivesUp(transaction, wait) => self.gives_up(transaction, wait),
            Step::Returns(place) => match self.coordinator {
                Some((_, sessions)) if self.world.way == Way::Direct => {
                    self.run(sessions, costs.coordinator / 10.0, Step::Leaves(place));
                }
                _ => self.act(Step::Leaves(place)),
            },
            Step::Leaves(place) => self.leaves(place),
            Step::Answered(place) => self.answered(place),
        }
    }

    /// The answer of a request that has run by itself leaves the server.
    fn leaves(&mut self, place: usize) {
        if let Some((lane, key)) = self.requests[place].alone.take() {
            self.step(lane, Event::Unblocked(key));
        }
        self.send(Step::Answered(place));
    }

    fn key(&self, place: usize) -> Key {
        Key { table: TABLE, hash: self.requests[place].row }
    }

    fn submit(&mut self, place: usize) {
        let Request { gateway, node, .. } = self.requests[place];
        let key = self.key(place);
        let Some(index) = self.gateways[gateway].affinities[node].assign(std::iter::once(key), None) else {
            return self.run_alone(place);
        };
        let lane = (gateway * self.world.nodes + node) * limits::LANES + index;
        self.step(lane, Event::Submit(unit(place, key)));
    }

    fn step(&mut self, lane: usize, event: Event<usize>) {
        let mut actions = Vec::new();
        self.lanes[lane].lane.step(event, &mut actions);
        for action in actions {
            self.carry_out(lane, action);
        }
    }

    fn carry_out(&mut self, lane: usize, action: Action<usize>) {
        let costs = &self.world.costs;
        let threads = self.gateways[self.lanes[lane].gateway].threads;
        match action {
            Action::Connect => self.step(lane, Event::Connected),
            Action::Write(number) => {
                self.run(threads, costs.gateway_batch / 2.0, Step::Sends(lane, number));
            }
            Action::Answer(batch) => {
                let requests: Vec<_> = batch.units.iter().map(|unit| unit.payload).collect();
                self.batches += 1;
                self.units += requests.len() as u64;
                let cost = costs.gateway_batch / 2.0 + costs.gateway_unit / 2.0 * requests.len() as f64;
                self.run(threads, cost, Step::Answers(lane, requests));
            }
            Action::Alone(unit, key) => {
                self.release(lane, unit.payload);
                self.requests[unit.payload].alone = key.map(|key| (lane, key));
                self.run_alone(unit.payload);
            }
            Action::Return(unit) => {
                self.release(lane, unit.payload);
                self.submit(unit.payload);
            }
            Action::Refuse(units, _) => {
                for unit in units {
                    self.release(lane, unit.payload);
                    self.refused += 1;
                    self.free_requests.push(unit.payload);
                }
            }
            Action::Hold(time) => {
                self.at(self.now + nanoseconds(time.as_secs_f64() * 1e6), Step::HoldOver(lane))
            }
            Action::Resolve(_) | Action::Disconnect => {} // no connection is lost here
        }
    }

    /// The lane's batch is rolled back, and the unit that waits for the lock leaves the lane.
    fn gives_up(&mut self, transaction: Transaction, wait: u64) {
        let Some(running) = self.running[transaction].as_ref() else { return };
        let Owner::Batch(lane) = running.owner else { return };
        if !running.is_waiting || running.waits != wait {
            return;
        }
        let answered: usize = running.rows[..running.next].iter().map(|(_, units)| units).sum();
        self.ends(transaction);
        // The answers to earlier batches arrive before.
        self.send(Step::Fails(lane, answered));
        self.send(Step::Ready(lane));
        self.idle(lane);
    }

    fn release(&mut self, lane: usize, place: usize) {
        let key = self.key(place);
        let LaneOfGateway { gateway, node, place, .. } = self.lanes[lane];
        self.gateways[gateway].affinities[node].release(place, std::iter::once(key));
    }

    fn answers(&mut self, lane: usize, requests: &[usize]) {
        for place in requests {
            self.release(lane, *place);
            self.send(Step::Answered(*place));
        }
    }
}

fn unit(place: usize, key: Key) -> Unit<usize> {
    let claimed = Claimed {
        key: Some(key),
        rows_per_commit: ROWS_PER_COMMIT,
        lockable: true,
        statements: 1,
        bytes: 100,
        ..Claimed::default()
    };
    Unit::new(place as u64, true, claimed, place)
}
