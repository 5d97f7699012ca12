//! The meaning of a client's names of statements while the session holds no connection. Units in lanes add
//! and remove names if they succeed.

use bytes::Bytes;
use hotrow_wire::frontend::{self, Bind, Parse, tag};

use super::{Environment, Named, Session, StatementOf};
use crate::unit::gather::Gather;

/// A change of a name by an unanswered unit.
#[derive(Debug)]
pub(super) struct Naming<S> {
    /// The slot of the unit's answer.
    slot: u64,
    name: Bytes,
    /// The new meaning; none if the name is removed.
    meaning: Option<Named<S>>,
}

/// A name and its new meaning.
pub(super) type Change<S> = (Bytes, Option<Named<S>>);

impl<E: Environment> Session<E> {
    /// The present meaning of the client's name.
    pub(super) fn statement_now(&self, name: &[u8]) -> Option<StatementOf<E>> {
        self.expected.names.get(name).map(|named| named.statement.clone())
    }

    /// Records the changes of names by the last unit that was sent to a lane.
    pub(super) fn record_naming(&mut self, slot: u64, changes: Vec<Change<E::Statement>>) {
        self.naming.extend(changes.into_iter().map(|(name, meaning)| Naming { slot, name, meaning }));
    }

    /// Removes a name after all units under way.
    pub(super) fn remove_name(&mut self, name: &[u8]) {
        self.settle_names();
        if self.naming.is_empty() && !self.expected.names.contains_key(name) {
            return;
        }
        match self.env.answers(|answers| answers.slots()) {
            (_, Some(slot)) => self.record_naming(slot, vec![(Bytes::copy_from_slice(name), None)]),
            (_, None) => drop(self.expected.names.remove(name)),
        }
    }

    /// The change of names by a Query that runs in a lane: it removes the unnamed statement.
    pub(super) fn unnamed_removal(&mut self) -> Vec<Change<E::Statement>> {
        self.settle_names();
        let is_there = !self.naming.is_empty() || self.expected.names.contains_key(&b""[..]);
        is_there.then_some((Bytes::new(), None)).into_iter().collect()
    }

    /// Applies the changes of names by units that are answered. A lane does not answer a unit that fails at the
    /// server. A unit that the gateway has rejected changes nothing.
    pub(super) fn settle_names(&mut self) {
        if self.naming.is_empty() {
            return;
        }
        let (first, refused) = self.env.answers(|answers| {
            let (first, _) = answers.slots();
            (first, answers.take_refused(first))
        });
        while let Some(Naming { slot, name, meaning }) = self.next_naming(first) {
            if !refused.contains(&slot) {
                self.set_name(name, meaning);
            }
        }
    }

    /// Gives a name its meaning, or removes it.
    pub(super) fn set_name(&mut self, name: Bytes, meaning: Option<Named<E::Statement>>) {
        match meaning {
            Some(meaning) => drop(self.expected.names.insert(name, meaning)),
            None => drop(self.expected.names.remove(&name)),
        }
    }

    /// Removes and returns the earliest change if its unit's slot is before this one.
    fn next_naming(&mut self, end: u64) -> Option<Naming<E::Statement>> {
        let is_before = self.naming.front()?.slot < end;
        if is_before { self.naming.pop_front() } else { None }
    }

    /// Drops the changes of the earliest unanswered unit, because the session runs it: the server's replies show
    /// its changes.
    pub(super) fn forget_naming(&mut self) {
        self.settle_names();
        let (first, _) = self.env.answers(|answers| answers.slots());
        while self.next_naming(first + 1).is_some() {}
    }

    /// Whether these messages mention a name that a unit under way changes. A new unnamed statement among them
    /// is not affected. Another new name is, because it may be in use.
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
                tag::DESCRIBE => match frontend::ObjectName::read(body) {
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
