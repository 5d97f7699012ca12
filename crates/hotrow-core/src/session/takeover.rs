//! The notifications before a marker: what two connections have reported, in the order of the server's queue.
//!
//! Both reports end at the marker. The server signals listeners after a commit, one by one, so the shared connection may
//! report a notification that was committed before the held connection began to listen. Such notifications come first.
//! From there on, the held connection reports everything that a direct connection would, in its order.

use std::collections::VecDeque;

use bytes::Bytes;
use hotrow_wire::backend::Notification;

/// What a marker changes.
#[derive(Clone, Debug)]
pub enum TakesOver {
    /// After it, the shared connection reports these channels too.
    Shared(Vec<String>),
    /// After it, the held connection reports all channels.
    Held,
}

/// What the client gets from the reports of one channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Share {
    /// The shared connection reports it before and after the unit: the client gets everything, from there.
    Kept,
    /// The session has stopped to listen to it: the client gets what the held connection has reported, and what was sent
    /// before that.
    Ended,
    /// Only the held connection reports it.
    New,
}

/// What the held connection has reported, and whether the shared one reports it too.
pub(super) type Due = (Bytes, bool);

/// The client's notifications, in their order.
pub(super) fn in_order(held: &VecDeque<Due>, shared: &[Bytes], share: impl Fn(&str) -> Share) -> Vec<Bytes> {
    let share = |body: &Bytes| channel_of(body).map_or(Share::New, &share);
    // From the common end on, because what the client already has stands at the beginning of `held`.
    let mut end = shared.len();
    let mut places: Vec<Option<usize>> = vec![None; held.len()];
    for (place, (body, is_shared)) in places.iter_mut().zip(held).rev() {
        *place = shared[..end].iter().rposition(|other| *is_shared && other == body);
        end = place.unwrap_or(end);
    }
    let ended = held.iter().zip(&places).filter(|((body, _), _)| share(body) == Share::Ended);
    let ended = ended.filter_map(|(_, place)| *place).max();
    let gets = |place: &usize| match share(&shared[*place]) {
        Share::Kept => true,
        Share::Ended => ended.is_some_and(|last| *place <= last),
        Share::New => false,
    };
    let first = places.iter().flatten().next().copied().unwrap_or(shared.len());
    let mut order: Vec<Bytes> = (0..first).filter(gets).map(|place| shared[place].clone()).collect();
    let mut next = first;
    // On a new channel, what was sent before something that the client already has was sent before it began to listen.
    let has_last =
        held.iter().zip(&places).rposition(|((_, is_shared), place)| *is_shared && place.is_none());
    let begin = has_last.map_or(0, |last| last + 1);
    for (index, ((body, is_shared), place)) in held.iter().zip(places).enumerate() {
        if let Some(place) = place {
            order.extend((next..=place).filter(gets).map(|place| shared[place].clone()));
            next = place + 1;
        }
        if !is_shared && index >= begin {
            order.push(body.clone());
        }
    }
    order.extend((next..shared.len()).filter(gets).map(|place| shared[place].clone()));
    order
}

fn channel_of(body: &[u8]) -> Option<&str> {
    Notification::read(body).ok().and_then(|notification| str::from_utf8(notification.channel).ok())
}

#[cfg(test)]
mod tests {
    use bytes::BytesMut;
    use hotrow_wire::HEADER_BYTES;

    use super::*;

    /// The body of a notification: the first letter is the channel, and the whole is the payload.
    fn body(text: &str) -> Bytes {
        let mut out = BytesMut::new();
        let (channel, payload) = (&text.as_bytes()[..1], text.as_bytes());
        Notification { process_id: 1, channel, payload }.put(&mut out);
        out.freeze().slice(HEADER_BYTES..)
    }

    /// The channels `k` are kept, `e` ended and `n` new. Each word is a notification.
    fn merged(held: &str, shared: &str) -> String {
        let held = held.split_whitespace().map(|text| (body(text), !text.starts_with('n'))).collect();
        let shared: Vec<Bytes> = shared.split_whitespace().map(body).collect();
        let order = in_order(&held, &shared, |channel| match channel {
            "k" => Share::Kept,
            "e" => Share::Ended,
            _ => Share::New,
        });
        let payloads = order.iter().map(|body| Notification::read(body).unwrap().payload.to_vec());
        payloads.map(|payload| String::from_utf8(payload).unwrap()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn what_was_committed_before_the_held_connection_listened_comes_first() {
        assert_eq!(merged("k2", "k1 k2"), "k1 k2");
        assert_eq!(merged("n1 k2 n3", "k1 k2"), "k1 n1 k2 n3");
        assert_eq!(merged("n1", "k1"), "k1 n1");
        assert_eq!(merged("", "k1"), "k1");
    }

    #[test]
    fn what_the_client_already_has_does_not_come_again() {
        assert_eq!(merged("k1 n1 k2", "k2"), "n1 k2");
        assert_eq!(merged("k1 n1 k1 n2", "k1"), "n1 k1 n2", "two equal ones");
        assert_eq!(merged("k1", ""), "");
    }

    #[test]
    fn a_channel_that_has_ended_ends_with_the_last_report_of_the_held_connection() {
        assert_eq!(merged("e2", "e1 e2 e3"), "e1 e2");
        assert_eq!(merged("e2 k3", "e1 k1 e2 e3 k3 e4"), "e1 k1 e2 k3");
        assert_eq!(merged("k2", "k1 e1 k2"), "k1 k2");
        assert_eq!(merged("", "e1"), "");
    }

    #[test]
    fn a_new_channel_comes_from_the_held_connection_alone() {
        assert_eq!(merged("n1 n2", "n0 n1 n2"), "n1 n2");
    }

    #[test]
    fn a_new_channel_begins_after_what_the_client_already_has() {
        assert_eq!(merged("n1 k1 n2", ""), "n2");
        assert_eq!(merged("n1 k1 n2 k2 n3", "k2"), "n2 k2 n3");
    }
}
