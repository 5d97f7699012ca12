//! The names of statements on the connection that a session holds: the gateway's own, under which statements are
//! prepared when they are first needed, and the client's, where the server has to see them.

use std::collections::BTreeSet;

use bytes::Bytes;
use hotrow_wire::frontend::{self, Parse, tag};

use super::holding::Holding;
use super::names::Names;
use super::planning::Performing;
use super::statement::{alias_number, own_statement};
use super::{Connection, Environment, Named, Session, StatementOf, statement_name};
use crate::classify::Analysis;
use crate::expect::{Message, Preparation, RunEffects, StatementName};
use crate::settings::Parsing;

/// Statements that are closed for a new one. More than one, because there can be more than usual for a while.
const CLOSED_FOR_ONE: usize = 2;

/// What preparing statements on a held connection needs.
pub(super) struct Preparer<'s, E: Environment> {
    pub(super) env: &'s E,
    pub(super) names: &'s Names<E::Statement>,
    pub(super) holding: &'s mut Holding<E>,
}

impl<E: Environment> Session<E> {
    /// What is needed to prepare statements on the connection that the session holds.
    pub(super) fn preparer(&mut self, _: &Performing) -> Preparer<'_, E> {
        self.names_there()
    }

    fn names_there(&mut self) -> Preparer<'_, E> {
        let holding = self.phase.held_mut().expect("called only while a connection is held");
        Preparer { env: &self.env, names: &self.names, holding }
    }

    /// The statements that are to be prepared before a statement changes how texts are read, because their texts may mean
    /// something else afterwards.
    pub(super) fn missing_before_settings(&mut self) -> Vec<StatementOf<E>> {
        let preparer = self.names_there();
        let changes_meaning =
            |named: &&Named<E::Statement>| !named.is_pinned && !named.statement.parses_alike;
        let named = preparer.names.values().filter(changes_meaning);
        let missing = named.filter(|named| preparer.prepared_as(named, false).is_none());
        missing.map(|named| preparer.with_known_types(named)).collect()
    }
}

