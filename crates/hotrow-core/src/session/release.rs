//! The connection that a session holds, until no state is left on it.

use std::collections::BTreeSet;

use hotrow_wire::backend::{self, Status};

use super::environment::Stop;
use super::replies::put_ready;
use super::{Connection, Environment, Named, Need, Resolved, Sequences, Session, Statement, StatementOf};
use crate::classify::Effect;
use crate::limits;
use crate::settings::{self, Settings};

/// A connection that the session holds, with the state of its work.
pub(super) struct Holding<E: Environment> {
    pub(super) held: E::Connection,
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
    /// The connection must be closed instead of given back.
    pub(super) must_close: bool,
    /// A statement ran that may have left state: the server is queried before another session gets the
    /// connection.
    pub(super) unproven: bool,
    /// A statement ran that may have released advisory locks.
    pub(super) may_unlock: bool,
    /// A statement ran that may have changed the channels to which the session listens.
    pub(super) channels_in_doubt: bool,
    /// The statements that the gateway has prepared again after the client had prepared them.
    pub(super) prepared_anew: BTreeSet<u64>,
    /// Settings have changed in this unit, or the state of the connection is not known since then.
    pub(super) settings_changed: bool,
    /// The client's name, or all its settings, were reset in this unit.
    pub(super) name_reset: bool,
    /// A ReadyForQuery that the client gets after its name is restored.
    pub(super) delayed_ready: Option<Status>,
}

impl<E: Environment> Holding<E> {
    /// Whether so much output waits for the server that the client has to wait too.
    pub(super) fn is_full(&mut self) -> bool {
        self.held.output().len() > limits::UNREAD_BYTES_MAX
    }

    /// Whether the server has reset the client's name, and the present name differs from the name at log-in.
    pub(super) fn has_lost_name(&self, first_name: &str) -> bool {
        let held = &self.held;
        self.name_reset && held.name() == held.default_name() && held.name() != first_name
    }
}

/// What the server says about the state that is left on a connection.
#[derive(Clone, Copy, Debug)]
pub struct StateLeft {
    /// The state.
    pub effect: Effect,
    /// Number of statements that are prepared there, if the server has said it.
    pub prepared: Option<usize>,
}

impl<E: Environment> Session<E> {
    /// The session has acquired a connection.
    pub fn connected(&mut self, held: E::Connection) {
        self.deliver_all();
        self.listening.forget_held();
        self.holding = Some(Holding {
            held,
            clears: Effect::NONE,
            failed: false,
            status: Status::Idle,
            message_bytes_left: 0,
            earning_credit: None,
            must_close: false,
            unproven: false,
            may_unlock: false,
            channels_in_doubt: false,
            prepared_anew: BTreeSet::new(),
            settings_changed: false,
            name_reset: false,
            delayed_ready: None,
        });
    }

    /// The session has ended: its connection is closed, and the unit that runs there is lost.
    pub fn end(&mut self) {
        self.disconnect();
        self.drop_alone();
    }

    /// Takes the connection away from the session. It is closed, not reused: the server rolls back an open
    /// transaction.
    pub fn disconnect(&mut self) {
        if self.drop_connection().is_some() {
            self.env.disconnected();
        }
    }

    fn drop_connection(&mut self) -> Option<Holding<E>> {
        self.places.clear();
        self.expected.disconnect();
        self.unit_ended = false;
        self.holding.take()
    }

    pub(super) fn held(&mut self) -> &mut Holding<E> {
        self.holding.as_mut().expect("called only while a connection is held")
    }

    /// No reply is missing on the connection, and no message is incomplete.
    pub fn is_settled(&self) -> bool {
        self.expected.is_settled()
            && self.holding.as_ref().is_none_or(|holding| holding.message_bytes_left == 0)
    }

    /// Whether the connection is in the middle of a message, after which the client can be told nothing.
    pub fn is_in_message(&self) -> bool {
        self.holding.as_ref().is_some_and(|holding| holding.message_bytes_left > 0)
    }

