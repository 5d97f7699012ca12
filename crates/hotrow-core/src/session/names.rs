//! The meaning of a client's names of statements while the session holds no connection. Units in lanes add
//! and remove names if they succeed.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use hotrow_wire::SqlState;
use hotrow_wire::backend::Problem;
use hotrow_wire::frontend::{Bind, ObjectName, Parse, tag};

use super::environment::Stop;
use super::texts::Texts;
use super::{Environment, Named, Resolved, SessionEnd, Statement, StatementOf};
use crate::expect;
use crate::limits;
use crate::settings::Parsing;
use crate::unit::Plan;
use crate::unit::gather::{Gather, Single};

/// The meaning of each name.
pub(super) type Names<S> = expect::Names<Named<S>>;

/// A name and its new meaning; none if the name is removed.
pub(super) type Change<S> = (Bytes, Option<Named<S>>);

/// The statement that a Bind means, and the types that its parameters have to have.
type BoundStatement<S> = (Arc<S>, Option<Arc<Resolved<S>>>);

/// The changes of names by unanswered units, mostly in lanes. Each has the slot of its unit's answer.
#[derive(Debug)]
pub(super) struct Renaming<S> {
    changes: VecDeque<(u64, Change<S>)>,
}

impl<S> Default for Renaming<S> {
    fn default() -> Self {
        Renaming { changes: VecDeque::new() }
    }
}

impl<S> Renaming<S> {
    /// Whether the meaning of each name is known.
    pub(super) fn is_over(&self) -> bool {
        self.changes.is_empty()
    }

    /// Records the changes by the last unit that was sent to a lane.
    pub(super) fn record(&mut self, slot: u64, changes: Vec<Change<S>>) {
        self.changes.extend(changes.into_iter().map(|change| (slot, change)));
    }

    /// Removes and returns the earliest change if its unit's slot is before this one.
    fn next(&mut self, end: u64) -> Option<(u64, Change<S>)> {
        let is_before = self.changes.front()?.0 < end;
        if is_before { self.changes.pop_front() } else { None }
    }
}

impl<S: Statement> Renaming<S> {
    /// Applies the changes by units that are answered. A lane does not answer a unit that fails at the server. A unit that the
    /// gateway has rejected changes nothing.
    pub(super) fn settle<E: Environment<Statement = S>>(&mut self, env: &E, names: &mut Names<S>) {
        if self.is_over() {
            return;
        }
        let (first, refused) = env.answers(|answers| {
            let (first, _) = answers.slots();
            (first, answers.take_refused(first))
        });
        while let Some((slot, change)) = self.next(first) {
            if !refused.contains(&slot) {
                apply(names, change);
            }
        }
    }

    /// Removes a name after all units under way.
    pub(super) fn remove<E: Environment<Statement = S>>(
        &mut self,
        env: &E,
        names: &mut Names<S>,
        name: &[u8],
    ) {
        self.settle(env, names);
        if self.is_over() && !names.contains_key(name) {
            return;
        }
        match env.answers(|answers| answers.slots()) {
            (_, Some(slot)) => self.record(slot, vec![(Bytes::copy_from_slice(name), None)]),
            (_, None) => drop(names.remove(name)),
        }
    }

    /// The change of names by a Query that runs in a lane: it removes the unnamed statement.
    pub(super) fn unnamed_removal<E: Environment<Statement = S>>(
        &mut self,
        env: &E,
        names: &mut Names<S>,
    ) -> Vec<Change<S>> {
        self.settle(env, names);
        let is_there = !self.is_over() || names.contains_key(&b""[..]);
        is_there.then_some((Bytes::new(), None)).into_iter().collect()
    }

    /// Drops the changes of the earliest unanswered unit, because the session runs it: the server's replies show its changes.
    pub(super) fn forget_first<E: Environment<Statement = S>>(&mut self, env: &E, names: &mut Names<S>) {
        self.settle(env, names);
        let (first, _) = env.answers(|answers| answers.slots());
        while self.next(first + 1).is_some() {}
    }