impl<E: Environment> Preparer<'_, E> {
    /// The effects of the next statement on names. The name that it mentions is created at the server first.
    pub(super) fn will_run(&mut self, statement: &E::Statement) -> RunEffects {
        let name = statement
            .mentions_name()
            .filter(|name| self.holding.expected.meaning(self.names, name).is_some());
        match (name, statement.mentions_name()) {
            (Some(name), _) => self.put_placeholder(name),
            (None, Some(name)) => self.close_own(name),
            (None, None) => {}
        }
        let is_taken = matches!(&statement.analysis, Analysis::Deallocate(_));
        RunEffects {
            may_copy: statement.may_copy,
            deallocates: name.filter(|_| is_taken).map(Bytes::copy_from_slice),
            deallocates_all: statement.removes_names(),
            steps: statement.steps().into_owned(),
        }
    }

    /// Creates a statement with the client's name at the server, for a message that fails if the name exists, or
    /// removes it.
    pub(super) fn put_placeholder(&mut self, name: &[u8]) {
        self.close(name, own_statement(name));
        Parse { name, text: b"", types: &[] }.put(self.holding.connection.output());
        self.holding.expected.sent(Message::Placeholder(Bytes::copy_from_slice(name)));
    }

    /// Closes the gateway's statement whose name the client uses. If the client's PREPARE has the name, it keeps it.
    pub(super) fn close_own(&mut self, name: &[u8]) {
        if let Some(own) = own_statement(name)
            && (self.preparation(own).is_some() || !self.holding.marks.left().prepared)
        {
            self.close(name, Some(own));
        }
    }

    /// Closes the statements that were created for such messages, unless the server skips the Close.
    pub(super) fn close_placeholders(&mut self) {
        if !self.holding.expected.has_placeholders() || self.holding.expected.is_reading_copy() {
            return;
        }
        let placeholders = self.holding.expected.take_placeholders();
        placeholders.iter().for_each(|name| self.close(name, own_statement(name)));
        if self.holding.expected.needs_flush() {
            self.holding.connection.output().extend_from_slice(frontend::FLUSH);
        }
    }

    /// The client has no statement with this name. The unnamed statement on the connection belongs to another session,
    /// or the client has closed it while its session held no connection.
    pub(super) fn close_unnamed(&mut self, name: &[u8]) {
        if name.is_empty() {
            self.close(name, Some(StatementName::Unnamed));
        }
    }

    /// Closes a statement on the connection. The client does not get the reply.
    pub(super) fn close(&mut self, name: &[u8], place: Option<StatementName>) {
        frontend::ObjectName { statement: true, name }.put(tag::CLOSE, self.holding.connection.output());
        self.holding.expected.sent(Message::OwnClose(place));
    }

    /// Makes sure that the statement is prepared as the client's Parse prepared it. Returns its name on the connection.
    pub(super) fn prepare(&mut self, named: &Named<E::Statement>, unnamed: bool) -> Bytes {
        if let Some((place, name)) = self.prepared_as(named, unnamed) {
            if !named.statement.parses_alike {
                self.holding.used(match place {
                    StatementName::Named(number) => number,
                    StatementName::Unnamed => named.statement.id,
                });
            }
            return name;
        }
        let statement = self.with_known_types(named);
        let number = self.number(named, &statement);
        let parsed = self.env.last_parse();
        let (name, preparation) = match unnamed {
            true => (Bytes::new(), Preparation::unnamed(number, parsed)),
            false => (Self::own_name(&statement, number), Preparation::named(number, parsed)),
        };
        if !unnamed {
            self.make_room(number, &name);
        }
        Parse { name: &name, text: &named.text, types: &statement.types }
            .put(self.holding.connection.output());
        self.holding.expected.sent(Message::OwnParse(Some(preparation)));
        self.holding.prepared_anew.insert(statement.id);
        if !statement.parses_alike {
            self.holding.used(number);
        }
        name
    }

    /// Where the connection has the statement as the client's Parse prepared it, and its name there.
    pub(super) fn prepared_as(
        &self,
        named: &Named<E::Statement>,
        unnamed: bool,
    ) -> Option<(StatementName, Bytes)> {
        let has_alias = self.has_alias(named);
        let there = |number, name: &dyn Fn() -> Bytes, fits: &dyn Fn(u64) -> bool| {
            let unnamed = unnamed.then_some((StatementName::Unnamed, true));
            // Before settings changed, it was prepared with a name.
            let named = (unnamed.is_none() || has_alias).then_some((StatementName::Named(number), false));
            let place = [unnamed, named].into_iter().flatten().find(|(place, _)| {
                self.preparation(*place).is_some_and(|there| there.statement == number && fits(there.parsed))
            });
            place.map(|(place, is_unnamed)| (place, if is_unnamed { Bytes::new() } else { name() }))
        };
        let alias = alias_number(named.parsed);
        // On an earlier hold of the connection, it may have been read under settings that have ended.
        let is_sound = |parsed| parsed > 0;
        if has_alias && let Some(found) = there(alias, &|| statement_name(alias).into(), &is_sound) {
            return Some(found);
        }
        let statement = &named.statement;
        if let Some(found) = there(statement.id, &|| statement.name.clone(), &|parsed| parsed == named.parsed)
        {
            return Some(found);
        }
        let statement = self.with_known_types(named);
        there(statement.id, &|| statement.name.clone(), &|parsed| parsed >= named.parsed)
    }

    /// Whether no other session may use the statement that the server has for this name: the server may read its text, or
    /// its names, otherwise than on the pool's other connections.
    fn has_alias(&self, named: &Named<E::Statement>) -> bool {
        !named.statement.parses_alike && (named.is_pinned || self.may_parse_otherwise())
    }

    /// Whether the server may read texts otherwise than on the pool's other connections. A function can have changed the
    /// settings.
    fn may_parse_otherwise(&self) -> bool {
        self.holding.marks.is_unproven() || self.holding.marks.parsing() != Parsing::AsPool
    }

    /// The number under which the statement of a name is prepared now.
    pub(super) fn number(&self, named: &Named<E::Statement>, statement: &E::Statement) -> u64 {
        if self.has_alias(named) { alias_number(named.parsed) } else { statement.id }
    }

    /// The statement's name on the connection under this number.
    pub(super) fn own_name(statement: &E::Statement, number: u64) -> Bytes {
        if number == statement.id { statement.name.clone() } else { statement_name(number).into() }
    }

    /// Closes a statement that was prepared for one name only, if the connection has it.
    pub(super) fn close_alias(&mut self, number: u64) {
        let place = StatementName::Named(number);
        if self.preparation(place).is_some() {
            self.close(statement_name(number).as_bytes(), Some(place));
        }
    }

    /// The statement with declared types. The server may give undeclared parameters other types than at the client's
    /// Parse. From that Parse on, their types are declared.
    pub(super) fn with_known_types(&self, named: &Named<E::Statement>) -> StatementOf<E> {
        let statement = &named.statement;
        match named.resolved.as_ref().filter(|_| !statement.is_typed) {
            Some(resolved) => {
                let with_types = || self.env.with_types(statement, &resolved.types);
                resolved.statement.get_or_init(with_types).clone()
            }
            None => statement.clone(),
        }
    }

    /// The statement that is certain to be prepared under this name when the next message runs.
    fn preparation(&self, name: StatementName) -> Option<Preparation> {
        self.holding.expected.preparation(self.holding.connection.prepared(), name)
    }

    /// Asks the server for the types of the parameters that the client has not declared. `own_name` is the name of the
    /// client's statement on the connection.
    pub(super) fn learn_types(&mut self, name: &[u8], statement: &E::Statement, own_name: &[u8]) {
        if !statement.is_typed {
            frontend::ObjectName { statement: true, name: own_name }
                .put(tag::DESCRIBE, self.holding.connection.output());
            self.holding.expected.sent(Message::OwnDescribe(Bytes::copy_from_slice(name)));
        }
    }

    /// Closes a statement before it is prepared, because it may exist after a Parse that failed or was skipped. Closes
    /// others if there are too many.
    pub(super) fn make_room(&mut self, number: u64, name: &[u8]) {
        self.close(name, Some(StatementName::Named(number)));
        let mut oldest = self.holding.expected.oldest(self.holding.connection.prepared()).peekable();
        if oldest.peek().is_none() {
            return;
        }
        let needed = if self.holding.marks.left().read_here || self.may_parse_otherwise() {
            self.needed()
        } else {
            BTreeSet::new()
        };
        let oldest: Vec<u64> =
            oldest.filter(|number| !needed.contains(number)).take(CLOSED_FOR_ONE).collect();
        for number in oldest {
            self.close(statement_name(number).as_bytes(), Some(StatementName::Named(number)));
        }
    }

    /// The statements that cannot be prepared again with the meaning that they have for the client.
    fn needed(&self) -> BTreeSet<u64> {
        let is_needed = |named: &&Named<E::Statement>| self.has_alias(named);
        let named = self.names.values().filter(is_needed);
        named
            .flat_map(|named| {
                [alias_number(named.parsed), named.statement.id, self.with_known_types(named).id]
            })
            .collect()
    }
}
