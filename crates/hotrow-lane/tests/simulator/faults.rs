//! Faults from outside and their time: planned for one step, or drawn from a seed. This file performs them
//! and checks nothing.

use fastrand::Rng;
use hotrow_lane::key::Key;
use hotrow_lane::lane::{Outcome, Xid};

use super::server::Lock;
use super::wire::Wire;
use super::world::World;
use hotrow_core::witness::Mark;

/// Decides before each step whether a fault happens.
pub trait Faults {
    fn strike(&mut self, world: &mut World, step: usize);
}

/// No faults.
pub struct None;

impl Faults for None {
    fn strike(&mut self, _: &mut World, _: usize) {}
}

/// The events after a lane's connection was cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    /// It connects immediately.
    Recovers,
    /// Two attempts fail first.
    Waits,
    /// The second attempt fails, and the lane gives up.
    GivesUp,
    /// The server no longer knows the transaction's outcome.
    IsForgotten,
    /// The next connection is cut too, after this number of steps.
    IsCutAgain(usize),
}

/// A cut of a lane's connection before this step. The server still receives `keep` of the frames under way.
#[derive(Clone, Debug)]
pub struct Cut {
    lane: usize,
    step: usize,
    keep: usize,
    then: Then,
    struck: bool,
    /// Frames that the server had not received when the connection was cut.
    pub on_their_way: usize,
    failures: usize,
    again_at: Option<usize>,
}

impl Cut {
    pub fn new(lane: usize, step: usize, keep: usize, then: Then) -> Self {
        Cut { lane, step, keep, then, struck: false, on_their_way: 0, failures: 0, again_at: Option::None }
    }
}

impl Faults for Cut {
    fn strike(&mut self, world: &mut World, step: usize) {
        if step == self.step
            && let Some(backend) = world.wires[self.lane].backend
        {
            self.struck = true;
            self.on_their_way = world.backends[backend].input.len();
            world.cut(self.lane, self.keep);
            if let Then::IsCutAgain(steps) = self.then {
                self.again_at = Some(step + steps);
            }
        }
        if self.again_at == Some(step) {
            world.cut(self.lane, self.keep);
        }
        if self.struck && self.then == Then::IsForgotten {
            world.resolve(self.lane, Outcome::Unknown);
        }
        while self.struck && world.wires[self.lane].wanted && self.failures < 2 {
            self.failures += 1;
            match self.then {
                Then::Recovers | Then::IsForgotten | Then::IsCutAgain(_) => {}
                Then::Waits => world.fail_to_connect(self.lane, false),
                Then::GivesUp => world.fail_to_connect(self.lane, self.failures == 2),
            }
        }
    }
}

/// Faults of a lane's earliest batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BatchFault {
    /// It takes long.
    Slow,
    /// The current statement takes too long.
    Stall,
    /// The client of this session cancels its earliest unit.
    Cancel(usize),
    /// The lane's connection is cut.
    Cut,
}

/// Faults of one lane, each before its step.
#[derive(Clone, Debug)]
pub struct BatchFaults<'t> {
    pub lane: usize,
    pub troubles: &'t [(usize, BatchFault)],
}

impl Faults for BatchFaults<'_> {
    fn strike(&mut self, world: &mut World, step: usize) {
        for (_, trouble) in self.troubles.iter().filter(|(at, _)| *at == step) {
            match *trouble {
                BatchFault::Slow => world.slow(self.lane),
                BatchFault::Stall => world.stall(self.lane),
                BatchFault::Cancel(session) => world.cancel(session),
                BatchFault::Cut => world.cut(self.lane, usize::MAX),
            }
        }
    }
}

/// Random faults until the budget is spent.
#[derive(Debug)]
pub struct Seeded {
    pub rng: Rng,
    /// Average number of steps between two faults.
    pub pause: usize,
    pub budget: usize,
    pub rows: Vec<Key>,
}

