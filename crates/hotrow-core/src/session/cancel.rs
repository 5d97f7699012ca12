//! Where a cancel request of a client goes: to its session while that waits, to the backend that works for the session, or
//! to the session's lanes. A request reaches no work of another session.
//!
//! The session and the tasks that carry requests share this state under a lock. The session reports when it begins to
//! wait, when a backend works for it, and when it leaves the backend: before another session, or a query of the gateway,
//! uses the backend. From then on no request goes there. The session waits until those on their way have arrived.

/// What a session waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitsFor {
    /// A connection.
    Connection,
    /// Its turn on a row.
    Row,
    /// Something to answer for a call that found nothing.
    Answer,
}

impl WaitsFor {
    /// The state of the session on the console.
    pub fn describe(self) -> &'static str {
        match self {
            WaitsFor::Connection => "waits for a connection",
            WaitsFor::Row => "waits for a row",
            WaitsFor::Answer => "waits for something to answer",
        }
    }
}

/// The place of a session's work. `B` identifies a backend.
#[derive(Debug)]
enum Work<B> {
    /// In lanes, if the session has any.
    Lanes,
    /// With the session, which waits.
    Session { waits_for: WaitsFor, is_cancelled: bool },
    /// At a backend.
    Backend(B),
}

/// Where a request goes.
#[derive(Debug, PartialEq, Eq)]
pub enum CancelTarget<B> {
    /// All lanes are told.
    Lanes,
    /// The session is woken: its wait is cancelled.
    Session,
    /// The server is sent a message. [`CancelState::arrived`] reports that it has arrived, or cannot be sent.
    Backend(B),
}

/// A session's work, as a cancel request finds it.
#[derive(Debug)]
pub struct CancelState<B> {
    work: Work<B>,
    /// Requests on their way to a backend.
    on_their_way: usize,
    /// The slot of the unit that was the earliest unanswered one when the last request went to the lanes.
    meant: Option<u64>,
}

impl<B> Default for CancelState<B> {
    fn default() -> Self {
        CancelState { work: Work::Lanes, on_their_way: 0, meant: None }
    }
}

impl<B: Clone> CancelState<B> {
    /// The client sends a request. `earliest` is the slot of its earliest unit without an answer.
    pub fn request(&mut self, earliest: Option<u64>) -> CancelTarget<B> {
        match &mut self.work {
            Work::Lanes => {
                self.meant = earliest;
                CancelTarget::Lanes
            }
            Work::Session { is_cancelled, .. } => {
                *is_cancelled = true;
                CancelTarget::Session
            }
            Work::Backend(backend) => {
                self.on_their_way += 1;
                CancelTarget::Backend(backend.clone())
            }
        }
    }

    /// A request for a backend has arrived, or cannot be sent.
    pub fn arrived(&mut self) {
        self.on_their_way -= 1;
    }

    /// The session begins to wait. If it waits with a unit that a lane has given back, the request may have come while
    /// the unit was on its way.
    pub fn waits(&mut self, waits_for: WaitsFor, unit: Option<u64>) {
        self.work = Work::Session { waits_for, is_cancelled: self.is_meant(unit) };
    }

    /// Whether the wait is cancelled.
    pub fn is_cancelled(&self) -> bool {
        matches!(self.work, Work::Session { is_cancelled: true, .. })
    }

    /// The session waits no longer, and no backend works for it. Returns whether the wait was cancelled.
    pub fn wait_over(&mut self) -> bool {
        let is_cancelled = self.is_cancelled();
        self.work = Work::Lanes;
        is_cancelled
    }

    /// A backend is there for the session, or for a unit that a lane has given back. False if the work was cancelled
    /// before. Then the backend is not used.
    pub fn works(&mut self, backend: B, unit: Option<u64>) -> bool {
        let is_cancelled = self.wait_over() || self.is_meant(unit);
        if !is_cancelled {
            self.work = Work::Backend(backend);
        }
        !is_cancelled
    }

    /// The session leaves its backend. Returns whether nothing is on its way there, so others can use it.
    pub fn leaves(&mut self) -> bool {
        self.work = Work::Lanes;
        self.on_their_way == 0
    }

    /// The backend that the session has left works for it again.
    pub fn returns(&mut self, backend: B) {
        self.work = Work::Backend(backend);
    }

    /// Whether a request came for this unit, which a lane has given back, while it was in a lane or on its way.
    pub fn is_meant(&self, unit: Option<u64>) -> bool {
        unit.is_some() && unit == self.meant
    }

    /// The backend that works for the session.
    pub fn backend(&self) -> Option<&B> {
        match &self.work {
            Work::Backend(backend) => Some(backend),
            Work::Lanes | Work::Session { .. } => None,
        }
    }

    /// What the session waits for.
    pub fn waits_for(&self) -> Option<WaitsFor> {
        match self.work {
            Work::Session { waits_for, .. } => Some(waits_for),
            Work::Lanes | Work::Backend(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type State = CancelState<&'static str>;

    #[test]
    fn a_request_follows_the_work() {
        let mut state = State::default();
        assert_eq!(state.request(None), CancelTarget::Lanes);
        state.waits(WaitsFor::Row, None);
        assert_eq!((state.waits_for(), state.is_cancelled()), (Some(WaitsFor::Row), false));
        assert!(!state.wait_over());
        state.waits(WaitsFor::Connection, None);
        assert!(state.works("a", None));
        assert_eq!(state.backend(), Some(&"a"));
        assert_eq!(state.request(None), CancelTarget::Backend("a"));
        state.leaves();
        state.request(Some(1));
        state.returns("a");
        assert_eq!(
            state.backend(),
            Some(&"a"),
            "a request during a query of the gateway is not for later work"
        );
        state.leaves();
        assert_eq!(state.backend(), None);
        assert_eq!(state.request(None), CancelTarget::Lanes);
    }

    #[test]
    fn a_cancelled_wait_uses_no_backend_and_the_next_one_is_not_cancelled() {
        let mut state = State::default();
        state.waits(WaitsFor::Connection, None);
        assert_eq!(state.request(None), CancelTarget::Session);
        assert!(state.is_cancelled() && !state.works("a", None));
        assert_eq!(state.backend(), None);
        state.waits(WaitsFor::Connection, None);
        assert!(!state.is_cancelled() && state.works("a", None));
    }

    #[test]
    fn a_backend_is_free_when_all_requests_have_arrived() {
        let mut state = State::default();
        state.works("a", None);
        state.request(None);
        state.request(None);
        assert!(!state.leaves());
        state.arrived();
        assert!(!state.leaves());
        state.arrived();
        assert!(state.leaves());
    }

    #[test]
    fn a_request_that_finds_a_unit_on_its_way_back_cancels_this_unit_only() {
        let mut state = State::default();
        state.request(Some(3));
        assert_eq!(
            [None, Some(2), Some(3), Some(4)].map(|unit| state.is_meant(unit)),
            [false, false, true, false]
        );
        state.waits(WaitsFor::Answer, Some(4));
        assert!(!state.wait_over());
        state.waits(WaitsFor::Answer, Some(3));
        assert!(state.wait_over());
        assert!(!state.works("a", Some(3)) && state.works("a", Some(4)));
    }
}
