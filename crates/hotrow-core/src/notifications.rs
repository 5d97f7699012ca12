//! The subscribers of one listening connection, which are sessions and the waiting calls of pools: the statements that it
//! runs for them, and which of them get a notification. No sockets, no clock.
//!
//! A session's own connection has listened first, and the shared connection listens next. A *marker*, a notification of
//! the gateway, stands at one place in the order of all notifications. Those before it are reported to the session by
//! its own connection, those after it by the shared one. None is lost and none is reported twice.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

use hotrow_wire::backend::Notification;

use crate::limits;
use crate::untrusted::identifier;

/// The channel of markers.
pub const MARKER_CHANNEL: &str = "hotrow_marker";

/// A marker: the payload of its notification, which no client can guess.
pub type Marker = String;

/// The subscribers of one listening connection. `S` is where a subscriber gets its notifications, `W` is a waiting caller.
#[derive(Debug)]
pub struct Hub<S, W> {
    /// By number.
    subscribers: BTreeMap<u64, Subscriber<S>>,
    /// The subscribers of each channel.
    channels: HashMap<String, BTreeSet<u64>>,
    /// Channels, each counted once for each of its subscribers.
    count: usize,
    /// The subscriber of each marker that has not arrived.
    markers: HashMap<Marker, u64>,
    /// Work that no statement does yet.
    work: VecDeque<Work<W>>,
    /// Callers that wait until everything that was notified before their call has arrived.
    catching_up: Vec<W>,
    /// The work of the statement under way, and the callers that have called before it was sent.
    under_way: Option<(Option<Work<W>>, Vec<W>)>,
    has_failed: bool,
}

#[derive(Debug)]
struct Subscriber<S> {
    inbox: S,
    channels: BTreeSet<String>,
}

#[derive(Debug)]
enum Work<W> {
    /// Listens to channels for a subscriber, and sends its marker.
    Listen { number: u64, channels: Vec<String>, marker: Marker, waiter: W },
    /// Stops to listen to a channel that has no subscriber left.
    Unlisten(String),
}

/// There are too many channels.
#[derive(Debug, PartialEq, Eq)]
pub struct TooMany;

impl<S, W> Default for Hub<S, W> {
    fn default() -> Self {
        Hub {
            subscribers: BTreeMap::new(),
            channels: HashMap::new(),
            count: 0,
            markers: HashMap::new(),
            work: VecDeque::new(),
            catching_up: Vec::new(),
            under_way: None,
            has_failed: false,
        }
    }
}

impl<S, W> Hub<S, W> {
    /// Adds channels of a subscriber. The waiter learns when the connection listens and the subscriber has got the marker,
    /// before which it may get notifications too.
    pub fn subscribe(
        &mut self,
        (number, inbox): (u64, S),
        channels: Vec<String>,
        marker: Marker,
        waiter: W,
    ) -> Result<(), TooMany> {
        if self.count + channels.len() > limits::LISTENED_CHANNELS_MAX {
            return Err(TooMany);
        }
        let new = Subscriber { inbox, channels: BTreeSet::new() };
        let subscriber = self.subscribers.entry(number).or_insert(new);
        for channel in &channels {
            self.channels.entry(channel.clone()).or_default().insert(number);
            self.count += usize::from(subscriber.channels.insert(channel.clone()));
        }
        self.markers.insert(marker.clone(), number);
        self.work.push_back(Work::Listen { number, channels, marker, waiter });
        Ok(())
    }

    /// Removes channels of a subscriber.
    pub fn unsubscribe(&mut self, number: u64, channels: &[String]) {
        let Some(subscriber) = self.subscribers.get_mut(&number) else { return };
        for channel in channels {
            if !subscriber.channels.remove(channel) {
                continue;
            }
            self.count -= 1;
            let Some(numbers) = self.channels.get_mut(channel) else { continue };
            numbers.remove(&number);
            if numbers.is_empty() {
                self.channels.remove(channel);
                self.work.push_back(Work::Unlisten(channel.clone()));
            }
        }
        if subscriber.channels.is_empty() {
            self.subscribers.remove(&number);
            self.markers.retain(|_, of| *of != number);
        }
    }

    /// Removes a subscriber.
    pub fn leave(&mut self, number: u64) {
        let Some(subscriber) = self.subscribers.get(&number) else { return };
        let channels: Vec<String> = subscriber.channels.iter().cloned().collect();
        self.unsubscribe(number, &channels);
    }

    /// A caller waits until everything has arrived whose sender had its answer before.
    pub fn catch_up(&mut self, waiter: W) {
        self.catching_up.push(waiter);
    }

    /// Whether no subscriber is left.
    pub fn is_empty(&self) -> bool {
        self.subscribers.is_empty()
    }

    /// Whether a statement is under way.
    pub fn is_busy(&self) -> bool {
        self.under_way.is_some()
    }

