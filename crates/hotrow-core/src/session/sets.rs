//! SETs that the gateway answers. The server runs a text of SETs once for a pool. From then on it is known which settings it
//! leads to, and the session keeps them or moves to the pool whose clients have them.

use super::ran::Ran;
use super::{Environment, OutcomeOfSets, Parameters, Session, Statement};
use crate::settings::{self, Settings};

impl<E: Environment> Session<E> {
    /// The session had the settings of its pool and nothing has run on its connection but a text of SETs: this has led to
    /// other settings, or to the same.
    pub(super) fn learn_sets(&self, before: &Settings, after: &Settings, speaks_utf8: bool) {
        let ran = self.holding.as_ref().map(|holding| &holding.ran);
        let Some(Ran::SetsOnly(statement)) = ran.filter(|_| self.has_settings_of_pool()) else { return };
        let is_encoding = |name: &&String| *name == settings::CLIENT_ENCODING;
        let others: Vec<_> = statement.sets().iter().filter(|name| !is_encoding(name)).cloned().collect();
        // A server refuses a conversion that is missing. UTF-8 in a session that has it needs none.
        let needs_utf8 = others.len() < statement.sets().len();
        let is_encoded = !needs_utf8 || speaks_utf8 && self.env.speaks_utf8();
        // One text stands for all that have other literals.
        if is_encoded && statement.types.is_empty() && after.differ_only_in(&others, before) {
            statement.learn_sets(match after == before {
                true => OutcomeOfSets::Keeps,
                false => OutcomeOfSets::LeadsTo(after.clone()),
            });
        }
    }

    /// Whether a statement sets settings to the values in force. Within a transaction, an earlier `SET LOCAL` may hide a
    /// value: after the transaction, the setting has it in any case.
    pub(super) fn keeps_settings(&self, statement: &E::Statement) -> bool {
        matches!(statement.outcome_of_sets(), Some(OutcomeOfSets::Keeps)) && self.has_its_outcome(statement)
    }

    /// The settings to which a statement leads, if the session can get them in another pool.
    pub(super) fn leads_to<'s>(&self, statement: &'s E::Statement) -> Option<&'s Settings> {
        let Some(OutcomeOfSets::LeadsTo(to)) = statement.outcome_of_sets() else { return None };
        let is_free = self.holding.is_none() && self.begun.is_none() && !self.left.pins();
        (is_free && self.has_its_outcome(statement) && self.may_move(&self.env.settings(), to)).then_some(to)
    }

    /// The session has entered the pool to which the message's SETs lead, and its client has to be told these parameters. Or
    /// that pool is not open.
    pub fn entered(&mut self, parameters: Option<Parameters>) {
        if parameters.is_some() {
            self.name_anew();
        }
        self.provided.entered = Some(parameters);
    }

    /// Whether its connection has the settings of its pool.
    pub(super) fn has_settings_of_pool(&self) -> bool {
        !self.left.settings && self.own_settings.is_none()
    }

    /// Whether a text of SETs has the outcome in this session that it has in its pool.
    fn has_its_outcome(&self, statement: &E::Statement) -> bool {
        let needs_utf8 = || statement.sets().iter().any(|name| name == settings::CLIENT_ENCODING);
        self.has_settings_of_pool() && (self.env.speaks_utf8() || !needs_utf8())
    }
}
