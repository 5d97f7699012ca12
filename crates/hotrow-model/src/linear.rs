//! Checks whether one order explains the answers that concurrent clients got. In such an order, each operation takes effect
//! between its call and its answer, and the model gives every answer of the history. The transport of the calls does not
//! matter.
//!
//! The search is by Wing and Gong, with Lowe's memory of dead ends: it tries each operation that can be next and whose answer
//! the model gives too. Versions and remaining stock leave few of them.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};

use crate::{Command, World};

/// The search gives up after this number of steps.
const STEPS_MAX: usize = 300_000;

/// One call from its client's point of view. Times are only compared.
#[derive(Clone, Debug)]
pub struct Operation {
    /// The command, with the IDs that the answer gave to new reservations.
    pub command: Command,
    /// The answer; None if it was lost. The call may then have taken effect at any later time, or never.
    pub answer: Option<String>,
    /// The time at which the call was first sent.
    pub called: u64,
    /// The time at which the answer arrived.
    pub answered: u64,
}

/// No order was found.
#[derive(Debug, thiserror::Error)]
pub enum Violation {
    /// No order explains the answers.
    #[error("no order explains the answers; {explained} of {all} can be explained, then:{stuck}")]
    NoOrder {
        /// The number of operations in the longest explained beginning.
        explained: usize,
        /// The number of all operations.
        all: usize,
        /// The operations that could be next, with the model's answers.
        stuck: String,
    },
    /// There are too many orders to try all. Make the history shorter.
    #[error("no order was found in {STEPS_MAX} steps; after {explained} of {all} operations:{stuck}")]
    GaveUp {
        /// The number of operations in the longest explained beginning.
        explained: usize,
        /// The number of all operations.
        all: usize,
        /// The operations that could be next, with the model's answers.
        stuck: String,
    },
}

/// Searches for an order that begins with the state `start`.
pub fn check(start: &World, operations: &[Operation]) -> Result<(), Violation> {
    let mut sorted: Vec<&Operation> = operations.iter().collect();
    sorted.sort_by_key(|operation| operation.called);
    let mut search = Search { operations: &sorted, dead: HashSet::new(), steps: 0 };
    search.run(start)
}

/// The operations in the beginning of an order: all before `first`, and those in `beyond`.
#[derive(Clone, Default, Hash)]
struct Done {
    first: usize,
    beyond: Vec<usize>,
}

struct Search<'a> {
    operations: &'a [&'a Operation],
    /// Digests of beginnings, with the state that they lead to, that cannot be continued.
    dead: HashSet<u64>,
    steps: usize,
}

struct Frame {
    done: Done,
    world: World,
    /// The operations that can be next, with the state after each.
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
            // A matching operation that changes nothing is taken at once, because all other operations are still possible
            // after it.
            if next.differs_in_requests_only(&world) {
                nexts = vec![(index, next)];
                break;
            }
            nexts.push((index, next));
        }
        Frame { done, world, nexts: nexts.into_iter() }
    }

    /// The operations that were called before any remaining operation was answered, in the order of their answers.
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

/// The state after the operation, if the model gives its answer.
fn explains(world: &World, operation: &Operation) -> Option<World> {
    let mut next = world.clone();
    // Histories are short: no hold in them expires.
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
