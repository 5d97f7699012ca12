//! Decides when the log reports something that can happen often: refusals, and the loss and return of the server. Times
//! are milliseconds of the caller's clock.

use crate::limits::LOG_EVERY_MS;

/// Reports events of one kind, at most one line in each interval.
#[derive(Debug, Default)]
pub struct Repeated {
    last: Option<u64>,
    unreported: u64,
}

impl Repeated {
    /// Nothing was reported.
    pub const NEW: Self = Repeated { last: None, unreported: 0 };

    /// Notes events. Returns the number of events to report now, among them those that were not reported before.
    pub fn note(&mut self, count: u64, now: u64) -> Option<u64> {
        self.unreported += count;
        if self.last.is_some_and(|last| now < last + LOG_EVERY_MS) {
            return None;
        }
        self.last = Some(now);
        Some(std::mem::take(&mut self.unreported))
    }
}

/// Whether the server can be reached, and since when it cannot. Each loss and each return is reported once. If the
/// server is lost again soon after the last report, this is reported only if it lasts.
#[derive(Debug, Default)]
pub struct Outage {
    lost: Option<Lost>,
    last_report: Option<u64>,
}

#[derive(Debug)]
struct Lost {
    since: u64,
    attempts: u64,
    is_reported: bool,
}

/// The server is back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Back {
    /// How long it could not be reached.
    pub after: u64,
    /// The attempts that failed.
    pub attempts: u64,
}

impl Outage {
    /// Since when the server cannot be reached, if it cannot.
    pub fn since(&self) -> Option<u64> {
        self.lost.as_ref().map(|lost| lost.since)
    }

    /// An attempt to connect has failed. Returns since when the server cannot be reached, if that is to be reported.
    pub fn failed(&mut self, now: u64) -> Option<u64> {
        let lost = self.lost.get_or_insert(Lost { since: now, attempts: 0, is_reported: false });
        lost.attempts += 1;
        if lost.is_reported || self.last_report.is_some_and(|last| now < last + LOG_EVERY_MS) {
            return None;
        }
        lost.is_reported = true;
        self.last_report = Some(now);
        Some(lost.since)
    }

    /// An attempt has succeeded. Returns what is to be reported.
    pub fn served(&mut self, now: u64) -> Option<Back> {
        let lost = self.lost.take()?;
        if !lost.is_reported {
            return None;
        }
        self.last_report = Some(now);
        Some(Back { after: now - lost.since, attempts: lost.attempts })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_in_one_interval_are_counted_and_reported_together() {
        let mut refusals = Repeated::default();
        assert_eq!(refusals.note(1, 5), Some(1));
        assert_eq!(refusals.note(3, 6), None);
        assert_eq!(refusals.note(1, 4 + LOG_EVERY_MS), None);
        assert_eq!(refusals.note(2, 5 + LOG_EVERY_MS), Some(6));
        assert_eq!(refusals.note(1, 5 + 9 * LOG_EVERY_MS), Some(1));
    }

    #[test]
    fn a_loss_and_a_return_are_reported_once() {
        let mut server = Outage::default();
        assert_eq!(server.served(0), None, "it was never lost");
        assert_eq!((server.failed(10), server.since()), (Some(10), Some(10)));
        assert_eq!((server.failed(20), server.failed(10 + 7 * LOG_EVERY_MS)), (None, None));
        assert_eq!(server.served(10 + 8 * LOG_EVERY_MS), Some(Back { after: 8 * LOG_EVERY_MS, attempts: 3 }));
        assert_eq!((server.served(10 + 8 * LOG_EVERY_MS), server.since()), (None, None));
    }

    #[test]
    fn a_server_that_comes_and_goes_is_reported_only_if_a_loss_lasts() {
        let mut server = Outage::default();
        assert_eq!(server.failed(0), Some(0));
        assert!(server.served(10).is_some());
        for time in [20, 40, 60] {
            assert_eq!(
                (server.failed(time), server.served(time + 10)),
                (None, None),
                "too soon after a report"
            );
        }
        assert_eq!(server.failed(100), None);
        assert_eq!(server.failed(10 + LOG_EVERY_MS), Some(100), "it lasts");
        assert_eq!(server.served(20 + LOG_EVERY_MS), Some(Back { after: LOG_EVERY_MS - 80, attempts: 2 }));
    }
}
