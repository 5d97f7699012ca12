//! Where a session's work is, as its cancel requests find it. The session and the tasks that carry requests share this state
//! under a lock.
//!
//! No request is lost while a statement of the client is under way. While the session waits, a request ends the wait. While
//! the session is busy with something that must not be interrupted, such as a query of the gateway on the session's
//! connection, requests wait until the session waits again: by then, the client's statement is where the request finds it.
//! While the session waits for its client or its server, requests go to the work: to the lanes, or to the backend. The
//! session leaves its backend only when no request is on its way there.

/// What a session waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitsFor {
    Connection,
    /// Its turn on a row.
    Row,
    /// Something to answer for a call that found nothing.
    Answer,
    /// What the catalog says about its statement.
    Catalog,
    /// A replica that has all that the session may see.
    Replica,
    /// The notifications before its statement.
    Notifications,
}

impl WaitsFor {
    /// Whether it waits with its earliest unanswered unit, which a lane has given back. Otherwise it waits with a message after
    /// all units.
    fn is_of_unit(self) -> bool {
        matches!(self, WaitsFor::Connection | WaitsFor::Answer)
    }
}

/// What the session does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// It waits for its client, its server or its lanes.
    AtEvents,
    /// Something that must not be interrupted.
    Busy,
    /// It waits, and its wait can be cancelled.
    Waits { waits_for: WaitsFor, is_cancelled: bool },
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
    /// The request is made again when the session is no longer busy.
    Later,
}

/// A session's work, as a cancel request finds it. `B` identifies a backend.
#[derive(Debug)]
pub struct CancelState<B> {
    /// The backend that works for the session.
    backend: Option<B>,
    phase: Phase,
    /// A request waits until the session is no longer busy.
    is_awaited: bool,
    /// Requests on their way to a backend.
    on_their_way: usize,
    /// The slot of the unit that was the earliest unanswered one when the last request went to the lanes.
    meant: Option<u64>,
}

impl<B> Default for CancelState<B> {
    fn default() -> Self {
        let phase = Phase::AtEvents;
        CancelState { backend: None, phase, is_awaited: false, on_their_way: 0, meant: None }
    }
}

impl<B: Clone> CancelState<B> {
    /// The client sends a request. `earliest` is the slot of its earliest unit without an answer.
    pub fn request(&mut self, earliest: Option<u64>) -> CancelTarget<B> {
        match (&mut self.phase, &self.backend) {
            (Phase::Waits { waits_for, is_cancelled }, _) if earliest.is_none() || waits_for.is_of_unit() => {
                *is_cancelled = true;
                CancelTarget::Session
            }
            (Phase::Busy, _) => {
                self.is_awaited = true;
                CancelTarget::Later
            }
            (Phase::AtEvents, Some(backend)) => {
                self.on_their_way += 1;
                CancelTarget::Backend(backend.clone())
            }
            (Phase::AtEvents | Phase::Waits { .. }, _) => {
                self.meant = earliest;
                CancelTarget::Lanes
            }
        }
    }

    /// A request for a backend has arrived, or cannot be sent.
    pub fn arrived(&mut self) {
        self.on_their_way -= 1;
    }

    /// Whether a request waits until the session is no longer busy. It is for what the client has sent before it, so the
    /// session takes that first.
    pub fn is_awaited(&self) -> bool {
        self.is_awaited
    }

    /// The session waits for its client, its server or its lanes. Returns whether a request waits for this.
    pub fn at_events(&mut self) -> bool {
        self.phase = Phase::AtEvents;
        std::mem::take(&mut self.is_awaited)
    }

    /// The session does something that must not be interrupted.
    pub fn busy(&mut self) {
        self.phase = Phase::Busy;
    }

    /// The session begins to wait. If it waits with a unit that a lane has given back, the request may have come while
    /// the unit was on its way.
    /// Returns whether a request waits for this.
    pub fn waits(&mut self, waits_for: WaitsFor, unit: Option<u64>) -> bool {
        let is_cancelled = waits_for.is_of_unit() && self.is_meant(unit);
        self.phase = Phase::Waits { waits_for, is_cancelled };
        std::mem::take(&mut self.is_awaited)
    }

