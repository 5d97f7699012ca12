//! What the connection that a session holds has reported, compared with what the client has got from the shared one. Both
//! report the notifications of the shared channels in the same order, but the server signals them one after the other:
//! each can be the first to report a notification.

use std::collections::{BTreeSet, VecDeque};

use bytes::Bytes;

use super::takeover::{Due, TakesOver};
use crate::limits;
use crate::notifications::Marker;

/// The reports of the held connection that its client may not have got.
#[derive(Debug, Default)]
pub(super) struct Reports {
    /// Those since the session last caught up, in their order.
    due: VecDeque<Due>,
    /// Earlier ones that the shared connection had not reported when the session caught up. It reports them later.
    late: VecDeque<Bytes>,
    /// What the client has got from the shared connection before the held one has reported it.
    ahead: VecDeque<Bytes>,
    /// The bytes of `due` and `late`.
    bytes: usize,
    /// The last ReadyForQuery was within a transaction.
    pub in_transaction: bool,
    /// The marker that the connection will report.
    pub marker: Option<(Marker, TakesOver)>,
    /// What it has reported before the marker that it has just reported, and the channels that the shared one reported until
    /// then.
    pub passed: Option<(VecDeque<Due>, BTreeSet<String>)>,
}

impl Reports {
    /// The held connection has reported this notification. `collects` is whether a marker will show the order of everything.
    pub fn add(&mut self, body: &[u8], is_shared: bool, collects: bool) {
        // Before a marker, also what the client has got shows the order.
        if !collects && is_shared && self.has_passed(body) {
            return;
        }
        self.due.push_back((Bytes::copy_from_slice(body), is_shared));
        self.bytes += body.len();
        if !collects && self.late.len() + self.due.len() > limits::DUE_NOTIFICATIONS_MAX {
            let first = self.late.pop_front().or_else(|| self.due.pop_front().map(|(body, _)| body));
            self.bytes -= first.map_or(0, |first| first.len()); // the later ones have it before them
        }
    }

    /// The held connection has reported this notification of a shared channel. Returns whether the client has got it. The
    /// held connection reports nothing any more that the client has got before it.
    pub fn has_passed(&mut self, body: &[u8]) -> bool {
        let place = self.ahead.iter().position(|ahead| ahead == body);
        self.ahead.drain(..place.map_or(self.ahead.len(), |place| place + 1));
        place.is_some()
    }

    /// The client gets this notification from the shared connection, between two units.
    pub fn delivered(&mut self, body: &Bytes) {
        if let Some(place) = self.late.iter().position(|late| late == body) {
            self.bytes -= self.late.drain(..=place).map(|late| late.len()).sum::<usize>();
        } else if let Some(place) = self.due.iter().position(|(due, is_shared)| *is_shared && due == body) {
            self.forget_late();
            let mut unshared = self.due.drain(..=place).collect::<VecDeque<_>>();
            self.bytes -=
                unshared.iter().filter(|(_, is_shared)| *is_shared).map(|(due, _)| due.len()).sum::<usize>();
            unshared.retain(|(_, is_shared)| !is_shared);
            unshared.append(&mut self.due);
            self.due = unshared;
        } else {
            self.ahead.push_back(body.clone());
            if self.ahead.len() > limits::DUE_NOTIFICATIONS_MAX {
                self.ahead.pop_front();
            }
        }
    }

    /// The session has caught up, and the shared connection has not reported this notification.
    pub fn is_late(&mut self, body: Bytes) {
        self.bytes += body.len();
        self.late.push_back(body);
    }

    /// The shared connection has reported a later notification, so it reports none of these any more.
    pub fn forget_late(&mut self) {
        self.bytes -= self.late.drain(..).map(|late| late.len()).sum::<usize>();
    }

    /// Whether the client gets a notification before the next ReadyForQuery. `is_outside` is whether the unit has begun or
    /// ended outside of a transaction: within one nothing is reported.
    pub fn precede_ready(&self, is_outside: bool) -> bool {
        !self.due.is_empty() || is_outside && !self.late.is_empty()
    }

    /// Whether the last one is not of a shared channel.
    pub fn ends_unshared(&self) -> bool {
        self.due.back().is_some_and(|(_, is_shared)| !is_shared)
    }

    /// The bytes that they occupy.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Takes all of them.
    pub fn take(&mut self) -> VecDeque<Due> {
        self.bytes = 0;
        let late = std::mem::take(&mut self.late).into_iter().map(|body| (body, true));
        late.chain(std::mem::take(&mut self.due)).collect()
    }

    /// Takes all of them, at a place that both connections have reached.
    pub fn take_all(&mut self) -> VecDeque<Due> {
        self.ahead.clear();
        self.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(text: &str) -> Bytes {
        Bytes::copy_from_slice(text.as_bytes())
    }

    fn taken(reports: &mut Reports) -> String {
        let taken = reports.take().into_iter().map(|(body, _)| String::from_utf8(body.to_vec()).unwrap());
        let taken = taken.collect::<Vec<_>>().join(" ");
        assert_eq!(reports.bytes(), 0);
        taken
    }

    #[test]
    fn a_notification_that_only_the_held_connection_has_reported_stays_until_the_client_gets_it() {
        let mut reports = Reports::default();
        reports.is_late(body("a"));
        assert!(reports.precede_ready(true) && !reports.precede_ready(false), "none within a transaction");
        reports.add(b"b", true, false);
        assert!(reports.precede_ready(false));
        reports.delivered(&body("a"));
        reports.add(b"c", true, false);
        assert_eq!((reports.bytes(), taken(&mut reports)), (2, "b c".to_owned()));
    }

    #[test]
    fn a_notification_that_the_client_has_got_does_not_count_when_the_held_connection_reports_it() {
        let mut reports = Reports::default();
        ["a", "b", "c"].iter().for_each(|text| reports.delivered(&body(text)));
        reports.add(b"b", true, false);
        assert!(!reports.precede_ready(true));
        reports.add(b"a", true, false);
        assert_eq!(taken(&mut reports), "a", "the first one was sent before the held connection listened");
    }

    #[test]
    fn the_client_gets_a_later_notification_after_the_earlier_ones() {
        let mut reports = Reports::default();
        reports.is_late(body("a"));
        reports.add(b"other", false, false);
        ["b", "c"].iter().for_each(|text| reports.add(text.as_bytes(), true, false));
        reports.delivered(&body("b"));
        assert_eq!(taken(&mut reports), "other c");
    }

    #[test]
    fn before_a_marker_also_those_that_the_client_has_got_are_kept() {
        let mut reports = Reports::default();
        reports.delivered(&body("a"));
        reports.add(b"a", true, true);
        assert_eq!(taken(&mut reports), "a");
        assert!(reports.has_passed(b"a"));
        reports.delivered(&body("b"));
        reports.take_all();
        assert!(!reports.has_passed(b"b"));
    }

    #[test]
    fn the_reports_have_a_bound() {
        let mut reports = Reports::default();
        for number in 0..=limits::DUE_NOTIFICATIONS_MAX {
            reports.delivered(&body(&format!("d{number}")));
        }
        assert!(!reports.has_passed(b"d0"));
        reports.is_late(body("late"));
        for number in 0..limits::DUE_NOTIFICATIONS_MAX {
            reports.add(number.to_string().as_bytes(), true, false);
        }
        let kept = reports.take();
        assert_eq!((kept.len(), &kept[0].0[..]), (limits::DUE_NOTIFICATIONS_MAX, &b"0"[..]));
    }
}
