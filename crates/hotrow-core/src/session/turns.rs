//! A transaction's places in the queues of those that work on the same rows: when its first statement waits, and which
//! rows its later statements come to.

use hotrow_lane::key::Key;
use hotrow_lane::lane::LaneKind;
use hotrow_lane::row_queue::{QueueId, Request};

use super::environment::Stop;
use super::planning::Planning;
use super::{Environment, Need, Place, StatementInfo, StatementOf, Verdict};
use crate::classify::{Analysis, Packing};
use crate::key::{KeyName, ParamValue};
use crate::limits;

/// The places of one transaction. They are given up when they are dropped.
pub(super) struct Places<P> {
    /// Among those that begin with the same statement.
    first_statement: Option<P>,
    /// Among those that work on the same rows.
    rows: Vec<(Key, P)>,
}

impl<P> Default for Places<P> {
    fn default() -> Self {
        Places { first_statement: None, rows: Vec::new() }
    }
}

impl<P> Places<P> {
    /// The transaction is over.
    pub(super) fn clear(&mut self) {
        self.rows.clear();
        self.first_statement = None;
    }

    /// Whether the transaction has no place.
    #[cfg(test)]
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty() && self.first_statement.is_none()
    }

    /// Whether the first statement of the transaction has had its turn.
    pub(super) fn has_begun(&self) -> bool {
        self.first_statement.is_some()
    }

    fn is_at(&self, key: Key) -> bool {
        self.rows.iter().any(|(row, _)| *row == key)
    }
}

impl<P: Place> Places<P> {
    /// The transaction has a place in a queue.
    pub(super) fn placed(&mut self, queue: QueueId, place: P) {
        match queue {
            QueueId::Row(key) => self.rows.push((key, place)),
            QueueId::Alone(_) => {} // the unit has it
            QueueId::FirstStatement(_) => {
                let place = self.first_statement.insert(place);
                if !self.rows.is_empty() {
                    place.found_others(0); // its first statement works on a row
                }
            }
        }
    }

    /// The turn for which the first statement of a transaction waits, with this number and verdict. `is_alone` is whether the
    /// transaction works alone on its row.
    pub(super) fn turn<'p, E: Environment<Place = P>>(
        &self,
        _: &Planning,
        statement: u64,
        verdict: &Verdict,
        is_alone: bool,
        param: impl Fn(u16) -> Option<ParamValue<'p>>,
    ) -> Stop<E> {
        Stop::Need(match row_of(verdict, param) {
            Some((key, name)) if !self.is_at(key) => {
                Need::Turn(Request { queue: QueueId::Row(key), alone: is_alone }, Some(name()))
            }
            _ => Need::Turn(Request { queue: QueueId::FirstStatement(statement), alone: false }, None),
        })
    }

    /// Whether it is recorded which row this statement works on.
    pub(super) fn counts<S>(&self, statement: &StatementInfo<S>) -> bool {
        self.has_begun()
            && self.rows.len() < limits::ROWS_OF_TRANSACTION_MAX
            && matches!(&statement.analysis, Analysis::Candidate(_))
    }

    /// A statement of a transaction goes to the server. If it works on one row, this is recorded.
    pub(super) fn enter_row<'p, E: Environment<Place = P>>(
        &mut self,
        env: &E,
        statement: &StatementOf<E>,
        param: impl Fn(u16) -> Option<ParamValue<'p>>,
    ) {
        let Some(verdict) = env.verdict(statement) else { return };
        let Some((key, name)) = row_of(&verdict, param).filter(|(key, _)| !self.is_at(*key)) else {
            return;
        };
        let (place, others) = env.enter_row(key, name());
        if let Some(place) = &mut self.first_statement {
            place.found_others(others);
        }
        self.rows.push((key, place));
    }
}

/// The one row that a statement changes or locks, and a function that puts the row in words. A list of rows, or the rows of
/// several statements in WITH, have no place among those of one row.
fn row_of<'v, 'p: 'v>(
    verdict: &'v Verdict,
    param: impl Fn(u16) -> Option<ParamValue<'p>>,
) -> Option<(Key, impl FnOnce() -> Box<KeyName>)> {
    let packing: &Packing = match verdict {
        Verdict::Packed(packing) if packing.kind == LaneKind::Write => packing,
        Verdict::Locks(packing) => packing,
        Verdict::Packed(_) | Verdict::Pass => return None,
    };
    let spec = packing.key.as_ref().filter(|_| packing.is_of_one_row())?;
    #[expect(clippy::redundant_closure, reason = "the parameters live longer than the verdict")]
    let row = spec.rows(|index| param(index))?.pop()?;
    Some((row.key, move || Box::new(KeyName::new(&packing.table, spec, &row))))
}