impl Faults for Seeded {
    fn strike(&mut self, world: &mut World, _: usize) {
        if self.budget == 0 {
            return;
        }
        if let Some(lane) = self.pick(world, |wire| wire.wanted || wire.asked.is_some() || is_risky(wire)) {
            // Such moments are short. Faults are therefore placed in them on purpose.
            if self.rng.u8(..8) == 0 {
                self.budget -= 1;
                self.strike_lane(world, lane);
            }
        } else if self.rng.usize(..self.pause) == 0 {
            self.budget -= 1;
            self.strike_anything(world);
        }
    }
}

/// A loss now leaves a commit in doubt that can be asked about.
fn is_risky(wire: &Wire) -> bool {
    wire.lane.under_way().front().is_some_and(|batch| batch.xid != Xid::Missing)
}

impl Seeded {
    fn pick(&mut self, world: &World, wanted: impl Fn(&Wire) -> bool) -> Option<usize> {
        let lanes = world.wires.iter().enumerate().filter(|(_, wire)| wanted(wire));
        let lanes: Vec<_> = lanes.map(|(lane, _)| lane).collect();
        if lanes.is_empty() { Option::None } else { Some(lanes[self.rng.usize(..lanes.len())]) }
    }

    fn strike_lane(&mut self, world: &mut World, lane: usize) {
        match self.rng.u8(..8) {
            0 => world.fail_to_connect(lane, true),
            1..3 => world.fail_to_connect(lane, false),
            3 => world.resolve(lane, Outcome::Unknown),
            _ => {
                let keep = if self.rng.bool() { self.rng.usize(..40) } else { usize::MAX };
                world.cut(lane, keep);
            }
        }
    }

    fn strike_anything(&mut self, world: &mut World) {
        world.server.checkpointed |= self.rng.u8(..8) == 0;
        let lane = self.rng.usize(..world.wires.len());
        let session = self.rng.usize(..world.sessions.len());
        let row = self.rows[self.rng.usize(..self.rows.len())];
        match self.rng.u8(..18) {
            0..3 => self.strike_lane(world, lane),
            12..14 => world.pause(lane),
            14 => world.stall(lane),
            15 => world.cancel(session),
            16.. => {
                world.slow(lane);
                world.impatient(session);
            }
            3 => crash(world, self.rng.u64(..3)),
            4 => self.set_marks(world),
            5 => world.leave(session),
            6..8 => lock(world, Lock::Row(row)),
            8 => lock(world, Lock::Table(row.table)),
            9 if !world.outsiders.is_empty() => {
                let (_, txn) = world.outsiders.swap_remove(self.rng.usize(..world.outsiders.len()));
                world.server.release(txn);
            }
            _ => world.server.change(row, self.rng.i64(-2..3)),
        }
    }

    /// An outsider sets all marks to a bare ID, or to a value of another gateway's connection.
    fn set_marks(&mut self, world: &mut World) {
        let (random, ahead) = (self.rng.u64(..), self.rng.u64(..8));
        let is_bare = self.rng.bool();
        let base = if is_bare { 0 } else { Mark::base(random) };
        world.server.set_all_marks(|ids| base + (ids + ahead).saturating_sub(4));
    }
}

/// An outsider takes a lock and keeps it.
pub fn lock(world: &mut World, lock: Lock) {
    if let Some(txn) = world.server.lock(lock) {
        world.outsiders.push((lock, txn));
    }
}

/// An outsider's transactions end.
pub fn unlock_all(world: &mut World) {
    for (_, txn) in std::mem::take(&mut world.outsiders) {
        world.server.release(txn);
    }
}

/// The server crashes with all its connections and restarts immediately. Its log keeps `ids_left` IDs
/// that no commit has flushed.
pub fn crash(world: &mut World, ids_left: u64) {
    unlock_all(world);
    for backend in &mut world.backends {
        backend.die(&mut world.server);
    }
    world.server.crash(ids_left);
    world.history.batches.iter_mut().for_each(|sent| sent.evidence.crashed |= !sent.evidence.ready);
}