    /// Whether these messages mention a name that a unit under way changes. A new unnamed statement among them
    /// is not affected. Another new name is, because it may be in use.
    pub(super) fn concerns<E: Environment<Statement = S>>(
        &mut self,
        env: &E,
        names: &mut Names<S>,
        gather: &Gather,
    ) -> bool {
        self.settle(env, names);
        if self.is_over() {
            return false;
        }
        let mut parsed_unnamed = false;
        gather.messages().any(|(tag, body)| {
            let name = match tag {
                tag::PARSE => Parse::read(body).map(|parse| parse.name),
                tag::BIND => Bind::read(body).map(|bind| bind.statement),
                tag::DESCRIBE => match ObjectName::read(body) {
                    Ok(named) if named.statement => Ok(named.name),
                    _ => return false,
                },
                _ => return false,
            };
            let Ok(name) = name else { return false };
            parsed_unnamed |= tag == tag::PARSE && name.is_empty();
            !(name.is_empty() && parsed_unnamed)
                && self.changes.iter().any(|(_, (changed, _))| changed == name)
        })
    }

    /// The changes by a unit that runs in a lane. `parsing` is how its texts are read.
    pub(super) fn changes<'s, E: Environment<Statement = S>>(
        &self,
        env: &E,
        names: &Names<S>,
        parsing: Parsing,
        statements: impl Iterator<Item = (&'s Single<'s>, &'s StatementOf<E>)>,
    ) -> Result<Vec<Change<S>>, Stop<E>>
    where
        S: 's,
    {
        let mut changes = Vec::new();
        let closed =
            |close: &ObjectName<'_>| close.statement.then(|| (Bytes::copy_from_slice(close.name), None));
        for (single, statement) in statements {
            changes.extend(single.closes.0.iter().filter_map(closed));
            if let Some(parse) = &single.parse {
                let named = newly_named(env, parsing, statement, parse.text, statement.parameter_types());
                changes.push((Bytes::copy_from_slice(parse.name), Some(named)));
                if names.len() + self.changes.len() >= limits::CLIENT_STATEMENTS_MAX {
                    return Err(too_many_statements().into());
                }
            }
            changes.extend(single.closes.1.iter().filter_map(closed));
        }
        Ok(changes)
    }
}

/// Gives a name its meaning, or removes it.
pub(super) fn apply<S>(names: &mut Names<S>, (name, meaning): Change<S>) {
    match meaning {
        Some(meaning) => drop(names.insert(name, meaning)),
        None => drop(names.remove(&name)),
    }
}

/// The meaning of a name that the client gives to this statement now, with this text, if its parameters have these types.
/// `parsing` is how the server reads the text.
pub(super) fn newly_named<E: Environment>(
    env: &E,
    parsing: Parsing,
    statement: &StatementOf<E>,
    text: &[u8],
    types: Option<Bytes>,
) -> Named<E::Statement> {
    Named {
        statement: statement.clone(),
        text: statement.text_of(text),
        parsed: env.next_parse(),
        resolved: types.map(Resolved::new),
        is_pinned: parsing != Parsing::AsPool && !statement.parses_alike,
    }
}

/// What becomes of the client's unnamed statement before a unit.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Unnamed {
    /// The unit can use it.
    Kept,
    /// A Query has removed it.
    Removed,
}

/// The statement that a Bind means after the earlier statements of its unit. None if the server has to report an error.
pub(super) fn statement_of<E: Environment>(
    env: &E,
    names: &Names<E::Statement>,
    texts: &mut Texts<E::Statement>,
    single: &Single<'_>,
    before: (&[Single<'_>], &[Plan<StatementOf<E>>]),
    unnamed: Unnamed,
) -> Option<BoundStatement<E::Statement>> {
    let name = single.bind.statement;
    let closes = |closes: &[ObjectName<'_>]| closes.iter().any(|close| close.statement && close.name == name);
    // The last change of the name in the unit counts.
    let named = names.get(name).filter(|_| !name.is_empty() || unnamed == Unnamed::Kept);
    let mut there = named.map(|named| (named.statement.clone(), named.resolved.clone()));
    for (earlier, plan) in before.0.iter().zip(before.1) {
        if closes(&earlier.closes.0) {
            there = None;
        }
        if earlier.parse.as_ref().is_some_and(|parse| parse.name == name) {
            there = Some((plan.statement().clone(), None));
        }
        if closes(&earlier.closes.1) {
            there = None;
        }
    }
    match &single.parse {
        // A name that is in use is an error.
        Some(_) if !name.is_empty() && there.is_some() && !closes(&single.closes.0) => None,
        Some(parse) => Some((texts.parsed(env, parse), None)),
        None => there,
    }
}

/// The error for a session with too many named statements.
pub(super) fn too_many_statements() -> SessionEnd {
    let message = format!("more than {} prepared statements in one session", limits::CLIENT_STATEMENTS_MAX);
    SessionEnd::Problem(Problem::fatal(
        SqlState::ConfigurationLimitExceeded,
        message,
        "Close statements that are not needed any more.",
    ))
}
