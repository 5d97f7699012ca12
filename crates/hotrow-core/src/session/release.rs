//! The connection that a session holds, until no state is left on it.

use std::collections::BTreeSet;

use hotrow_wire::backend::{self, Status};

use super::environment::Stop;
use super::handover::Handover;
use super::ran::Ran;
use super::replies::put_ready;
use super::sets::HeldSettings;
use super::stateless::LearnedReply;
use super::unjudged::Unjudged;
use super::{Connection, Environment, Named, Need, Resolved, Sequences, Session, Statement, StatementOf};
use crate::classify::Effect;
use crate::limits;
use crate::settings::{Reading, Settings};

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
    /// The server closes the connection: it has said so, or the client has sent Terminate.
    pub(super) is_closing: bool,
    /// A statement ran that may have left state: the server is queried before another session gets the
    /// connection.
    pub(super) unproven: bool,
    /// Its settings, after all units that are answered.
    pub(super) settings: HeldSettings,
    /// The settings that it has after the text of SETs under way.
    pub(super) becomes: Option<Settings>,
    /// Statements ran whose proofs are not known yet.
    pub(super) unjudged: Unjudged<StatementOf<E>>,
    /// A statement ran that may have changed the channels to which the session listens.
    pub(super) channels_in_doubt: bool,
    /// The statements that the gateway has prepared again after the client had prepared them.
    pub(super) prepared_anew: BTreeSet<u64>,
    /// How the server reads texts there, compared with the session's other connections.
    pub(super) reading: Reading,
    /// What names mean there, compared with the pool's other connections: `search_path` and the role decide it.
    pub(super) naming: Reading,
    /// The pool's statements that were used while the server read texts otherwise. The server may have read them again.
    pub(super) read_again: BTreeSet<u64>,
    /// What has run there.
    pub(super) ran: Ran<StatementOf<E>>,
    /// The reply to a statement that only clears state.
    pub(super) learns: Option<LearnedReply<E::Statement>>,
    /// The client's name, or all its settings, were reset in this unit.
    pub(super) name_reset: bool,
    /// A ReadyForQuery that the client gets after its name is restored.
    pub(super) delayed_ready: Option<Status>,
    /// The state that the server has found there, until it is handed over.
    pub(super) handover: Option<Handover>,
}

impl<E: Environment> Holding<E> {
    /// Whether so much output waits for the server that the client has to wait too.
    pub(super) fn is_full(&mut self) -> bool {
        self.held.output().len() > limits::UNREAD_BYTES_MAX
    }

    /// A statement of the pool is used. If the server reads texts otherwise, it may have analysed the statement again.
    pub(super) fn used(&mut self, statement: u64) {
        if self.reading != Reading::AsPool {
            self.read_again.insert(statement);
        }
        if self.read_again.len() > limits::CLIENT_STATEMENTS_MAX {
            let prepared = self.held.prepared();
            self.read_again.retain(|statement| prepared.has(*statement));
        }
    }

    /// Something may be left that only the server knows, also settings.
    pub(super) fn doubt(&mut self) {
        (self.unproven, self.settings) = (true, HeldSettings::Unclear);
    }

    /// The settings of the transaction have ended.
    pub(super) fn end_of_local_settings(&mut self) {
        for meaning in [&mut self.reading, &mut self.naming] {
            if *meaning == Reading::Locally {
                *meaning = Reading::AsPool;
            }
        }
    }

    /// The session's state is discarded. The variables of functions in other languages are still there, so no other session
    /// gets the connection.
    fn discard(&mut self, before: Effect) {
        self.must_close |= before.other_language | self.unjudged.forget();
    }

    /// The connection is given back: other sessions prepare these statements again before they use them.
    fn outdate_statements(&mut self) {
        let prepared = self.held.prepared_mut();
        for statement in std::mem::take(&mut self.read_again) {
            prepared.outdate(statement);
            prepared.forget_unnamed();
        }
    }

    /// Whether the server has reset the client's name, and the present name differs from the name at log-in.
    pub(super) fn has_lost_name(&self, first_name: &str) -> bool {
        let held = &self.held;
        self.name_reset && held.name() == held.default_name() && held.name() != first_name
    }
}