    /// The text of the next statement, if none is under way. Callers that wait to catch up share it: when it is
    /// complete, the server has reported everything whose COMMIT was answered before it arrived there. The server may
    /// report other committed notifications later, unless the statement sends a marker, which follows them.
    pub fn next_statement(&mut self) -> Option<String> {
        if self.under_way.is_some() || self.work.is_empty() && self.catching_up.is_empty() {
            return None;
        }
        let work = self.work.pop_front();
        let text = match &work {
            None => String::new(),
            Some(Work::Listen { channels, marker, .. }) => {
                let text = listen(channels.iter().map(String::as_str));
                text + &notify(marker)
            }
            // A subscriber may have come since. Then it listens again, in a later statement.
            Some(Work::Unlisten(channel)) => format!("unlisten {}", identifier(channel)),
        };
        self.under_way = Some((work, std::mem::take(&mut self.catching_up)));
        self.has_failed = false;
        Some(text)
    }

    /// The statement has failed.
    pub fn failed(&mut self) {
        self.has_failed = true;
    }

    /// The statement is complete. Returns the callers that have waited for it, and whether it has succeeded.
    pub fn complete(&mut self) -> (Vec<W>, bool) {
        let Some((work, mut waiters)) = self.under_way.take() else { return (Vec::new(), true) };
        if let Some(Work::Listen { number, channels, marker, waiter }) = work {
            if self.has_failed && self.markers.remove(&marker).is_some() {
                self.unsubscribe(number, &channels);
            }
            waiters.push(waiter);
        }
        (waiters, !self.has_failed)
    }

    /// The subscribers that get a notification: those of its channel, or that of a marker.
    pub fn notified(&mut self, notification: &Notification<'_>) -> impl Iterator<Item = &S> {
        let channel = str::from_utf8(notification.channel).unwrap_or_default();
        let marker = str::from_utf8(notification.payload).ok().filter(|_| channel == MARKER_CHANNEL);
        let marked = marker.and_then(|marker| self.markers.remove(marker));
        let numbers = self.channels.get(channel).into_iter().flatten().copied();
        numbers.chain(marked).filter_map(|number| Some(&self.subscribers.get(&number)?.inbox))
    }

    /// The text with which another connection listens to all channels.
    pub fn listen_to_all(&self) -> String {
        listen(self.channels.keys().map(String::as_str).chain([MARKER_CHANNEL]))
    }

    /// The connection is lost. Returns the subscribers, and the callers that wait.
    pub fn lost(self) -> (impl Iterator<Item = S>, Vec<W>) {
        let waits = |work| match work {
            Work::Listen { waiter, .. } => Some(waiter),
            Work::Unlisten(_) => None,
        };
        let mut waiters = self.catching_up;
        if let Some((work, others)) = self.under_way {
            waiters.extend(work.and_then(waits));
            waiters.extend(others);
        }
        waiters.extend(self.work.into_iter().filter_map(waits));
        (self.subscribers.into_values().map(|subscriber| subscriber.inbox), waiters)
    }
}

/// The text that sends a marker.
pub fn notify(marker: &str) -> String {
    format!("notify {MARKER_CHANNEL}, '{marker}'")
}

/// The text with which a connection listens to these channels.
pub fn listen<'a>(channels: impl Iterator<Item = &'a str>) -> String {
    let distinct: BTreeSet<&str> = channels.collect();
    listen_each(distinct.into_iter()).fold(String::new(), |text, statement| text + &statement + ";")
}

/// The same with a statement for each channel.
pub fn listen_each<'a>(channels: impl Iterator<Item = &'a str>) -> impl Iterator<Item = String> {
    channels.map(|channel| format!("listen {}", identifier(channel)))
}

#[cfg(test)]
mod tests {
    use super::*;

    type TestHub = Hub<&'static str, u8>;

    fn names(channels: &[&str]) -> Vec<String> {
        channels.iter().map(|channel| (*channel).to_owned()).collect()
    }