    /// Whether the session can end without loss: no connection, or no transaction on it.
    pub fn is_idle(&self) -> bool {
        self.is_settled() && self.holding.as_ref().is_none_or(|holding| holding.status == Status::Idle)
    }

    /// After the end of a unit: restores the client's name, and gives the connection back if no state is left.
    pub(super) fn finish_unit(&mut self) -> Result<(), Stop<E>> {
        if self.holding.as_ref().is_some_and(|holding| holding.delayed_ready.is_some()) {
            if self.is_settled() {
                return Err(Stop::Need(Need::Rename));
            }
            self.renamed(); // more is under way already: the next connection gets the name
        }
        if !std::mem::take(&mut self.unit_ended) || self.holding.is_none() {
            return Ok(());
        }
        if self.is_settled() {
            self.close_shown();
        }
        let is_settled = self.is_settled();
        let keeps_off = !self.pack && self.env.packs();
        let left = self.left;
        let listens = left.listen || !self.shared_channels().is_empty();
        let holding = self.held();
        let is_busy = !is_settled || holding.status != Status::Idle;
        // Only the server knows whether a lock was released, and which settings and channels there are.
        let in_doubt =
            Effect { settings: true, listen: true, advisory_lock: holding.may_unlock, ..Effect::NONE };
        let asks = !left.without(in_doubt).pins() || listens || holding.channels_in_doubt;
        let is_lost = holding.must_close && !holding.channels_in_doubt;
        if !is_busy && holding.unproven && !is_lost && asks {
            self.unit_ended = true;
            return Err(Stop::Need(Need::StateLeft));
        }
        if is_busy || left.pins() || keeps_off {
            holding.held.kept_for_long();
            return Ok(());
        }
        if self.sequences == Sequences::Here {
            self.sequences = Sequences::Elsewhere;
        }
        let Some(holding) = self.drop_connection() else { return Ok(()) };
        Err(Stop::Need(Need::Release { connection: holding.held, reusable: !holding.must_close }))
    }

    /// The client's name at log-in, which the server is told again.
    pub fn first_name(&self) -> &str {
        &self.first_name
    }

    /// The client has its name again: it is told that the unit is over.
    pub fn renamed(&mut self) {
        let Some(status) = self.holding.as_mut().and_then(|holding| holding.delayed_ready.take()) else {
            return;
        };
        let is_new = self.application_name != self.first_name;
        self.append(|out| {
            if is_new {
                backend::put_parameter_status(out, "application_name", &self.first_name);
            }
            put_ready(status, out);
        });
        self.env.client_renamed(&self.first_name);
        self.application_name.clone_from(&self.first_name);
    }

    /// The state on the connection that the server does not show.
    pub fn hidden_state(&self) -> Effect {
        let Effect { unlisted_settings, unknown, .. } = self.left;
        Effect { unlisted_settings, unknown, ..Effect::NONE }
    }

    /// The state that the server has found on the connection.
    pub fn state_found(&mut self, state: StateLeft) {
        self.left = state.effect.union(self.hidden_state());
        self.left.settings |= self.expected.names.values().any(|named| named.only_here);
        let holding = self.held();
        (holding.unproven, holding.may_unlock, holding.channels_in_doubt) = (false, false, false);
        holding.settings_changed = false;
        // A function may have deallocated statements of other sessions.
        holding.must_close |= state.prepared != Some(holding.held.prepared().count());
    }

    /// Whether the session may move to a pool whose clients have these settings. It may not if a statement that it has
    /// prepared would be read differently there.
    pub fn may_move(&self, from: &Settings, to: &Settings) -> bool {
        let mut named = self.expected.names.values();
        let is_alike = from.read_as(to);
        named.all(|named| !named.only_here && (is_alike || Self::is_read_alike(&named.statement)))
    }

