//! The connection that a session holds, until no state is left on it.

use std::collections::BTreeSet;

use hotrow_wire::backend::{self, Status};

use super::environment::Stop;
use super::handover::Handover;
use super::marks::{Fate, Mark, Marks};
use super::replies::put_ready;
use super::stateless::LearnedReply;
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
    /// The state that the server has found there, until it is handed over.
    pub(super) handover: Option<Handover>,
}

impl<E: Environment> Holding<E> {
    /// Whether so much output waits for the server that the client has to wait too.
    pub(super) fn is_full(&mut self) -> bool {
        self.held.output().len() > limits::UNREAD_BYTES_MAX
    }

    /// A statement of the pool is used.
    pub(super) fn used(&mut self, statement: u64) {
        self.marks.note(Mark::Used(statement));
        self.marks.forget_closed(self.held.prepared());
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
        self.reads.set_floor_aside();
        self.deliver_all();
        self.listening.forget_held();
        self.holding = Some(Holding {
            held,
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
            self.switches.transaction_over(false, &mut self.reads);
            self.reads.leave_replica();
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
        let is_shared = !self.shared_channels().is_empty();
        let reads_here = || self.expected.names.values().any(|named| named.only_here);
        if is_settled && self.left().read_here && !reads_here() {
            self.held().marks.none_read_here();
        }
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
        let reusable = match holding.marks.fate(is_shared) {
            Fate::Asked if !is_busy => {
                self.unit_ended = true;
                return Err(Stop::Need(Need::StateLeft));
            }
            fate @ (Fate::Reused | Fate::Closed) if !is_busy && (!keeps_off || has_failed) => {
                fate == Fate::Reused
            }
            _ => {
                holding.held.kept_for_long();
                self.unit_ended = has_failed; // it is given back when nothing is under way
                return Ok(());
            }
        };
        if self.sequences == Sequences::Here {
            self.sequences = Sequences::Elsewhere;
        }
        self.reads.take_floor_up(self.expected.has_shown_rows());
        let Some(mut holding) = self.drop_connection() else { return Ok(()) };
        holding.marks.outdate(holding.held.prepared_mut());
        Err(Stop::Need(Need::Release { connection: holding.held, reusable }))
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

    /// The state that is left on the connection that the session holds.
    pub(super) fn left(&self) -> Effect {
        self.holding.as_ref().map_or(Effect::NONE, |holding| holding.marks.left())
    }

    /// One more statement is sent on the connection.
    pub(super) fn add_run(&mut self, statement: &StatementOf<E>, is_clean: bool) {
        self.learn_from(statement);
        let sets = statement.sets().len();
        self.held().marks.note(Mark::Ran { statement: statement.clone(), sets, is_clean });
    }

    /// How the server reads texts on the connection that the session holds, as far as the texts of statements show.
    pub(super) fn reading(&self) -> Reading {
        self.holding.as_ref().map_or(Reading::AsPool, |holding| holding.marks.reading())
    }

    /// Whether the names in the next statement mean what they mean in the pool.
    pub(super) fn names_as_pool(&self) -> bool {
        self.holding.as_ref().is_none_or(|holding| holding.marks.names_as_pool())
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
        self.texts.forget();
        self.reads.leave_replica();
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
        let holding = self.held();
        if status == Status::Idle {
            holding.marks.transaction_over();
        }
        if let Some(statement) = holding.earning_credit.take()
            && !failed
        {
            statement.succeeded();
        }
        if !failed && status == Status::Idle {
            let is_of_log_in = !self.env.has_settings();
            self.held().marks.cleared(clears, is_of_log_in);
            if clears.touches_sequence {
                self.sequences = Sequences::Untouched;
            }
        }
    }
}
