//! The connection that a session holds, until no state is left on it.

use hotrow_wire::backend::{self, Status};

use super::deferred::Deferred;
use super::environment::Stop;
use super::holding::Holding;
use super::marks::Fate;
use super::planning::Performing;
use super::replies::put_ready;
use super::{Connection, Environment, Need, Sequences, Session, Statement, StatementOf};
use crate::classify::Effect;
use crate::pack_mode::PackMode;

impl<E: Environment> Session<E> {
    /// The session has acquired a connection.
    pub fn connected(&mut self, held: E::Connection) {
        self.reads.suspend_bound();
        self.deliver_all();
        debug_assert!(self.alone.is_some() || self.has_no_units(), "later messages overtake units in lanes");
        self.phase.connect(held, std::mem::take(&mut self.room));
    }

    /// Takes the connection away from the session. It is closed, not reused: the server rolls back an open
    /// transaction.
    pub fn disconnect(&mut self) {
        if self.drop_connection().is_some() {
            self.deferred = Deferred::default();
            self.switches.transaction_over(false, &mut self.reads);
            self.reads.leave_replica();
            self.env.disconnected();
        }
    }

    fn drop_connection(&mut self) -> Option<Holding<E>> {
        self.places.clear();
        self.phase.disconnect()
    }

    /// Whether nothing is under way on a connection that its server closes, and the session loses nothing with it.
    pub(super) fn is_given_back(&self) -> bool {
        let is_shared = !self.shared_channels().is_empty();
        let loses_nothing = |holding: &Holding<E>| {
            holding.status == Status::Idle && holding.marks.fate(is_shared) == Fate::Closed
        };
        self.is_settled() && !self.keeps_off() && self.phase.held().is_some_and(loses_nothing)
    }

    /// The session keeps its connection, so that its statements are passed through.
    fn keeps_off(&self) -> bool {
        self.switches.pack() == PackMode::Off && self.env.pack_mode() >= PackMode::On
    }

    /// After the end of a unit: restores the client's name, and gives the connection back if no state is left.
    pub(super) fn finish_unit(&mut self) -> Result<(), Stop<E>> {
        if self.phase.held().is_some_and(|holding| holding.delayed_ready.is_some()) {
            if self.is_settled() {
                return Err(Stop::Need(Need::Rename));
            }
            self.renamed(); // more is under way already: the next connection gets the name
        }
        let has_ended = self.phase.held_mut().is_some_and(|holding| std::mem::take(&mut holding.unit_ended));
        if !has_ended {
            return Ok(());
        }
        if self.is_settled() {
            self.preparer(&Performing::between_messages()).close_placeholders();
        }
        let is_settled = self.is_settled();
        let keeps_off = self.keeps_off();
        // A statement of a transaction that the server does not know yet could not be described.
        let has_failed = self.begun_status() == Status::Failed;
        let is_shared = !self.shared_channels().is_empty();
        let has_pinned = || self.names.values().any(|named| named.is_pinned);
        if is_settled && self.left().read_here && !has_pinned() {
            self.held().marks.none_read_here();
        }
        let holding = self.held();
        let is_busy = !is_settled || holding.status != Status::Idle;
        let becomes = holding.becomes.take_if(|_| !is_busy);
        if !is_busy {
            self.learn_resets();
        }
        if let Some(settings) = becomes {
            self.held().unit_ended = true;
            self.sets_are_over(settings);
            self.hand_over()?;
            return self.finish_unit();
        }
        if !is_busy && self.may_find_room() {
            self.held().unit_ended = true;
            self.hand_over()?;
        }
        let holding = self.held();
        let reusable = match holding.marks.fate(is_shared) {
            Fate::Asked if !is_busy => {
                self.held().unit_ended = true;
                return Err(Stop::Need(Need::StateLeft));
            }
            fate @ (Fate::Reused | Fate::Closed) if !is_busy && (!keeps_off || has_failed) => {
                fate == Fate::Reused
            }
            _ => {
                holding.connection.kept_for_long();
                holding.unit_ended = has_failed; // it is given back when nothing is under way
                return Ok(());
            }
        };
        if self.sequences == Sequences::Here {
            self.sequences = Sequences::Elsewhere;
        }
        let has_shown_rows = self.expected().has_shown_rows();
        self.reads.resume_bound(has_shown_rows);
        let Some(mut holding) = self.drop_connection() else { return Ok(()) };
        self.room = holding.expected.into_room();
        holding.marks.outdate(holding.connection.prepared_mut());
        Err(Stop::Need(Need::Release { connection: holding.connection, reusable }))
    }

    /// The client's name at login, which the server is told again.
    pub fn first_name(&self) -> &str {
        &self.first_name
    }

    /// The client has its name again: it is told that the unit is over.
    pub fn renamed(&mut self) {
        let Some(status) = self.phase.held_mut().and_then(|holding| holding.delayed_ready.take()) else {
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

    /// The statements that could be are prepared.
    pub fn prepared(&mut self, statements: &[StatementOf<E>]) {
        let parsed = self.env.last_parse();
        let prepared = self.held().connection.prepared_mut();
        statements.iter().for_each(|statement| prepared.parsed(statement.id, parsed));
        self.provided.prepared = true;
    }

    /// A unit is over: its cleared state is removed if it has succeeded.
    pub(super) fn unit_over(&mut self, ends_transaction: bool) {
        let holding = self.held();
        let failed = std::mem::take(&mut holding.failed);
        let clears = std::mem::replace(&mut holding.clears, Effect::NONE);
        let status = holding.status;
        self.env.unit_answered(ends_transaction);
        self.shadow_answered();
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
            let is_of_login = !self.env.has_settings();
            self.held().marks.cleared(clears, is_of_login);
            if clears.touches_sequence {
                self.sequences = Sequences::Untouched;
            }
        }
    }
}
