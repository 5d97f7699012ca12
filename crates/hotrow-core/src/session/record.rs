//! Records the state that the next statement may leave on the connection that a session holds.

use hotrow_wire::backend::Status;

use super::environment::Stop;
use super::marks::Mark;
use super::planning::Planning;
use super::{Connection, Environment, Need, Proof, RunOutcome, Sequences, Session, Statement, StatementOf};
use crate::classify::{Alters, Analysis, Effect, Step, Switch};
use crate::pack_mode::PackMode;
use crate::settings::Parsing;

impl<E: Environment> Session<E> {
    /// Records the state that a statement may leave behind. If it must not run, returns the text of an error in its place.
    pub(super) fn record_or_refuse(&mut self, statement: &StatementOf<E>) -> Option<&'static str> {
        match &statement.analysis {
            Analysis::SetWrong(Switch::Pack) => return Some(include_str!("../../sql/wrong_pack.sql")),
            Analysis::SetWrong(Switch::Reads) => return Some(include_str!("../../sql/wrong_reads.sql")),
            _ => {}
        }
        let runs = self.record_effect(statement);
        (!runs).then_some(include_str!("../../sql/no_sequence_values.sql"))
    }

    /// Counts a run on the session's connection.
    fn count_run(&mut self, statement: &StatementOf<E>) {
        if self.is_counted() {
            return;
        }
        statement.count(self.why_passed(statement));
        if self.pack_mode() == PackMode::Shadow && statement.is_work() {
            self.env.statements_shadowed(1, false);
        }
    }

    /// Records the state that a statement may leave behind. False if it must not run, because it would read another
    /// session's sequence values.
    pub(super) fn record_effect(&mut self, statement: &StatementOf<E>) -> bool {
        self.count_run(statement);
        let effect_of_text = self.effect_of(statement);
        let reads_sequence = effect_of_text.needs_sequence_state && !effect_of_text.touches_sequence;
        if reads_sequence && !self.can_read_sequences() {
            return false;
        }
        let known = self.env.proof(statement, self.names_as_pool());
        let (proof, effect) = self.held().marks.judge(statement, effect_of_text, known);
        let changes_settings = !self.keeps_settings(statement)
            && (effect.settings
                || statement.clears().settings && (self.env.has_settings() || self.is_in_transaction()));
        let becomes = self.outcome_here(statement);
        let is_certain = becomes.is_some();
        self.deferred.decline_unless(keeps_writes(&**statement, proof, effect));
        self.add_run(statement, proof.is_clean);
        let changes_channels = effect_of_text.listen || self.may_end_listening(statement);
        let is_lasting = changes_settings || !proof.is_clean;
        let reads = if is_lasting { Parsing::Otherwise } else { Parsing::Locally };
        let parsing = self.may_change_parsing(statement).then_some(reads);
        let removes = statement.may_remove && self.left().pins() && !is_certain;
        let moves_sequence = if proof.is_clean { proof.moves_sequence } else { effect.touches_sequence };
        if moves_sequence {
            self.sequences = Sequences::Here;
        }
        let holding = self.held();
        let marks = &mut holding.marks;
        if changes_channels {
            marks.note(Mark::Channels);
        }
        if statement.may_deallocate {
            marks.note(Mark::Unproven);
        }
        if !proof.is_clean || changes_settings && !is_certain || removes {
            marks.note(Mark::Doubt);
        }
        if let Some(parsing) = parsing {
            marks.note(Mark::Parses(parsing));
        }
        if is_lasting {
            marks.note(Mark::Names(Parsing::Otherwise));
        } else if proof.changes_meaning || effect.changes_meaning() {
            marks.note(Mark::Names(Parsing::Locally));
        }
        holding.becomes = becomes.or(holding.becomes.take());
        if proof.moves_sequence {
            holding.connection.set_moved_sequence();
        }
        if let Analysis::Pass(pass) = &statement.analysis {
            if pass.alters > Alters::Nothing && !statement.is_judged {
                holding.marks.note(Mark::Redefinition);
            }
            holding.alters = holding.alters.max(pass.alters);
            if pass.of_database {
                self.env.leave_unused_databases();
            }
        }
        // The server is asked about settings and channels after the unit.
        let effect = effect.without(Effect {
            settings: true,
            local_settings: true,
            listen: true,
            touches_sequence: true,
            needs_sequence_state: true,
            ..Effect::NONE
        });
        self.held().marks.note(Mark::Left(effect));
        true
    }

    /// Whether a statement may change the channels to which the session listens.
    pub(super) fn changes_channels(&self, statement: &E::Statement) -> bool {
        self.effect_of(statement).listen || self.may_end_listening(statement)
    }

    fn may_end_listening(&self, statement: &E::Statement) -> bool {
        // `left` says whether the session has channels that only this connection reports.
        let listens = self.left().listen || !self.shared_channels().is_empty();
        listens && (statement.may_unlisten || statement.clears().listen)
    }

    /// Whether the server has reported a transaction on the session's connection.
    pub(super) fn is_in_transaction(&self) -> bool {
        self.phase.held().is_some_and(|holding| holding.status != Status::Idle)
    }

    /// Why a statement is run on the session's own connection.
    pub(super) fn why_passed(&self, statement: &E::Statement) -> RunOutcome {
        let in_transaction = self.is_in_transaction();
        if self.alone.is_some() {
            RunOutcome::GivenBack
        } else if statement.is_passed() {
            RunOutcome::NotPackable
        } else if in_transaction {
            RunOutcome::OwnTransaction
        } else if !self.is_as_pool() {
            RunOutcome::Pinned
        } else if self.pack_mode() == PackMode::Off {
            RunOutcome::SwitchedOff
        } else if !statement.has_credit() {
            RunOutcome::NoCredit
        } else if statement.last_verdict().is_none() {
            RunOutcome::Undecided
        } else {
            RunOutcome::LargerUnit
        }
    }

    /// The state that a statement may leave on a held connection.
    pub(super) fn effect_of(&self, statement: &E::Statement) -> Effect {
        match &statement.analysis {
            Analysis::Pass(pass) => pass.effect,
            Analysis::Candidate(_) if !self.names_as_pool() => statement.effect,
            // A statement that may share a connection leaves no state there, whatever its text suggests.
            Analysis::Candidate(_) => match self.env.packing(statement) {
                Some(packing) => Effect { touches_sequence: packing.touches_sequence, ..Effect::NONE },
                None => statement.effect,
            },
            // The gateway follows its own switch, even if the server answers the client.
            Analysis::Set(..)
            | Analysis::SetWrong(_)
            | Analysis::Reset(_)
            | Analysis::Show(_)
            | Analysis::Deallocate(_) => Effect::NONE,
        }
    }

    /// A statement that changes how texts are read comes next. The statements whose texts may mean something else afterwards
    /// are prepared first, if nothing else is under way.
    pub(super) fn before_settings(
        &mut self,
        _: &Planning,
        statement: &StatementOf<E>,
    ) -> Result<(), Stop<E>> {
        let changes = self.may_change_parsing(statement);
        if !self.phase.is_held() || !changes || self.provided.prepared || !self.runs_outside() {
            return Ok(());
        }
        let missing = self.missing_before_settings();
        if missing.is_empty() {
            return Ok(());
        }
        let prepared = self.held().connection.prepared_mut();
        missing.iter().for_each(|missing| prepared.forget(missing.id));
        Err(Stop::Need(Need::Prepared(missing)))
    }

    /// Whether a statement may change how texts are read.
    pub(super) fn may_change_parsing(&self, statement: &StatementOf<E>) -> bool {
        !self.keeps_settings(statement) && self.may_change_reading(statement)
    }

    pub(super) fn may_change_reading(&self, statement: &StatementOf<E>) -> bool {
        statement.changes_parsing || statement.clears().settings && self.env.has_settings()
    }

    /// Whether a read of currval or lastval has a right answer here. It has none if the session's values are on
    /// another connection and no sequence has moved on this one since.
    pub(super) fn can_read_sequences(&self) -> bool {
        let moved = self.phase.held().is_some_and(|holding| holding.connection.moved_sequence());
        moved || self.sequences != Sequences::Elsewhere
    }

    /// One more statement is sent on the connection.
    pub(super) fn add_run(&mut self, statement: &StatementOf<E>, is_clean: bool) {
        self.learn_from(statement);
        let sets = statement.sets().len();
        self.held().marks.note(Mark::Executed { statement: statement.clone(), sets, is_clean });
    }
}

/// Whether the later writes of its transaction do what they would do without this statement.
fn keeps_writes<S: Statement>(statement: &S, proof: Proof, effect: Effect) -> bool {
    let changes_meaning = proof.changes_meaning || effect.changes_meaning();
    let steps = statement.steps();
    let is_savepoint = matches!(&*steps, [Step::Savepoint(_) | Step::Release(_) | Step::RollBackTo(_)]);
    is_savepoint || statement.is_work() && proof.is_clean && !changes_meaning
}
