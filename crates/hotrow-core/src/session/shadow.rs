//! Shadow mode: a unit that a lane would run is passed through, and counted. The unit is planned by the same code as for lanes, and
//! that is all. Planning waits for nothing, so the client notices nothing.

use super::statement::RunOutcome;
use super::{Environment, Session, Statement, StatementOf};
use crate::unit::Packed;

/// A unit that is passed through and would run in a lane.
#[derive(Debug)]
pub(super) struct Shadowed {
    /// Statements of it that are not recorded on the connection yet. They are counted already.
    unrecorded: usize,
    /// Answers of the server that end it.
    readies: usize,
}

impl<E: Environment> Session<E> {
    /// A unit is planned that will be passed through. `recorded` is the number of statements that the session records when it
    /// forwards them. A message can be handled twice, but the unit counts once.
    pub(super) fn shadow(&mut self, unit: &Packed<StatementOf<E>>, recorded: usize) {
        if unit.must_run_alone() || std::mem::replace(&mut self.provided.shadowed, true) {
            return;
        }
        let mut statements = 0;
        for run in unit.runs() {
            run.statement.count(RunOutcome::Shadowed);
            statements += 1;
        }
        self.env.statements_shadowed(statements, true);
        self.env.unit_shadowed(unit);
        self.shadowed = Some(Shadowed { unrecorded: recorded, readies: unit.readies() });
    }

    /// Whether the statement that is recorded now is one of a unit that is counted already.
    pub(super) fn is_counted(&mut self) -> bool {
        let shadowed = self.shadowed.as_mut().filter(|shadowed| shadowed.unrecorded > 0);
        shadowed.map(|shadowed| shadowed.unrecorded -= 1).is_some()
    }

    /// The server has answered one more message that ends with ReadyForQuery.
    pub(super) fn shadow_answered(&mut self) {
        if let Some(shadowed) = &mut self.shadowed {
            shadowed.readies -= 1;
            if shadowed.readies == 0 {
                self.shadow_over();
            }
        }
    }

    /// The unit is over, or will not run.
    pub(super) fn shadow_over(&mut self) {
        if self.shadowed.take().is_some() {
            self.env.shadow_over();
        }
    }
}
