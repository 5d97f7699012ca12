//! SETs and RESETs whose outcome is known. The server runs a text of them once for a pool. From then on it is known which
//! settings it leads to: the gateway answers it, and the session keeps its settings or moves to the pool whose clients have
//! them. If that pool is not open, the server runs the text again, but is not asked for the outcome.

use hotrow_wire::backend::Status;

use super::executed::Executed;
use super::{Environment, OutcomeOfSets, Session, Statement, StatementInfo};
use crate::classify::Effect;
use crate::settings::{self, PlainSet, Settings};

/// The settings of a connection that a session holds.
#[derive(Debug)]
pub(super) enum HeldSettings {
    /// Those of the session's pool, exactly as on the pool's other connections.
    AsPool,
    /// These. If they are not exact, the session may also have set others to the values that they have, and they would not
    /// follow the server's configuration.
    Own { settings: Settings, is_exact: bool },
    /// Only the server knows them.
    Unclear,
}

impl<E: Environment> Session<E> {
    /// The session had the settings of its pool and nothing has run on its connection but a text of SETs: this has led to
    /// other settings, or to the same.
    pub(super) fn learn_sets(&self, before: &Settings, after: &Settings, speaks_utf8: bool) {
        let executed = self.phase.held().map(|holding| holding.marks.executed());
        let Some(Executed::SetsOnly(statement)) = executed.filter(|_| self.has_settings_of_pool()) else {
            return;
        };
        // A server refuses a conversion that is missing. UTF-8 in a session that has it needs none.
        let is_encoded = !sets_encoding(statement) || speaks_utf8 && self.env.speaks_utf8();
        let others = statement.sets().iter().filter(|set| !is_encoding(set));
        // One text stands for all that have other literals.
        if is_encoded && statement.types.is_empty() && after.follow(others, before) {
            statement.learn_sets(OutcomeOfSets::new(before, after));
        }
    }

    /// A text of RESETs alone has succeeded on the session's connection, whatever settings that has: it leads from the settings of
    /// the pool to those without the ones that it resets.
    pub(super) fn learn_resets(&self) {
        let Some(Executed::SetsOnly(statement)) = self.phase.held().map(|holding| holding.marks.executed())
        else {
            return;
        };
        if statement.sets().iter().all(|set| set.resets) && statement.outcome_of_sets().is_none() {
            let of_pool = self.env.settings();
            let after = of_pool.led_by(statement.sets(), &Settings::default());
            statement.learn_sets(OutcomeOfSets::new(&of_pool, &after));
        }
    }

    /// The settings that the session's connection has after a statement, if it is a text of SETs whose outcome is known and that
    /// is all that the session has left there.
    pub(super) fn outcome_here(&self, statement: &E::Statement) -> Option<Settings> {
        let holding = self.phase.held()?;
        let outcome = statement.outcome_of_sets()?;
        let is_alone = matches!(holding.marks.executed(), Executed::Nothing)
            && holding.status == Status::Idle
            && !self.has_more_than_settings();
        if !is_alone || !self.shared_channels().is_empty() {
            return None;
        }
        let of_pool = self.env.settings();
        let before = match holding.marks.settings() {
            HeldSettings::AsPool => &of_pool,
            HeldSettings::Own { settings, .. } => settings,
            HeldSettings::Unclear => return None,
        };
        if sets_encoding(statement) || before.contains(settings::CLIENT_ENCODING) {
            return None;
        }
        let outcome = match outcome {
            OutcomeOfSets::Keeps => &of_pool,
            OutcomeOfSets::LeadsTo(settings) => settings,
        };
        Some(before.led_by(statement.sets(), outcome))
    }

    /// Whether a statement sets settings to the values in force. Within a transaction, an earlier `SET LOCAL` may hide a
    /// value: after the transaction, the setting has it in any case. A RESET that the server runs in a transaction can leave the setting as one of the session, if SET LOCAL follows.
    pub(super) fn keeps_settings(&self, statement: &E::Statement) -> bool {
        matches!(statement.outcome_of_sets(), Some(OutcomeOfSets::Keeps))
            && self.has_its_outcome(statement)
            && (statement.sets().iter().all(|set| !set.resets) || self.runs_outside())
    }

    /// Whether the next statement is certain to run outside a transaction, if the server runs it.
    pub(super) fn runs_outside(&self) -> bool {
        let holding = self.phase.held();
        holding.is_none_or(|holding| holding.status == Status::Idle && self.is_settled())
    }

    /// The settings to which a statement leads, if the session can get them in another pool.
    pub(super) fn leads_to<'s>(&self, statement: &'s E::Statement) -> Option<&'s Settings> {
        let Some(OutcomeOfSets::LeadsTo(to)) = statement.outcome_of_sets() else { return None };
        let is_free = !self.phase.is_held() && self.phase.begun().is_none() && !self.left().pins();
        (is_free && self.has_its_outcome(statement) && self.may_move(&self.env.settings(), to)).then_some(to)
    }

    /// Whether the session keeps its connection because of other state than settings.
    pub(super) fn has_more_than_settings(&self) -> bool {
        self.left().without(Effect { settings: true, ..Effect::NONE }).pins()
    }

    /// Whether its connection has the settings of its pool.
    pub(super) fn has_settings_of_pool(&self) -> bool {
        !self.left().settings
    }

    /// Whether a text of SETs has the outcome in this session that it has in its pool.
    fn has_its_outcome(&self, statement: &E::Statement) -> bool {
        self.has_settings_of_pool() && (self.env.speaks_utf8() || !sets_encoding(statement))
    }

    /// Whether the session may move to a pool whose clients have these settings. It may not if a statement that it has
    /// prepared would be read differently there.
    pub(super) fn may_move(&self, from: &Settings, to: &Settings) -> bool {
        let mut named = self.names.values();
        let is_alike = from.parses_as(to);
        named.all(|named| !named.is_pinned && (is_alike || named.statement.parses_alike))
    }
}

impl OutcomeOfSets {
    fn new(before: &Settings, after: &Settings) -> Self {
        if before == after { OutcomeOfSets::Keeps } else { OutcomeOfSets::LeadsTo(after.clone()) }
    }
}

fn is_encoding(set: &PlainSet) -> bool {
    set.name == settings::CLIENT_ENCODING
}

fn sets_encoding<S>(statement: &StatementInfo<S>) -> bool {
    statement.sets().iter().any(is_encoding)
}
