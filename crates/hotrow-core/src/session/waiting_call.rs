//! A call that found nothing and waits: when the wait ends, and what its client gets then. The times are those of the
//! caller's clock.

use hotrow_wire::SqlState;
use hotrow_wire::backend::Problem;

use super::{Environment, Session};

/// A waiting call. `T` is a time.
#[derive(Debug)]
pub struct CallTimer<T> {
    /// When the time is looked at next.
    look_at: T,
    /// The end of the wait.
    deadline: T,
}

/// An event for a waiting call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallEvent<T> {
    /// There may be something for it.
    Woken,
    /// Its client has disconnected.
    ClientLeft,
    /// The gateway stops, or the session has ended.
    Stops,
    /// It is this time. During a pause no call is repeated, and the time is looked at again then.
    Time {
        /// The time.
        now: T,
        /// When to look again during a pause of the database.
        paused: Option<T>,
    },
}

/// Why a call stops waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallEnd {
    /// There may be something for it: it runs again.
    Retry,
    /// No more time, or no more client: it gets its empty answer.
    Empty,
    Cancelled,
}

impl<T: Copy + Ord> CallTimer<T> {
    /// A call that is repeated then, and waits no longer than this.
    pub fn new(again: T, deadline: T) -> Self {
        CallTimer { look_at: again.min(deadline), deadline }
    }

    /// When [`CallEvent::Time`] is due.
    pub fn look_at(&self) -> T {
        self.look_at
    }

    /// Returns why the wait ends, if it ends.
    pub fn step(&mut self, event: CallEvent<T>) -> Option<CallEnd> {
        match event {
            CallEvent::Woken => Some(CallEnd::Retry),
            CallEvent::ClientLeft | CallEvent::Stops => Some(CallEnd::Empty),
            CallEvent::Time { now, .. } if now >= self.deadline => Some(CallEnd::Empty),
            CallEvent::Time { now, .. } if now < self.look_at => None,
            CallEvent::Time { paused: None, .. } => Some(CallEnd::Retry),
            CallEvent::Time { paused: Some(next), .. } => {
                self.look_at = next.min(self.deadline);
                None
            }
        }
    }
}

impl<E: Environment> Session<E> {
    /// The wait of the earliest unfinished unit, a call, is over. `empty` is its answer without rows.
    pub fn call_ended(&mut self, call: E::Envelope, end: CallEnd, empty: &[u8]) {
        match end {
            CallEnd::Retry => self.submit_again(call),
            CallEnd::Empty => self.answer_returned(empty),
            CallEnd::Cancelled => self.refuse_returned(&call, &cancelled()),
        }
    }
}

/// PostgreSQL's error for a cancelled statement.
pub fn cancelled() -> Problem {
    Problem::error(SqlState::QueryCanceled, "canceling statement due to user request", "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_repeated_at_its_time_and_ends_at_its_deadline() {
        let mut call = CallTimer::new(5, 9);
        assert_eq!((call.look_at(), call.step(CallEvent::Time { now: 4, paused: None })), (5, None));
        assert_eq!(call.step(CallEvent::Time { now: 5, paused: None }), Some(CallEnd::Retry));
        assert_eq!(call.step(CallEvent::Time { now: 9, paused: None }), Some(CallEnd::Empty));
        assert_eq!(CallTimer::new(9, 5).look_at(), 5);
    }

    #[test]
    fn during_a_pause_no_call_is_repeated_and_the_deadline_stays() {
        let mut call = CallTimer::new(5, 9);
        assert_eq!((call.step(CallEvent::Time { now: 5, paused: Some(7) }), call.look_at()), (None, 7));
        assert_eq!((call.step(CallEvent::Time { now: 7, paused: Some(10) }), call.look_at()), (None, 9));
        assert_eq!(call.step(CallEvent::Time { now: 9, paused: Some(12) }), Some(CallEnd::Empty));
    }

    #[test]
    fn each_reason_has_its_end() {
        let end = |event: CallEvent<u8>| CallTimer::new(5, 9).step(event);
        assert_eq!(end(CallEvent::Woken), Some(CallEnd::Retry));
        assert_eq!(end(CallEvent::ClientLeft), Some(CallEnd::Empty));
        assert_eq!(end(CallEvent::Stops), Some(CallEnd::Empty));
    }
}
