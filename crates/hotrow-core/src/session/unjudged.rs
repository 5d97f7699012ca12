//! Statements that have run although it is not known yet which state their functions leave. The catalog is queried about
//! them on the connection where they ran, before the session gives it back.

use std::sync::Arc;

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
    pub(super) fn statements(&self) -> &[S] {
        &self.statements
    }

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
    pub(super) fn add(&mut self, statement: &Arc<S>) -> bool {
        let is_known = self.statements.iter().any(|known| Arc::ptr_eq(known, statement));
        if !is_known && self.statements.len() < limits::UNJUDGED_MAX {
            self.statements.push(statement.clone());
            return true;
        }
        is_known
    }
}