    fn report(hub: &mut TestHub, channel: &str, payload: &str) -> Vec<&'static str> {
        let (channel, payload) = (channel.as_bytes(), payload.as_bytes());
        hub.notified(&Notification { process_id: 1, channel, payload }).copied().collect()
    }

    /// A subscriber whose marker has arrived.
    fn subscribe(hub: &mut TestHub, subscriber: (u64, &'static str), channels: &[&str]) {
        hub.subscribe(subscriber, names(channels), subscriber.1.to_owned(), 0).unwrap();
        hub.next_statement().expect("it listens");
        assert_eq!(hub.complete(), (vec![0], true));
        report(hub, MARKER_CHANNEL, subscriber.1);
    }

    #[test]
    fn a_subscriber_gets_its_marker_and_the_notifications_of_its_channels() {
        let mut hub = TestHub::default();
        hub.subscribe((1, "one"), names(&["a", "B\"b"]), "7".to_owned(), 0).unwrap();
        let text = hub.next_statement();
        assert_eq!(text.as_deref(), Some("listen \"B\"\"b\";listen \"a\";notify hotrow_marker, '7'"));
        assert!(report(&mut hub, MARKER_CHANNEL, "6").is_empty(), "the marker of another gateway");
        assert_eq!(report(&mut hub, MARKER_CHANNEL, "7"), ["one"]);
        assert!(report(&mut hub, MARKER_CHANNEL, "7").is_empty(), "a client sends it again");
        assert_eq!(hub.complete(), (vec![0], true));
        assert_eq!(report(&mut hub, "a", "x"), ["one"]);
        assert_eq!(report(&mut hub, "B\"b", "x"), ["one"]);
        assert!(report(&mut hub, "b", "x").is_empty());
        subscribe(&mut hub, (2, "two"), &["a"]);
        assert_eq!(report(&mut hub, "a", "x"), ["one", "two"]);
    }

    #[test]
    fn a_subscriber_gets_a_marker_without_new_channels() {
        let mut hub = TestHub::default();
        subscribe(&mut hub, (1, "one"), &["a"]);
        hub.subscribe((1, "one"), Vec::new(), "m".to_owned(), 4).unwrap();
        assert_eq!(hub.next_statement().as_deref(), Some("notify hotrow_marker, 'm'"));
        assert_eq!(report(&mut hub, MARKER_CHANNEL, "m"), ["one"]);
        assert_eq!(hub.complete(), (vec![4], true));
    }

    #[test]
    fn a_channel_without_a_subscriber_is_no_longer_listened_to() {
        let mut hub = TestHub::default();
        subscribe(&mut hub, (1, "one"), &["a", "b"]);
        subscribe(&mut hub, (2, "two"), &["a"]);
        hub.leave(1);
        assert_eq!(hub.next_statement().as_deref(), Some("unlisten \"b\""));
        assert_eq!(hub.complete(), (vec![], true));
        assert_eq!(report(&mut hub, "a", "x"), ["two"]);
        assert_eq!(hub.listen_to_all(), "listen \"a\";listen \"hotrow_marker\";");
        hub.unsubscribe(2, &names(&["a"]));
        assert!(hub.is_empty());
        assert_eq!((hub.count, hub.markers.len()), (0, 0));
    }

    #[test]
    fn a_channel_that_a_new_subscriber_needs_is_listened_to_again() {
        let mut hub = TestHub::default();
        subscribe(&mut hub, (1, "one"), &["a"]);
        hub.leave(1);
        hub.subscribe((2, "two"), names(&["a"]), "m".to_owned(), 0).unwrap();
        assert_eq!(hub.next_statement().as_deref(), Some("unlisten \"a\""));
        hub.complete();
        assert_eq!(hub.next_statement().as_deref(), Some("listen \"a\";notify hotrow_marker, 'm'"));
    }

    #[test]
    fn a_subscriber_whose_listen_fails_gets_nothing() {
        let mut hub = TestHub::default();
        hub.subscribe((1, "one"), names(&["a"]), "m".to_owned(), 3).unwrap();
        hub.next_statement();
        hub.failed();
        assert_eq!(hub.complete(), (vec![3], false));
        assert!(hub.is_empty() && report(&mut hub, "a", "x").is_empty());
    }

    #[test]
    fn callers_that_catch_up_share_the_next_statement_but_not_the_one_under_way() {
        let mut hub = TestHub::default();
        hub.catch_up(1);
        assert_eq!(hub.next_statement().as_deref(), Some(""));
        hub.catch_up(2);
        hub.catch_up(3);
        assert_eq!(hub.next_statement(), None);
        assert_eq!(hub.complete(), (vec![1], true));
        hub.subscribe((1, "one"), names(&["a"]), "m".to_owned(), 4).unwrap();
        assert!(hub.next_statement().is_some());
        assert_eq!(hub.complete(), (vec![2, 3, 4], true));
        assert_eq!(hub.next_statement(), None);
    }

    #[test]
    fn a_lost_connection_is_told_to_all() {
        let mut hub = TestHub::default();
        subscribe(&mut hub, (1, "one"), &["a"]);
        hub.subscribe((2, "two"), names(&["a"]), "m".to_owned(), 5).unwrap();
        hub.next_statement();
        hub.catch_up(6);
        let (subscribers, waiters) = hub.lost();
        assert_eq!((subscribers.collect::<Vec<_>>(), waiters), (vec!["one", "two"], vec![6, 5]));
    }

    #[test]
    fn the_number_of_channels_is_bounded() {
        let mut hub = TestHub::default();
        let many: Vec<String> = (0..limits::LISTENED_CHANNELS_MAX).map(|number| number.to_string()).collect();
        hub.subscribe((1, "one"), many, "m".to_owned(), 0).unwrap();
        assert_eq!(hub.subscribe((2, "two"), names(&["a"]), "n".to_owned(), 0), Err(TooMany));
        hub.leave(1);
        assert_eq!(hub.subscribe((2, "two"), names(&["a"]), "n".to_owned(), 0), Ok(()));
    }
}