    /// Whether a statement means the same under all settings. Texts like SET are read when they run.
    pub(super) fn is_read_alike(statement: &StatementOf<E>) -> bool {
        Self::effect_of(statement).settings || settings::is_read_alike(&statement.text)
    }

    /// Whether the session may have other settings than its pool.
    pub(super) fn reads_otherwise(&self) -> bool {
        self.holding.as_ref().is_some_and(|holding| holding.settings_changed || self.left.settings)
    }

    /// A statement that changes settings comes next. The statements whose texts may mean something else afterwards are
    /// prepared first, if nothing else is under way.
    pub(super) fn before_settings(&mut self, statement: &StatementOf<E>) -> Result<(), Stop<E>> {
        let changes = Self::effect_of(statement).settings || statement.clears().settings;
        let Some(holding) = self.holding.as_ref().filter(|_| changes && !self.provided.prepared) else {
            return Ok(());
        };
        if holding.status != Status::Idle || !self.is_settled() {
            return Ok(());
        }
        let changes_meaning =
            |named: &&Named<E::Statement>| !named.only_here && !Self::is_read_alike(&named.statement);
        let named = self.expected.names.values().filter(changes_meaning);
        let missing: Vec<_> = named
            .map(|named| self.with_known_types(named))
            .filter(|statement| !holding.held.prepared().has(statement.id))
            .collect();
        if missing.is_empty() { Ok(()) } else { Err(Stop::Need(Need::Prepared(missing))) }
    }

    /// The statements that could be are prepared.
    pub fn prepared(&mut self, statements: &[StatementOf<E>]) {
        let parsed = self.env.last_parse();
        let prepared = self.held().held.prepared_mut();
        statements.iter().for_each(|statement| prepared.parsed(statement.id, parsed));
        self.provided.prepared = true;
    }

    /// The server has refused to say which state is left: the session keeps its connection.
    pub fn state_unknown(&mut self) {
        self.state_found(StateLeft { effect: Effect { settings: true, ..Effect::NONE }, prepared: None });
    }

    /// The session has moved to another pool of the same user and database, whose clients have its present settings.
    /// Its connection belongs to that pool too. Names of statements keep their meaning. The statements are prepared
    /// again when they are next used, because a setting can change the meaning of names.
    pub fn moved(&mut self) {
        (self.last_simple, self.last_parsed) = (None, None);
        for named in self.expected.names.values_mut() {
            let statement = self.env.with_types(&named.statement, &named.statement.types);
            let resolved = named.resolved.as_ref().map(|resolved| Resolved::new(resolved.types.clone()));
            *named = Named { statement, parsed: self.env.next_parse(), resolved, only_here: false };
        }
    }

    /// Whether a read of currval or lastval has a right answer here. It has none if the session's values are on
    /// another connection and no sequence has moved on this one since.
    pub(super) fn can_read_sequences(&self) -> bool {
        let moved = self.holding.as_ref().is_some_and(|holding| holding.held.moved_sequence());
        moved || self.sequences != Sequences::Elsewhere
    }

    /// A unit is over: its cleared state is removed if it has succeeded.
    pub(super) fn unit_over(&mut self) {
        let holding = self.held();
        let failed = std::mem::take(&mut holding.failed);
        let clears = std::mem::replace(&mut holding.clears, Effect::NONE);
        let status = holding.status;
        self.env.unit_answered(status == Status::Idle);
        let holding = self.held();
        if let Some(statement) = holding.earning_credit.take()
            && !failed
        {
            statement.succeeded();
        }
        if !failed && status == Status::Idle {
            let before = self.left;
            self.left = before.without(clears);
            // Without the other state, the session may be able to move to the pool with its settings.
            let may_move = self.left.settings && self.left != before;
            self.held().unproven |= may_move;
            if clears.touches_sequence {
                self.sequences = Sequences::Untouched;
            }
        }
    }
}
