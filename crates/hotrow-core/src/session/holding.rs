//! The connection that a session holds, and the state of its work there.

use std::collections::{BTreeSet, VecDeque};

use bytes::BytesMut;
use hotrow_wire::backend::Status;

use super::begun::Begun;
use super::foretold::Learning;
use super::handover::Handover;
use super::marks::{Mark, Marks};
use super::planning::Performing;
use super::reports::Reports;
use super::stateless::LearnedReply;
use super::{Connection, Environment, Named, Session, StatementOf};
use crate::classify::{Alters, Effect};
use crate::expect::{Expected, Message};
use crate::limits;
use crate::settings::{Parsing, Settings};

/// The memory for the messages that a connection has not answered.
pub(super) type Room<E> = VecDeque<Message<Named<<E as Environment>::Statement>>>;

/// A connection that the session holds, with the state of its work.
pub(super) struct Holding<E: Environment> {
    pub(super) connection: E::Connection,
    /// The replies that it owes.
    pub(super) expected: Expected<Named<E::Statement>>,
    /// The state that the unit under way clears if it succeeds.
    pub(super) clears: Effect,
    /// The unit under way has failed.
    pub(super) failed: bool,
    /// The status in the last ReadyForQuery.
    pub(super) status: Status,
    /// Missing bytes of a message that is relayed in pieces.
    pub(super) message_bytes_left: usize,
    /// A statement without credit that runs now: its success earns credit.
    pub(super) earning_credit: Option<StatementOf<E>>,
    /// What decides whether another session may get it.
    pub(super) marks: Marks<E::Statement>,
    /// The settings that it has after the text of SETs under way.
    pub(super) becomes: Option<Settings>,
    /// The statements that the gateway has prepared again after the client had prepared them.
    pub(super) prepared_anew: BTreeSet<u64>,
    /// The reply to a statement that only clears state.
    pub(super) learns: Option<LearnedReply<E::Statement>>,
    /// The client's name, or all its settings, were reset in this unit.
    pub(super) name_reset: bool,
    /// A ReadyForQuery that the client gets after its name is restored.
    pub(super) delayed_ready: Option<Status>,
    /// What it has reported to a session that listens.
    pub(super) reports: Reports,
    /// What the statements of its transaction, whose end is not known yet, can change in the catalog.
    pub(super) alters: Alters,
    /// The state that the server has found there, until it is handed over.
    pub(super) handover: Option<Handover>,
    /// The client has begun a transaction that the server does not know: its statements are described first, or one was
    /// refused.
    pub(super) begun: Option<Begun>,
    /// A unit of the connection is over.
    pub(super) unit_ended: bool,
    /// The statement of the unit under way whose outcome is noted, to be foretold later.
    pub(super) learning: Learning<E::Statement>,
}

impl<E: Environment> Holding<E> {
    /// A connection on which nothing has run. `begun` is the transaction that the server has not begun, `room` the memory for
    /// unanswered messages.
    pub(super) fn new(connection: E::Connection, begun: Option<Begun>, room: Room<E>) -> Self {
        Holding {
            connection,
            expected: Expected::with_room(room),
            clears: Effect::NONE,
            failed: false,
            status: Status::Idle,
            message_bytes_left: 0,
            earning_credit: None,
            marks: Marks::default(),
            becomes: None,
            prepared_anew: BTreeSet::new(),
            learns: None,
            name_reset: false,
            delayed_ready: None,
            reports: Reports::default(),
            alters: Alters::Nothing,
            handover: None,
            begun,
            unit_ended: false,
            learning: Learning::Nothing,
        }
    }

    /// Whether so much output waits for the server that the client has to wait too.
    pub(super) fn is_full(&mut self) -> bool {
        self.connection.output().len() > limits::UNREAD_BYTES_MAX
    }

    /// A statement of the pool is used.
    pub(super) fn used(&mut self, statement: u64) {
        self.marks.note(Mark::Used(statement));
        self.marks.forget_closed(self.connection.prepared());
    }

    /// Whether the server has reset the client's name, and the present name differs from the name at login.
    pub(super) fn has_lost_name(&self, first_name: &str) -> bool {
        let connection = &self.connection;
        self.name_reset && connection.name() == connection.default_name() && connection.name() != first_name
    }
}

impl<E: Environment> Session<E> {
    /// The connection, while there is one.
    pub(super) fn held(&mut self) -> &mut Holding<E> {
        self.phase.held_mut().expect("called only while a connection is held")
    }

    /// The replies that the connection owes.
    pub(super) fn expected(&self) -> &Expected<Named<E::Statement>> {
        &self.phase.held().expect("called only while a connection is held").expected
    }

    /// The state that is left on the connection that the session holds.
    pub(super) fn left(&self) -> Effect {
        self.phase.held().map_or(Effect::NONE, |holding| holding.marks.left())
    }

    /// How the server reads texts on the connection that the session holds, as far as the texts of statements show.
    pub(super) fn parsing(&self) -> Parsing {
        self.phase.held().map_or(Parsing::AsPool, |holding| holding.marks.parsing())
    }

    /// Whether the names in the next statement mean what they mean in the pool.
    pub(super) fn names_as_pool(&self) -> bool {
        self.phase.held().is_none_or(|holding| holding.marks.names_as_pool())
    }

    /// The messages to the server that are not sent yet.
    pub(super) fn output(&mut self, _: &Performing) -> &mut BytesMut {
        self.held().connection.output()
    }
}
