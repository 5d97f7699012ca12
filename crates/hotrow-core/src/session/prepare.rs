//! The names of statements on the connection that a session holds: the gateway's own, under which statements are
//! prepared when they are first needed, and the client's, where the server has to see them.

use bytes::Bytes;
use hotrow_wire::frontend::{self, Parse, tag};

use super::statement::own_statement;
use super::{Connection, Environment, Named, Session, StatementOf, statement_name};
use crate::classify::Analysis;
use crate::expect::{Message, Preparation, RunEffects, StatementName};

impl<E: Environment> Session<E> {
    /// The effects of the next statement on names. The name that it mentions is created at the server first.
    pub(super) fn will_run(&mut self, statement: &E::Statement) -> RunEffects {
        let name = statement.mentions_name().filter(|name| self.expected.meaning(name).is_some());
        match (name, statement.mentions_name()) {
            (Some(name), _) => self.show(name),
            (None, Some(name)) => self.hide_own(name),
            (None, None) => {}
        }
        let is_taken = matches!(&statement.analysis, Analysis::Deallocate(_));
        RunEffects {
            may_copy: statement.may_copy,
            deallocates: name.filter(|_| is_taken).map(Bytes::copy_from_slice),
            deallocates_all: statement.takes_all(),
        }
    }

    /// Creates a statement with the client's name at the server, for a message that fails if the name exists, or
    /// removes it.
    pub(super) fn show(&mut self, name: &[u8]) {
        self.close(name, own_statement(name));
        Parse { name, text: b"", types: &[] }.put(self.output());
        self.expected.sent(Message::Show(Bytes::copy_from_slice(name)));
    }

    /// Closes the gateway's statement whose name the client uses. If the client's PREPARE has the name, it keeps it.
    pub(super) fn hide_own(&mut self, name: &[u8]) {
        if let Some(own) = own_statement(name)
            && (self.preparation(own).is_some() || !self.left.prepared)
        {
            self.close(name, Some(own));
        }
    }

    /// Closes the statements that were created for such messages, unless the server skips the Close.
    pub(super) fn close_shown(&mut self) {
        if self.expected.is_reading_copy() {
            return;
        }
        let shown = self.expected.take_shown();
        if shown.is_empty() {
            return;
        }
        shown.iter().for_each(|name| self.close(name, own_statement(name)));
        if self.expected.needs_flush() {
            self.output().extend_from_slice(frontend::FLUSH);
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
        frontend::Named { statement: true, name }.put(tag::CLOSE, self.output());
        self.expected.sent(Message::OwnClose(place));
    }

    /// Makes sure that the statement is prepared as the client's Parse prepared it. Returns its name on the connection.
    pub(super) fn prepare(&mut self, named: &Named<E::Statement>, unnamed: bool) -> Bytes {
        let prepared = |statement: &E::Statement, parsed| match unnamed {
            true => Preparation::unnamed(statement.id, parsed),
            false => Preparation::named(statement.id, parsed),
        };
        let mut statement = named.statement.clone();
        if self.preparation(prepared(&statement, 0).name) != Some(prepared(&statement, named.parsed)) {
            statement = self.with_known_types(named);
        }
        let name = if unnamed { Bytes::new() } else { statement.name.clone() };
        let there = self.preparation(prepared(&statement, 0).name);
        if !there.is_some_and(|there| there.statement == statement.id && there.parsed >= named.parsed) {
            if !unnamed {
                self.make_room(&statement);
            }
            statement.put_parse(&name, self.output());
            let parsed = self.env.last_parse();
            self.expected.sent(Message::OwnParse(prepared(&statement, parsed)));
            self.held().prepared_anew.insert(statement.id);
        }
        name
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
        let holding = self.holding.as_ref().expect("called only while a connection is held");
        self.expected.preparation(holding.held.prepared(), name)
    }

    /// Asks the server for the types of the parameters that the client has not declared. `own_name` is the name of the
    /// client's statement on the connection.
    pub(super) fn learn_types(&mut self, name: &[u8], statement: &E::Statement, own_name: &[u8]) {
        if !statement.is_typed {
            frontend::Named { statement: true, name: own_name }.put(tag::DESCRIBE, self.output());
            self.expected.sent(Message::OwnDescribe(Bytes::copy_from_slice(name)));
        }
    }

    /// Closes a statement before it is prepared, because it may exist after a Parse that failed or was skipped. Closes
    /// another one if there are too many.
    pub(super) fn make_room(&mut self, statement: &E::Statement) {
        self.close(&statement.name, Some(StatementName::Named(statement.id)));
        let holding = self.holding.as_ref().expect("called only while a connection is held");
        if let Some(place @ StatementName::Named(oldest)) = self.expected.oldest(holding.held.prepared()) {
            self.close(statement_name(oldest).as_bytes(), Some(place));
        }
    }
}