    /// Whether the wait is cancelled.
    pub fn is_cancelled(&self) -> bool {
        matches!(self.phase, Phase::Waits { is_cancelled: true, .. })
    }

    /// The session waits no longer. Returns whether the wait was cancelled.
    pub fn wait_over(&mut self) -> bool {
        let is_cancelled = self.is_cancelled();
        self.phase = Phase::Busy;
        is_cancelled
    }

    /// A backend is there for the session, or for a unit that a lane has given back. False if the work was cancelled
    /// before. Then the backend is not used.
    pub fn works(&mut self, backend: B, unit: Option<u64>) -> bool {
        let is_cancelled = self.is_meant(unit);
        if !is_cancelled {
            self.backend = Some(backend);
        }
        !is_cancelled
    }

    /// The session leaves its backend. Returns whether nothing is on its way there, so others can use it.
    pub fn leaves(&mut self) -> bool {
        self.backend = None;
        self.is_quiet()
    }

    /// Whether no request is on its way to a backend. While the session is busy, none is sent there.
    pub fn is_quiet(&self) -> bool {
        self.on_their_way == 0
    }

    /// Whether a request came for this unit, which a lane has given back, while it was in a lane or on its way.
    pub fn is_meant(&self, unit: Option<u64>) -> bool {
        unit.is_some() && unit == self.meant
    }

    /// The backend that works for the session.
    pub fn backend(&self) -> Option<&B> {
        self.backend.as_ref()
    }

    /// What the session waits for.
    pub fn waits_for(&self) -> Option<WaitsFor> {
        match self.phase {
            Phase::Waits { waits_for, .. } => Some(waits_for),
            Phase::AtEvents | Phase::Busy => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type State = CancelState<&'static str>;

    const WAITS: [WaitsFor; 6] = [
        WaitsFor::Connection,
        WaitsFor::Row,
        WaitsFor::Answer,
        WaitsFor::Catalog,
        WaitsFor::Replica,
        WaitsFor::Notifications,
    ];

    #[test]
    fn a_request_follows_the_work() {
        let mut state = State::default();
        assert_eq!(state.request(None), CancelTarget::Lanes);
        state.busy();
        assert_eq!(state.request(None), CancelTarget::Later);
        assert!(state.works("a", None));
        assert_eq!((state.backend().copied(), state.request(None)), (Some("a"), CancelTarget::Later));
        assert!(state.at_events());
        assert_eq!(state.request(None), CancelTarget::Backend("a"));
        state.busy();
        assert!(!state.is_quiet() && !state.leaves());
        assert_eq!((state.backend().copied(), state.request(None)), (None, CancelTarget::Later));
        state.arrived();
        assert!(state.is_quiet() && state.is_awaited() && state.at_events() && !state.at_events());
        assert_eq!(state.request(None), CancelTarget::Lanes);
    }

    #[test]
    fn every_wait_is_cancelled_once_and_the_next_one_is_not() {
        for waits_for in WAITS {
            let mut state = State::default();
            state.waits(waits_for, None);
            assert_eq!((state.waits_for(), state.is_cancelled()), (Some(waits_for), false));
            assert_eq!(state.request(None), CancelTarget::Session);
            assert!(state.is_cancelled() && state.wait_over());
            state.waits(waits_for, None);
            assert!(!state.is_cancelled() && !state.wait_over());
            assert_eq!(state.waits_for(), None);
        }
    }

    #[test]
    fn a_wait_after_units_in_lanes_is_not_cancelled_before_they_are() {
        for waits_for in WAITS {
            let mut state = State::default();
            state.waits(waits_for, Some(3));
            let of_unit = matches!(waits_for, WaitsFor::Connection | WaitsFor::Answer);
            let target = if of_unit { CancelTarget::Session } else { CancelTarget::Lanes };
            assert_eq!((state.request(Some(3)), state.is_cancelled()), (target, of_unit), "{waits_for:?}");
            assert_eq!(state.is_meant(Some(3)), !of_unit);
        }
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
        state.waits(WaitsFor::Catalog, Some(3));
        assert!(!state.wait_over(), "the statement comes after the unit");
        state.waits(WaitsFor::Answer, Some(3));
        assert!(state.wait_over());
        assert!(!state.works("a", Some(3)) && state.works("a", Some(4)));
    }
}
