//! Calls that found nothing and wait, and the calls to retry after a notification from the server. This
//! module has no clock: the caller removes calls that time out.

use std::collections::{BTreeMap, HashMap};

use crate::key::{Key, KeySource, KeySpec, ValueForm, key_space};
use crate::limits;

/// The waiting calls of one pool.
#[derive(Debug)]
pub struct Waiting<C> {
    calls: HashMap<Key, BTreeMap<u64, C>>,
    count: usize,
    /// The last number that was given to a call.
    last: u64,
    /// Number of notifications from the server so far.
    notifications: u64,
    /// The number of the last notification for each key. A call that was sent earlier may have been answered
    /// before that notification.
    woken: HashMap<Key, u64>,
    /// Notifications up to this one are forgotten. Each of them can have been about any key.
    forgotten: u64,
    /// The key spaces of calls that were sent, and the forms of their keys.
    spaces: Vec<(u32, ValueForm)>,
}

/// The number of notifications when a call was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotificationCount(u64);

/// Identifies a waiting call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticket {
    key: Key,
    number: u64,
}

/// The result of registering a call that found nothing.
#[derive(Debug, PartialEq, Eq)]
pub enum Entered {
    /// It waits.
    Waits(Ticket),
    /// A notification about its key has arrived since it was sent. The call must be retried.
    Again,
    /// Too many wait already.
    Full,
}

impl<C> Default for Waiting<C> {
    fn default() -> Self {
        Waiting {
            calls: HashMap::new(),
            count: 0,
            last: 0,
            notifications: 0,
            woken: HashMap::new(),
            forgotten: 0,
            spaces: Vec::new(),
        }
    }
}

impl<C> Waiting<C> {
    /// Number of waiting calls.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether no call waits.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The waiting calls, those of one key in order of arrival.
    pub fn iter(&self) -> impl Iterator<Item = &C> {
        self.calls.values().flat_map(BTreeMap::values)
    }

    /// A call with such a key is about to be sent.
    pub fn sends(&mut self, spec: &KeySpec) -> NotificationCount {
        for column in &spec.columns {
            let space = (spec.table, column.form);
            if !self.spaces.contains(&space) {
                if self.spaces.len() == limits::WAITING_SPACES_MAX {
                    self.spaces.clear();
                    self.forget();
                }
                self.spaces.push(space);
            }
        }
        NotificationCount(self.notifications)
    }

    /// A call that was sent at that time has found nothing.
    pub fn enter(&mut self, key: Key, sent_at: NotificationCount, call: C) -> Entered {
        if sent_at.0 < self.forgotten || self.woken.get(&key).is_some_and(|word| *word > sent_at.0) {
            return Entered::Again;
        }
        if self.count == limits::WAITING_CALLS_MAX {
            return Entered::Full;
        }
        self.count += 1;
        self.last += 1;
        self.calls.entry(key).or_default().insert(self.last, call);
        Entered::Waits(Ticket { key, number: self.last })
    }

    /// Removes a waiting call. `None` if it was woken.
    pub fn leave(&mut self, ticket: Ticket) -> Option<C> {
        let of_key = self.calls.get_mut(&ticket.key)?;
        let call = of_key.remove(&ticket.number)?;
        if of_key.is_empty() {
            self.calls.remove(&ticket.key);
        }
        self.count -= 1;
        Some(call)
    }

    /// Processes a notification, `space key`. Returns the calls to retry.
    pub fn notified(&mut self, payload: &str) -> Vec<C> {
        let Some((space, key)) = payload.split_once(' ') else { return Vec::new() };
        let table = key_space(space);
        let forms: Vec<_> =
            self.spaces.iter().filter(|(space, _)| *space == table).map(|(_, form)| *form).collect();
        let source = KeySource::Const(key.to_owned());
        let keys = forms
            .into_iter()
            .filter_map(|form| KeySpec::in_space(table, "", form, source.clone()).key(|_| None));
        self.notifications += 1;
        let mut calls = Vec::new();
        for key in keys.collect::<Vec<_>>() {
            if self.woken.len() == limits::WAITING_CALLS_MAX {
                self.forget();
            }
            self.woken.insert(key, self.notifications);
            calls.extend(self.calls.remove(&key).into_iter().flat_map(BTreeMap::into_values));
        }
        self.count -= calls.len();
        calls
    }

    /// From now on all notifications arrive. Earlier ones may have been lost. Returns all calls, which must
    /// be retried.
    pub fn listens(&mut self) -> Vec<C> {
        self.forget();
        self.count = 0;
        self.calls.drain().flat_map(|(_, calls)| calls.into_values()).collect()
    }