impl<E: Environment> Session<E> {
    /// The session has acquired a connection.
    pub fn connected(&mut self, held: E::Connection) {
        self.set_floor_aside();
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
            is_closing: false,
            unproven: false,
            settings: HeldSettings::AsPool,
            becomes: None,
            unjudged: Unjudged::default(),
            channels_in_doubt: false,
            prepared_anew: BTreeSet::new(),
            reading: Reading::AsPool,
            naming: Reading::AsPool,
            read_again: BTreeSet::new(),
            ran: Ran::Nothing,
            learns: None,
            name_reset: false,
            delayed_ready: None,
            handover: None,
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
            self.end_of_switches(false);
            self.leave_replica();
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

    /// Whether the session can end without loss: it is in no transaction.
    pub fn is_idle(&self) -> bool {
        self.is_settled()
            && self.begun.is_none()
            && self.holding.as_ref().is_none_or(|holding| holding.status == Status::Idle)
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
        let keeps_off = !self.switches.pack() && self.env.packs();
        // A statement of a transaction that the server does not know yet could not be described.
        let has_failed = self.begun_status() == Status::Failed;
        if is_settled && self.left.read_here {
            self.left.read_here = self.expected.names.values().any(|named| named.only_here);
        }
        let left = self.left;
        let listens = left.listen || !self.shared_channels().is_empty();
        let holding = self.held();
        let is_busy = !is_settled || holding.status != Status::Idle;
        let becomes = holding.becomes.take_if(|_| !is_busy);
        if !is_busy {
            self.learn_resets();
        }
        if let Some(settings) = becomes {
            self.unit_ended = true;
            self.sets_are_over(settings);
            self.hand_over()?;
            return self.finish_unit();
        }
        if !is_busy && self.may_find_room() {
            self.unit_ended = true;
            self.hand_over()?;
        }
        let holding = self.held();
        // Only the server knows which of the state that it shows is still there. PREPARE counts until DEALLOCATE ALL: without
        // the connection, the session would get back statements that a function has deallocated there.
        let stays = Effect { prepared: left.prepared, ..left.hidden() };
        let asks = !stays.pins() || listens || holding.channels_in_doubt;
        // A connection that only other sessions must not get still shows the settings of this one.
        let is_lost = holding.is_closing && !holding.channels_in_doubt;
        if !is_busy && holding.unproven && !is_lost && asks {
            self.unit_ended = true;
            return Err(Stop::Need(Need::StateLeft));
        }
        if is_busy || left.pins() || keeps_off && !has_failed {
            holding.held.kept_for_long();
            self.unit_ended = has_failed; // it is given back when nothing is under way
            return Ok(());
        }
        if self.sequences == Sequences::Here {
            self.sequences = Sequences::Elsewhere;
        }
        self.take_floor_up();
        let Some(mut holding) = self.drop_connection() else { return Ok(()) };
        holding.outdate_statements();
        Err(Stop::Need(Need::Release {
            connection: holding.held,
            reusable: !holding.must_close && !holding.is_closing,
        }))
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
        let delays = self.delay_ready();
        self.append(|out| {
            if is_new {
                backend::put_parameter_status(out, "application_name", &self.first_name);
            }
            if !delays {
                put_ready(status, out);
            }
        });
        self.env.client_renamed(&self.first_name);
        self.application_name.clone_from(&self.first_name);
    }

    /// The state on the connection that the server does not show.
    pub(super) fn hidden_state(&self) -> Effect {
        Effect { read_here: self.left.read_here, ..self.left.hidden() }
    }

    /// One more statement is sent on the connection.
    pub(super) fn add_run(&mut self, statement: &StatementOf<E>, is_clean: bool) {
        self.learn_from(statement);
        self.held().ran.add(statement.clone(), statement.sets().len(), is_clean);
    }

    /// How the server reads texts on the connection that the session holds, as far as the texts of statements show.
    pub(super) fn reading(&self) -> Reading {
        self.holding.as_ref().map_or(Reading::AsPool, |holding| holding.reading)
    }

    /// Whether the names in the next statement mean what they mean in the pool.
    pub(super) fn names_as_pool(&self) -> bool {
        self.holding.as_ref().is_none_or(|holding| holding.naming == Reading::AsPool)
    }

    /// Whether a statement may change how texts are read.
    pub(super) fn changes_reading(&self, statement: &StatementOf<E>) -> bool {
        !self.keeps_settings(statement) && self.may_change_reading(statement)
    }

    fn may_change_reading(&self, statement: &StatementOf<E>) -> bool {
        statement.rereads || statement.clears().settings && self.env.has_settings()
    }

    /// A statement that changes how texts are read comes next. The statements whose texts may mean something else afterwards
    /// are prepared first, if nothing else is under way.
    pub(super) fn before_settings(&mut self, statement: &StatementOf<E>) -> Result<(), Stop<E>> {
        let changes = self.changes_reading(statement);
        if self.holding.is_none() || !changes || self.provided.prepared || !self.runs_outside() {
            return Ok(());
        }
        let changes_meaning =
            |named: &&Named<E::Statement>| !named.only_here && !named.statement.is_read_alike;
        let named = self.expected.names.values().filter(changes_meaning);
        let missing: Vec<_> = named
            .filter(|named| self.prepared_as(named, false).is_none())
            .map(|named| self.with_known_types(named))
            .collect();
        if missing.is_empty() {
            return Ok(());
        }
        let prepared = self.held().held.prepared_mut();
        missing.iter().for_each(|missing| prepared.forget(missing.id));
        Err(Stop::Need(Need::Prepared(missing)))
    }

    /// The statements that could be are prepared.
    pub fn prepared(&mut self, statements: &[StatementOf<E>]) {
        let parsed = self.env.last_parse();
        let prepared = self.held().held.prepared_mut();
        statements.iter().for_each(|statement| prepared.parsed(statement.id, parsed));
        self.provided.prepared = true;
    }

    /// The session has other settings than before, as the other connections that it takes will have them. It has moved to
    /// another pool of the same user and database, whose clients have these settings, and so has its connection. Names of
    /// statements keep their meaning. The statements are prepared again when they are next used, because a setting can change
    /// the meaning of names.
    pub(super) fn name_anew(&mut self) {
        (self.last_simple, self.last_parsed) = (None, None);
        self.leave_replica();
        for named in self.expected.names.values_mut() {
            let statement = self.env.with_types(&named.statement, &named.statement.types);
            let resolved = named.resolved.as_ref().map(|resolved| Resolved::new(resolved.types.clone()));
            let text = std::mem::take(&mut named.text);
            *named = Named { statement, text, parsed: self.env.next_parse(), resolved, only_here: false };
        }
    }

    /// Whether a read of currval or lastval has a right answer here. It has none if the session's values are on
    /// another connection and no sequence has moved on this one since.
    pub(super) fn can_read_sequences(&self) -> bool {
        let moved = self.holding.as_ref().is_some_and(|holding| holding.held.moved_sequence());
        moved || self.sequences != Sequences::Elsewhere
    }

    /// A unit is over: its cleared state is removed if it has succeeded.
    pub(super) fn unit_over(&mut self, ends_transaction: bool) {
        let holding = self.held();
        let failed = std::mem::take(&mut holding.failed);
        let clears = std::mem::replace(&mut holding.clears, Effect::NONE);
        let status = holding.status;
        self.env.unit_answered(ends_transaction);
        if status == Status::Idle {
            self.end_of_redefinitions();
        }
        let holding = self.held();
        if let Some(statement) = holding.earning_credit.take()
            && !failed
        {
            statement.succeeded();
        }
        if !failed && status == Status::Idle {
            let before = self.left;
            self.left = before.without(clears);
            if clears.other_language {
                self.held().discard(before);
            }
            // Without the other state, the session may be able to move to the pool with its settings.
            let may_move = self.left.settings && self.left != before;
            self.held().unproven |= may_move;
            if clears.settings && !self.env.has_settings() {
                self.held().reading = Reading::AsPool;
            }
            if clears.touches_sequence {
                self.sequences = Sequences::Untouched;
            }
        }
    }
}
