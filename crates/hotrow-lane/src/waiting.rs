//! Calls that found nothing and wait, and the calls to retry after a notification from the server. This
//! module has no clock: the caller removes calls that time out.

use std::collections::{BTreeMap, HashMap};

use crate::key::Key;
use crate::limits;

/// The waiting calls of one pool. `F` is the form of a key's values, without which a notification's text is no key.
#[derive(Debug)]
pub struct Waiting<C, F> {
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
    spaces: Vec<(u32, F)>,
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
    Waits(Ticket),
    /// A notification about its key has arrived since it was sent. The call must be retried.
    Again,
    /// Too many wait already.
    Full,
}

impl<C, F> Default for Waiting<C, F> {
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

impl<C, F: Copy + PartialEq> Waiting<C, F> {
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

    /// A call with a key of this space and form is about to be sent.
    pub fn sends(&mut self, space: u32, form: F) -> NotificationCount {
        let space = (space, form);
        if !self.spaces.contains(&space) {
            if self.spaces.len() == limits::WAITING_SPACES_MAX {
                self.spaces.clear();
                self.forget();
            }
            self.spaces.push(space);
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

    /// Processes a notification about this key space. `key` gives the key that the notification names, in each form. Returns
    /// the calls to retry.
    pub fn notified(&mut self, space: u32, key: impl Fn(F) -> Option<Key>) -> Vec<C> {
        let forms = self.spaces.iter().filter(|(known, _)| *known == space).map(|(_, form)| *form);
        let keys: Vec<Key> = forms.filter_map(key).collect();
        self.notifications += 1;
        let mut calls = Vec::new();
        for key in keys {
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
    use crate::key::hash_of;

    const BOXES: u32 = 1;

    #[derive(Clone, Copy, PartialEq)]
    enum Form {
        Text,
        Number,
    }

    type Calls = Waiting<&'static str, Form>;

    /// A call of this box is sent and finds nothing.
    fn enters(waiting: &mut Calls, name: &str, call: &'static str) -> Entered {
        let sent_at = waiting.sends(BOXES, Form::Text);
        waiting.enter(key(name), sent_at, call)
    }

    fn key(name: &str) -> Key {
        Key { table: BOXES, hash: hash_of(name.as_bytes()) }
    }

    /// The calls that a notification about this box wakes.
    fn notified(waiting: &mut Calls, name: &str) -> Vec<&'static str> {
        waiting.notified(BOXES, |form| match form {
            Form::Text => Some(key(name)),
            Form::Number => name.parse().ok().map(|hash| Key { table: BOXES, hash }),
        })
    }

    #[test]
    fn calls_of_a_key_are_woken_in_order_of_arrival() {
        let mut waiting = Calls::default();
        for (name, call) in [("a b", "1"), ("c", "2"), ("a b", "3")] {
            assert!(matches!(enters(&mut waiting, name, call), Entered::Waits(_)));
        }
        assert_eq!(notified(&mut waiting, "a b"), ["1", "3"]);
        assert_eq!((waiting.len(), waiting.iter().count()), (1, 1));
        assert!(notified(&mut waiting, "a").is_empty());
        assert!(waiting.notified(BOXES + 1, |_| Some(key("c"))).is_empty(), "another space");
        assert_eq!(notified(&mut waiting, "c"), ["2"]);
        assert!(waiting.is_empty() && notified(&mut waiting, "c").is_empty());
    }

    #[test]
    fn a_notification_that_overtakes_the_empty_reply_is_not_missed() {
        let mut waiting = Calls::default();
        let sent_at = waiting.sends(BOXES, Form::Text);
        assert!(notified(&mut waiting, "a").is_empty());
        assert_eq!(waiting.enter(key("a"), sent_at, "late"), Entered::Again);
        assert!(matches!(waiting.enter(key("b"), sent_at, "other"), Entered::Waits(_)));
        assert!(matches!(enters(&mut waiting, "a", "sent again"), Entered::Waits(_)));
    }

    #[test]
    fn notifications_missed_without_a_listener_can_be_about_any_key() {
        let mut waiting = Calls::default();
        let sent_at = waiting.sends(BOXES, Form::Text);
        enters(&mut waiting, "b", "1");
        assert_eq!(waiting.listens(), ["1"]);
        assert_eq!(waiting.enter(key("a"), sent_at, "2"), Entered::Again);
        assert!(matches!(enters(&mut waiting, "a", "2"), Entered::Waits(_)));
    }

    #[test]
    fn a_removed_call_is_not_woken() {
        let mut waiting = Calls::default();
        let Entered::Waits(ticket) = enters(&mut waiting, "a", "1") else { panic!() };
        enters(&mut waiting, "a", "2");
        assert_eq!((waiting.leave(ticket), waiting.leave(ticket)), (Some("1"), None));
        assert_eq!(notified(&mut waiting, "a"), ["2"]);
    }

    #[test]
    fn a_key_is_recognised_in_every_representation() {
        let mut waiting = Calls::default();
        let sent_at = waiting.sends(BOXES, Form::Number);
        waiting.enter(Key { table: BOXES, hash: 7 }, sent_at, "seven");
        assert!(notified(&mut waiting, "eight").is_empty());
        assert_eq!(notified(&mut waiting, "07"), ["seven"]);
    }

    #[test]
    fn memory_is_bounded_and_forgotten_notifications_cause_a_retry() {
        let mut waiting = Calls::default();
        let sent_at = waiting.sends(BOXES, Form::Text);
        for number in 0..limits::WAITING_CALLS_MAX {
            notified(&mut waiting, &number.to_string());
        }
        assert!(matches!(waiting.enter(key("a"), sent_at, "x"), Entered::Waits(_)));
        notified(&mut waiting, "one more");
        assert!(waiting.woken.len() <= limits::WAITING_CALLS_MAX);
        assert_eq!(waiting.enter(key("b"), sent_at, "x"), Entered::Again);
        for _ in waiting.len()..limits::WAITING_CALLS_MAX {
            assert!(matches!(enters(&mut waiting, "z", "x"), Entered::Waits(_)));
        }
        assert_eq!(enters(&mut waiting, "z", "x"), Entered::Full);
    }
}
