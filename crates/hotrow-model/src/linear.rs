//! Whether what many clients saw at once has an order that explains it: one in which each operation lies between its
//! call and its answer, and in which the model gives every answer that was given. Never knows how they were sent.
//!
//! The search is that of Wing and Gong with Lowe's memory of dead ends: of the operations that may come next, try each
//! whose answer the model gives too. Versions and remaining stock leave few of them.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};

use crate::{Command, World};

/// A search this long has lost its way.
const STEPS_MAX: usize = 300_000;

/// One call as its client saw it. Times only have to be ordered.
#[derive(Clone, Debug)]
pub struct Operation {
    /// What was called, with the ids that the answer gave to new reservations.
    pub command: Command,
    /// The answer; None when it was lost, so that the call may have worked, at any later time, or not.
    pub answer: Option<String>,
    /// When it was sent first.
    pub called: u64,
    /// When it was answered.
    pub answered: u64,
}

/// No order was found.
#[derive(Debug, thiserror::Error)]
pub enum Violation {
    /// There is none.
    #[error("no order explains the answers; {explained} of {all} can be explained, then:{stuck}")]
    NoOrder {
        /// The longest beginning.
        explained: usize,
        /// How many operations there are.
        all: usize,
        /// What could come next, and what it should have been answered.
        stuck: String,
    },
    /// Too many orders to try all; make the history shorter.
    #[error("no order was found in {STEPS_MAX} steps; after {explained} of {all} operations:{stuck}")]
    GaveUp {
        /// The longest beginning.
        explained: usize,
        /// How many operations there are.
        all: usize,
        /// What could come next, and what it should have been answered.
        stuck: String,
    },
}

/// Searches an order, beginning with `start`.
pub fn check(start: &World, operations: &[Operation]) -> Result<(), Violation> {
    let mut sorted: Vec<&Operation> = operations.iter().collect();
    sorted.sort_by_key(|operation| operation.called);
    let mut search = Search { operations: &sorted, dead: HashSet::new(), steps: 0 };
    search.run(start)
}

/// A beginning of an order: all before `first` and those `beyond`.
#[derive(Clone, Default, Hash)]
struct Done {
    first: usize,
    beyond: Vec<usize>,
}

struct Search<'a> {
    operations: &'a [&'a Operation],
    /// Digests of beginnings, with the state they lead to, that lead nowhere.
    dead: HashSet<u64>,
    steps: usize,
}

struct Frame {
    done: Done,
    world: World,
    /// What may come next, with the state behind it.
    nexts: std::vec::IntoIter<(usize, World)>,
}

impl Search<'_> {
    fn run(&mut self, start: &World) -> Result<(), Violation> {
        let mut stack = vec![self.frame(Done::default(), start.clone())];
        let mut longest = (0, Done::default(), start.clone());
        while let Some(frame) = stack.last_mut() {
            if self.operations[frame.done.first..].iter().all(|operation| operation.answer.is_none()) {
                return Ok(());
            }
            let Some((index, world)) = frame.nexts.next() else {
                self.dead.insert(digest(&frame.done, &frame.world));
                stack.pop();
                continue;
            };
            self.steps += 1;
            if self.steps > STEPS_MAX {
                break;
            }
            let done = frame.done.with(index);
            if self.dead.is_empty() || !self.dead.contains(&digest(&done, &world)) {
                if done.count() > longest.0 {
                    longest = (done.count(), done.clone(), world.clone());
                }
                stack.push(self.frame(done, world));
            }
        }
        let (explained, all) = (longest.0, self.operations.len());
        let stuck = self.describe(&longest.1, &longest.2);
        Err(if self.steps > STEPS_MAX {
            Violation::GaveUp { explained, all, stuck }
        } else {
            Violation::NoOrder { explained, all, stuck }
        })
    }

    fn frame(&self, done: Done, world: World) -> Frame {
        let mut nexts = Vec::new();
        for index in self.candidates(&done) {
            let Some(next) = explains(&world, self.operations[index]) else { continue };
            // What is right here and changes nothing is taken at once: behind it everything is as possible as before it.
            if next.differs_in_requests_only(&world) {
                nexts = vec![(index, next)];
                break;
            }
            nexts.push((index, next));
        }
        Frame { done, world, nexts: nexts.into_iter() }
    }

    /// What was called before anything that is not done yet was answered; what was answered first comes first.
    fn candidates(&self, done: &Done) -> Vec<usize> {
        let (mut found, mut earliest) = (Vec::new(), u64::MAX);
        for (index, operation) in self.operations.iter().enumerate().skip(done.first) {
            if operation.called > earliest {
                break;
            }
            if !done.contains(index) {
                found.push(index);
                earliest = earliest.min(operation.end());
            }
        }
        found.retain(|index| self.operations[*index].called <= earliest);
        found.sort_by_key(|index| self.operations[*index].end());
        found
    }

    fn describe(&self, done: &Done, world: &World) -> String {
        let candidates = self.candidates(done).into_iter().map(|index| self.operations[index]);
        let lines = candidates.map(|Operation { command, answer, called, answered }| {
            let answer = answer.as_deref().unwrap_or("(lost)");
            let right =
                world.clone().apply(command, 0).map_or_else(|fault| fault.to_string(), |a| a.to_string());
            format!("\n  {called}..{answered} {command} -> {answer} (the model: {right})")
        });
        lines.collect()
    }
}

impl Operation {
    fn end(&self) -> u64 {
        if self.answer.is_some() { self.answered } else { u64::MAX }
    }
}

impl Done {
    fn contains(&self, index: usize) -> bool {
        index < self.first || self.beyond.contains(&index)
    }

    fn count(&self) -> usize {
        self.first + self.beyond.len()
    }

    fn with(&self, index: usize) -> Self {
        let mut done = self.clone();
        let at = done.beyond.partition_point(|other| *other < index);
        done.beyond.insert(at, index);
        while done.beyond.first() == Some(&done.first) {
            done.beyond.remove(0);
            done.first += 1;
        }
        done
    }
}

/// The state behind the operation, if the model answers it like that.
fn explains(world: &World, operation: &Operation) -> Option<World> {
    let mut next = world.clone();
    // Histories are short: no hold that they make ends in them.
    let answer = next.apply(&operation.command, 0).ok()?;
    operation.answer.as_ref().is_none_or(|given| answer.to_string() == *given).then_some(next)
}

fn digest(done: &Done, world: &World) -> u64 {
    let mut hasher = DefaultHasher::new();
    (done, world).hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests;
