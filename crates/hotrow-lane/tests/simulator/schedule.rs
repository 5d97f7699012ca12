//! Chooses the next of the possible moves, and runs a world until nothing moves. It does not depend on particular
//! faults.

use fastrand::Rng;

use super::faults::{self, Faults};
use super::world::{Move, World};
use super::{checker, rest};

/// More steps than any simulated workload needs. A run with more steps loops.
const STEPS_MAX: usize = 20_000;

#[derive(Clone, Debug)]
pub enum Schedule {
    /// Messages arrive as soon as possible. The first sessions up to this number submit before there is a
    /// connection.
    Eager(usize),
    /// Everything is written before the server begins, and everything runs before the first answer arrives.
    Lazy(usize),
    /// Random moves.
    Seeded(Seeded),
}

#[derive(Clone, Debug)]
pub struct Seeded {
    pub rng: Rng,
    /// Connections are opened immediately. Many units then arrive while a small batch is under way.
    pub prompt: bool,
    /// Lanes seldom look at submitted units, as if there were always a reason to wait.
    pub sluggish: bool,
}

impl Seeded {
    fn pick(&mut self, moves: &[Move]) -> Move {
        let connect = moves.iter().find(|next| self.prompt && matches!(next, Move::Connect(_)));
        if let Some(connect) = connect {
            return *connect;
        }
        // A busy lane does not look, and is more likely to be skipped than others.
        let passed_over = |rng: &mut Rng| self.sluggish && rng.u8(..16) > 0;
        loop {
            let next = moves[self.rng.usize(..moves.len())];
            let inbox = matches!(next, Move::Take(_)) && moves.len() > 1;
            if !inbox || !passed_over(&mut self.rng) {
                return next;
            }
        }
    }
}

impl Schedule {
    fn pick(&mut self, moves: &[Move]) -> Move {
        let rank = |next: &Move| match (&self, next) {
            (Schedule::Eager(wave) | Schedule::Lazy(wave), Move::Submit(session)) if session < wave => 0,
            (_, Move::Take(_)) => 0,
            (_, Move::Connect(_)) => 1,
            (_, Move::Submit(_)) => 2,
            (_, Move::Resolve(_)) => 3,
            (Schedule::Lazy(_), Move::Write(_)) => 4,
            (Schedule::Lazy(_), Move::Serve(_)) => 5,
            (_, Move::Deliver(_)) => 6,
            (_, Move::Serve(_)) => 7,
            (_, Move::Write(_)) => 8,
            (_, Move::Turn(_)) => 9,
            (_, Move::TimeOut(_)) => 10,
            (_, Move::HoldOver(_)) => 11,
        };
        match self {
            Schedule::Seeded(seeded) => seeded.pick(moves),
            _ => *moves.iter().min_by_key(|next| rank(next)).expect("there is a move"),
        }
    }
}

/// Runs until nothing moves.
fn run(world: &mut World, schedule: &mut Schedule, faults: &mut impl Faults) {
    let mut moves = Vec::new();
    while world.steps < STEPS_MAX {
        faults.strike(world, world.steps);
        world.moves(&mut moves);
        if moves.is_empty() {
            if world.resume_all() {
                continue;
            }
            return;
        }
        world.steps += 1;
        let next = schedule.pick(&moves);
        if let Some(trace) = &mut world.trace {
            trace.push(format!("{next:?}"));
        }
        world.perform(next);
    }
    world.history.complaints.push("the run never ends".to_owned());
}

/// Runs a world to its end, including outsiders' locks, and returns its errors.
pub fn run_and_check(world: &mut World, mut schedule: Schedule, faults: &mut impl Faults) -> Vec<String> {
    run(world, &mut schedule, faults);
    rest::only_locks_are_waited_for(world);
    faults::unlock_all(world);
    run(world, &mut schedule, &mut faults::None);
    rest::nothing_is_left(world);
    world.history.log = std::mem::take(&mut world.server.log);
    world.history.seen = std::mem::take(&mut world.server.seen);
    checker::check(&world.history)
}
