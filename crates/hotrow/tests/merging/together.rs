//! Threads that begin each round together. If one of them fails, the others do not wait for it, and the test fails.

use std::sync::{Condvar, Mutex};
use std::thread;

/// Lets a number of threads begin together, any number of times.
pub struct Together {
    count: usize,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// Threads that wait for the next round.
    waiting: usize,
    round: usize,
    has_failed: bool,
}

/// One of the threads. When it is dropped by a panic, no thread waits any more.
pub struct Caller<'a>(&'a Together);

impl Together {
    pub fn new(count: usize) -> Self {
        Together { count, state: Mutex::default(), changed: Condvar::new() }
    }

    /// To be called first in each thread.
    pub fn caller(&self) -> Caller<'_> {
        Caller(self)
    }
}

impl Caller<'_> {
    /// Waits until all callers wait. Panics if one of them has failed.
    pub fn wait(&self) {
        let Together { count, state, changed } = self.0;
        let mut state = state.lock().unwrap();
        let round = state.round;
        state.waiting += 1;
        if state.waiting == *count {
            (state.waiting, state.round) = (0, round + 1);
            changed.notify_all();
        }
        let state = changed.wait_while(state, |state| state.round == round && !state.has_failed).unwrap();
        let begins = state.round > round;
        drop(state);
        assert!(begins, "another caller has failed");
    }
}

impl Drop for Caller<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.state.lock().unwrap().has_failed = true;
            self.0.changed.notify_all();
        }
    }
}

#[test]
fn a_caller_that_fails_ends_the_wait_of_the_others() {
    let together = Together::new(3);
    let ends: Vec<_> = thread::scope(|scope| {
        let callers = (0..3).map(|number| {
            let together = &together;
            scope.spawn(move || {
                let caller = together.caller();
                caller.wait();
                assert_ne!(number, 1, "the answer of caller {number} is wrong");
                caller.wait();
            })
        });
        let callers: Vec<_> = callers.collect();
        callers.into_iter().map(thread::ScopedJoinHandle::join).collect()
    });
    let message = |number: usize| ends[number].as_ref().unwrap_err().downcast_ref::<String>().cloned();
    assert!(message(1).unwrap().contains("the answer of caller 1 is wrong"));
    assert!([0, 2].iter().all(|number| ends[*number].is_err()), "the other callers do not wait");
}
