//! Cancel requests of simulated clients. A request goes where the real [`CancelState`](crate::session::CancelState) says, and arrives
//! at a backend at any later time. The check: it reaches one unit of its own client, and none that the client has sent after it
//! has learnt that its request has arrived.

use hotrow_lane::cancel::CancelTarget;
use hotrow_lane::lane::Event;
use hotrow_wire::backend::{Report, tag};
use hotrow_wire::{frontend, split};

use super::world::World;

/// A cancel request.
#[derive(Debug)]
pub struct Request {
    client: usize,
    /// Number of the client's units that were answered when it sent the request.
    answered: usize,
    /// Bytes that the client has sent before the request has arrived. None until then.
    sent: Option<usize>,
    /// The backend to which it is on its way.
    backend: Option<usize>,
    /// It waits until the session is no longer busy.
    waits: bool,
    /// The session waited: it is cancelled for sure.
    must_cancel: bool,
}

impl World {
    /// Any client sends a request.
    pub(super) fn cancel(&mut self) {
        let number = self.random.usize(..self.clients.len());
        let client = &self.clients[number];
        if client.is_over {
            return;
        }
        let request = Request {
            client: number,
            answered: count(&client.received, &[tag::READY]),
            sent: None,
            backend: None,
            waits: true,
            must_cancel: false,
        };
        self.requests.push(request);
        self.go_to_work(self.requests.len() - 1);
    }

    /// A request goes where the session's work is, unless the session is busy.
    fn go_to_work(&mut self, index: usize) {
        let request = &mut self.requests[index];
        let number = request.client;
        let client = &self.clients[number];
        let (first, last) = client.answers.borrow().slots();
        let target = client.cancel.borrow_mut().request(last.map(|_| first));
        (request.sent, request.waits) = (Some(client.sent_bytes), false);
        match target {
            CancelTarget::Lanes => {
                let mut inboxes = self.shared.inboxes.borrow_mut();
                inboxes.iter_mut().for_each(|inbox| inbox.push_back(Event::Cancel(number as u64)));
            }
            CancelTarget::Session => request.must_cancel = true,
            CancelTarget::Backend(backend) => (request.sent, request.backend) = (None, Some(backend)),
            CancelTarget::Later => (request.sent, request.waits) = (None, true),
        }
    }

    /// A request that has waited is made again. False if none waits.
    pub(super) fn ask_again(&mut self) -> bool {
        let waiting = self.requests.iter().position(|request| request.waits);
        waiting.inspect(|index| self.go_to_work(*index)).is_some_and(|index| !self.requests[index].waits)
    }

    /// A request arrives at its backend. False if none is on its way.
    pub(super) fn arrive(&mut self) -> bool {
        let on_their_way = self.requests.iter_mut().filter(|request| request.backend.is_some());
        let on_their_way: Vec<_> = on_their_way.collect();
        let Some(request) = self.random.choice(on_their_way) else { return false };
        let Some(backend) = request.backend.take() else { return false };
        self.backends[backend].cancel();
        let client = &self.clients[request.client];
        request.sent = Some(client.sent_bytes);
        client.cancel.borrow_mut().arrived();
        true
    }

    /// The gateway itself, or another session, uses a backend: no request is on its way there.
    pub(super) fn check_backend(&self, backend: usize) {
        let mut requests = self.requests.iter();
        assert!(
            requests.all(|request| request.backend != Some(backend)),
            "a cancel request is on its way to a backend that no longer works for its session"
        );
    }

    /// Checks that each error of a cancelled unit has a request of its client, sent while the unit was unanswered, and
    /// that each request has cancelled one unit at most.
    pub fn check_requests(&self, number: usize, program: &[u8]) -> Result<usize, String> {
        let of_client = self.requests.iter().filter(|request| request.client == number);
        // The range of units that each request may reach.
        let mut open: Vec<_> = of_client
            .map(|request| (request.answered, begun(program, request.sent.unwrap_or(usize::MAX)), request))
            .collect();
        open.sort_by_key(|(_, end, _)| *end);
        let cancelled = cancelled_units(&self.clients[number].received);
        let is_over = self.clients[number].is_over;
        let groups = groups(program);
        for (first, _, request) in open.iter().filter(|(.., request)| request.must_cancel && !is_over) {
            // A BEGIN that the gateway answers is not what the session has waited with.
            let is_of_group = |unit: &&usize| **unit >= *first && groups.get(**unit) == groups.get(*first);
            if cancelled.iter().find(is_of_group).is_none() {
                return Err(format!("unit {first} was not cancelled: {request:?}"));
            }
        }
        let mut last = None;
        for unit in &cancelled {
            let group = groups.get(*unit).copied();
            if std::mem::replace(&mut last, group) == group {
                continue; // messages of one transaction that are refused together
            }
            let found = open.iter().position(|(first, end, _)| (*first..*end).contains(unit));
            let Some(found) = found else {
                return Err(format!("no request was for unit {unit}, of {:?}", self.requests));
            };
            open.remove(found);
        }
        Ok(cancelled.len())
    }
}

/// The messages of these types.
fn count(bytes: &[u8], tags: &[u8]) -> usize {
    frames(bytes).filter(|(tag, ..)| tags.contains(tag)).count()
}

/// The type, the body and the end of each message.
fn frames(bytes: &[u8]) -> impl Iterator<Item = (u8, &[u8], usize)> {
    let mut end = 0;
    std::iter::from_fn(move || {
        let frame = split(&bytes[end..], |_| usize::MAX).expect("valid")?;
        end += frame.bytes.len();
        Some((frame.tag, frame.body(), end))
    })
}

const UNIT_ENDS: [u8; 2] = [frontend::tag::QUERY, frontend::tag::SYNC];

/// Number of units of which a client has sent something with this many bytes.
fn begun(program: &[u8], sent: usize) -> usize {
    let ends = frames(program).filter(|(tag, ..)| UNIT_ENDS.contains(tag));
    1 + ends.filter(|(.., end)| *end < sent).count()
}

/// The units that have the error of a cancelled one.
fn cancelled_units(received: &[u8]) -> Vec<usize> {
    let mut unit = 0;
    let mut cancelled = Vec::new();
    for (tag, body, _) in frames(received) {
        match tag {
            tag::READY => unit += 1,
            tag::ERROR if Report::read(body).expect("valid").code == b"57014" => cancelled.push(unit),
            _ => {}
        }
    }
    cancelled
}

/// The transaction of each unit.
fn groups(program: &[u8]) -> Vec<usize> {
    let (mut group, mut is_open) = (0, false);
    let units = frames(program).filter(|(tag, ..)| UNIT_ENDS.contains(tag));
    let groups = units.map(|(tag, body, _)| {
        let text = if tag == frontend::tag::QUERY { body } else { &[] };
        group += usize::from(!is_open);
        is_open = is_open && !text.starts_with(b"commit") && !text.starts_with(b"rollback")
            || text.starts_with(b"begin");
        group
    });
    groups.collect()
}
