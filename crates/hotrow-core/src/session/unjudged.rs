//! Statements that have run although it is not known yet which state their functions leave. The catalogue is queried about
//! them on the connection where they ran, before the session gives it back.

use std::sync::Arc;

use super::{Environment, Proof, Session, StatementOf};
use crate::classify::Effect;
use crate::limits;

/// The statements that ran on a connection and are not judged.
#[derive(Debug)]
pub(super) struct Unjudged<S> {
    statements: Vec<S>,
    /// The unit under way may have changed what the names of functions mean.
    pub(super) redefines: bool,
}

impl<S> Default for Unjudged<S> {
    fn default() -> Self {
        Unjudged { statements: Vec::new(), redefines: false }
    }
}

impl<S> Unjudged<S> {
    pub(super) fn is_empty(&self) -> bool {
        self.statements.is_empty()
    }

    /// Forgets the statements. Returns whether there were any.
    pub(super) fn forget(&mut self) -> bool {
        !std::mem::take(&mut self.statements).is_empty()
    }
}

impl<S> Unjudged<Arc<S>> {
    /// Notes one more statement. False if there are too many.
    fn add(&mut self, statement: &Arc<S>) -> bool {
        let is_known = self.statements.iter().any(|known| Arc::ptr_eq(known, statement));
        if !is_known && self.statements.len() < limits::UNJUDGED_MAX {
            self.statements.push(statement.clone());
            return true;
        }
        is_known
    }
}

impl<E: Environment> Session<E> {
    /// What is known of the state that a statement leaves, and the state that it may leave according to that and to its text.
    pub(super) fn judge(&mut self, statement: &StatementOf<E>, mut effect: Effect) -> (Proof, Effect) {
        let known = self.env.proof(statement, self.names_as_pool());
        let unjudged = &mut self.held().unjudged;
        if effect.unknown && statement.is_judged && !unjudged.redefines {
            match known {
                Some(proof) => effect = Effect { unknown: false, ..effect }.union(proof.hidden),
                None => effect.unknown = !unjudged.add(statement),
            }
        }
        (known.unwrap_or(Proof::NONE), effect)
    }

    /// The transaction is over. If it has changed functions, it is not known which ones its statements have called.
    pub(super) fn end_of_redefinitions(&mut self) {
        let unjudged = &mut self.held().unjudged;
        if std::mem::take(&mut unjudged.redefines) && unjudged.forget() {
            self.left.unknown = true;
        }
    }

    /// The statements that are to be judged before the server is asked which state is left.
    pub fn unjudged(&self) -> Vec<StatementOf<E>> {
        let holding = self.holding.as_ref();
        holding.map(|holding| holding.unjudged.statements.clone()).unwrap_or_default()
    }

    /// They are judged: they may have left this state although the server does not show it.
    pub fn judged(&mut self, hidden: Effect) {
        self.held().unjudged.forget();
        self.left = self.left.union(hidden.hidden());
    }
}