    fn forget(&mut self) {
        self.notifications += 1;
        self.forgotten = self.notifications;
        self.woken.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPACE: &str = "shop.box";

    fn spec(form: ValueForm, key: &str) -> KeySpec {
        KeySpec::in_space(key_space(SPACE), "box", form, KeySource::Const(key.to_owned()))
    }

    /// A call of this box is sent and finds nothing.
    fn enters(waiting: &mut Waiting<&'static str>, name: &str, call: &'static str) -> Entered {
        let sent_at = waiting.sends(&spec(ValueForm::Bytes, name));
        waiting.enter(key(name), sent_at, call)
    }

    fn key(name: &str) -> Key {
        spec(ValueForm::Bytes, name).key(|_| None).unwrap()
    }

    #[test]
    fn calls_of_a_key_are_woken_in_order_of_arrival() {
        let mut waiting = Waiting::default();
        for (name, call) in [("a b", "1"), ("c", "2"), ("a b", "3")] {
            assert!(matches!(enters(&mut waiting, name, call), Entered::Waits(_)));
        }
        assert_eq!(waiting.notified("shop.box a b"), ["1", "3"]);
        assert_eq!((waiting.len(), waiting.iter().count()), (1, 1));
        for nobodys in ["shop.box a", "other.box c", "nonsense", ""] {
            assert!(waiting.notified(nobodys).is_empty(), "{nobodys:?}");
        }
        assert_eq!(waiting.notified("shop.box c"), ["2"]);
        assert!(waiting.is_empty() && waiting.notified("shop.box c").is_empty());
    }

    #[test]
    fn a_notification_that_overtakes_the_empty_reply_is_not_missed() {
        let mut waiting = Waiting::default();
        let sent_at = waiting.sends(&spec(ValueForm::Bytes, "a"));
        assert!(waiting.notified("shop.box a").is_empty());
        assert_eq!(waiting.enter(key("a"), sent_at, "late"), Entered::Again);
        assert!(matches!(waiting.enter(key("b"), sent_at, "other"), Entered::Waits(_)));
        assert!(matches!(enters(&mut waiting, "a", "sent again"), Entered::Waits(_)));
    }

    #[test]
    fn notifications_missed_without_a_listener_can_be_about_any_key() {
        let mut waiting = Waiting::default();
        let sent_at = waiting.sends(&spec(ValueForm::Bytes, "a"));
        enters(&mut waiting, "b", "1");
        assert_eq!(waiting.listens(), ["1"]);
        assert_eq!(waiting.enter(key("a"), sent_at, "2"), Entered::Again);
        assert!(matches!(enters(&mut waiting, "a", "2"), Entered::Waits(_)));
    }

    #[test]
    fn a_removed_call_is_not_woken() {
        let mut waiting = Waiting::default();
        let Entered::Waits(ticket) = enters(&mut waiting, "a", "1") else { panic!() };
        enters(&mut waiting, "a", "2");
        assert_eq!((waiting.leave(ticket), waiting.leave(ticket)), (Some("1"), None));
        assert_eq!(waiting.notified("shop.box a"), ["2"]);
    }

    #[test]
    fn a_key_is_recognised_in_every_representation() {
        let mut waiting = Waiting::default();
        let spec = spec(ValueForm::Integer, "7");
        let sent_at = waiting.sends(&spec);
        waiting.enter(spec.key(|_| None).unwrap(), sent_at, "seven");
        assert_eq!(waiting.notified("shop.box 07"), ["seven"]);
    }

    #[test]
    fn memory_is_bounded_and_forgotten_notifications_cause_a_retry() {
        let mut waiting = Waiting::default();
        let sent_at = waiting.sends(&spec(ValueForm::Bytes, "a"));
        for number in 0..limits::WAITING_CALLS_MAX {
            waiting.notified(&format!("shop.box {number}"));
        }
        assert!(matches!(waiting.enter(key("a"), sent_at, "x"), Entered::Waits(_)));
        waiting.notified("shop.box one more");
        assert!(waiting.woken.len() <= limits::WAITING_CALLS_MAX);
        assert_eq!(waiting.enter(key("b"), sent_at, "x"), Entered::Again);
        for _ in waiting.len()..limits::WAITING_CALLS_MAX {
            assert!(matches!(enters(&mut waiting, "z", "x"), Entered::Waits(_)));
        }
        assert_eq!(enters(&mut waiting, "z", "x"), Entered::Full);
    }
}
