//! What a client's names of statements mean while the session holds no connection: units in lanes give names and take them
//! away, if they succeed.

use bytes::Bytes;
use hotrow_core::unit::gather::Gather;
use hotrow_wire::frontend::{self, Bind, Parse, tag};

use super::Session;
use crate::statements::Named;

/// What a unit that is not answered does to a name.
#[derive(Debug)]
pub struct Naming {
    /// The place of the unit's answer.
    slot: u64,
    name: Bytes,
    /// What the name stands for then.
    meaning: Option<Named>,
}

/// A name and what a unit makes of it.
pub type Change = (Bytes, Option<Named>);

impl Session {
    /// Notes what the last unit that was sent to a lane does to names if it succeeds.
    pub(super) fn record_naming(&mut self, slot: u64, changes: Vec<Change>) {
        self.naming.extend(changes.into_iter().map(|(name, meaning)| Naming { slot, name, meaning }));
    }

    /// Takes a name away behind all units that are on their way.
    pub(super) fn remove_name(&mut self, name: &[u8]) {
        self.settle_names();
        if self.naming.is_empty() && !self.expected.names.contains_key(name) {
            return;
        }
        match self.mailbox.slots() {
            (_, Some(slot)) => self.record_naming(slot, vec![(Bytes::copy_from_slice(name), None)]),
            (_, None) => drop(self.expected.names.remove(name)),
        }
    }

    /// What a Query does to names if a lane runs it: it takes the unnamed statement away.
    pub(super) fn unnamed_removal(&mut self) -> Vec<Change> {
        self.settle_names();
        let is_there = !self.naming.is_empty() || self.expected.names.contains_key(&b""[..]);
        is_there.then_some((Bytes::new(), None)).into_iter().collect()
    }

    /// Does to names what the units do that are answered by now. A unit that fails at the server is not answered by its lane,
    /// and one that the gateway has refused does nothing.
    pub(super) fn settle_names(&mut self) {
        if self.naming.is_empty() {
            return;
        }
        let (first, _) = self.mailbox.slots();
        let refused = self.mailbox.take_refused(first);
        while let Some(Naming { slot, name, meaning }) = self.next_naming(first) {
            match meaning {
                _ if refused.contains(&slot) => {}
                Some(meaning) => drop(self.expected.names.insert(name, meaning)),
                None => drop(self.expected.names.remove(&name)),
            }
        }
    }

    /// Takes off the earliest of these, if its unit's answer stands before this place.
    fn next_naming(&mut self, end: u64) -> Option<Naming> {
        let is_before = self.naming.front()?.slot < end;
        if is_before { self.naming.pop_front() } else { None }
    }

    /// The earliest unit that is not answered is run by the session: the server's replies say what it does to names.
    pub(super) fn forget_naming(&mut self) {
        self.settle_names();
        let (first, _) = self.mailbox.slots();
        while self.next_naming(first + 1).is_some() {}
    }

    /// Whether these messages mention a name that a unit on its way changes. Of names that they give themselves only the
    /// unnamed one is not in doubt then: another one may be taken.
    pub(super) fn depends_on_lanes(&mut self, gather: &Gather) -> bool {
        self.settle_names();
        if self.naming.is_empty() {
            return false;
        }
        let mut parsed_unnamed = false;
        gather.messages().any(|(tag, body)| {
            let name = match tag {
                tag::PARSE => Parse::read(body).map(|parse| parse.name),
                tag::BIND => Bind::read(body).map(|bind| bind.statement),
                tag::DESCRIBE => match frontend::Named::read(body) {
                    Ok(named) if named.statement => Ok(named.name),
                    _ => return false,
                },
                _ => return false,
            };
            let Ok(name) = name else { return false };
            parsed_unnamed |= tag == tag::PARSE && name.is_empty();
            !(name.is_empty() && parsed_unnamed) && self.naming.iter().any(|naming| naming.name == name)
        })
    }
}
