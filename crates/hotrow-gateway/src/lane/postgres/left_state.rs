//! Calls of functions of which only a pack rule says that they leave nothing in the session. A batch with such calls compares
//! the session's state with that at login before it commits. If it differs, nothing of the batch is committed.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use hotrow_connect::upstream::{Error, Upstream};
use hotrow_core::limits;
use hotrow_core::normalise::without_comments;
use hotrow_lane::lane::Batch;
use hotrow_wire::frontend::{self, ObjectName, Parse, tag};

use super::envelope::Envelope;
use crate::statements::Statement;

/// The state as one text. The file describes its parameter.
const STATE: &str = include_str!("../../../sql/lane_state.sql");
/// The name of the statement that compares the state.
const NAME: &[u8] = b"hotrow_lane_state";
/// The types of its parameters: `bool`, `text`.
const TYPES: [u8; 8] = [0, 0, 0, 16, 0, 0, 0, 25];

/// The state of a lane's session at login.
#[derive(Clone, Debug)]
pub struct LaneState {
    /// The settings that decide what statements mean.
    quick: Bytes,
    /// All settings that the session has made.
    full: Bytes,
}

impl LaneState {
    /// Asks for it.
    pub async fn ask(upstream: &mut Upstream) -> Result<Option<Self>, Error> {
        let both = format!(
            "select ({}) from pg_catalog.unnest('{{f,t}}'::pg_catalog.bool[]) a (every)",
            without_comments(STATE).replace("$1", "a.every")
        );
        let rows = upstream.query_if_allowed(&both, &[]).await?.unwrap_or_default();
        let mut texts = rows.into_iter().map(|row| Some(Bytes::from(row.into_iter().next()??.into_bytes())));
        let (quick, full) = (texts.next().flatten(), texts.next().flatten());
        Ok(quick.zip(full).map(|(quick, full)| LaneState { quick, full }))
    }
}

/// What is compared at the end of a batch with such calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StateCheck {
    /// The settings that decide what statements mean, and the role.
    Quick,
    /// All settings. After the batch, the session's advisory locks.
    Full,
}

/// The checks of a lane's connection.
#[derive(Debug, Default)]
pub struct LeftState {
    /// None if the server has not told it.
    expected: Option<LaneState>,
    is_prepared: bool,
    /// Batches with such calls so far.
    batches: u64,
    /// Statements that were run since the advisory locks were last asked for.
    suspects: Vec<Arc<Statement>>,
}

impl LeftState {
    /// For a new connection.
    pub fn new(expected: Option<LaneState>) -> Self {
        LeftState { expected, ..LeftState::default() }
    }

    /// Puts the comparison at the end of a batch, if it has such calls. Returns how it is checked, and whether the statement is
    /// prepared with it.
    pub fn put(&mut self, batch: &Batch<Envelope>, out: &mut BytesMut) -> Option<(StateCheck, bool)> {
        let called = declared(batch).count();
        if called == 0 {
            return None;
        }
        let first = self.batches < limits::STATE_CHECKS_FIRST;
        let is_full = first || self.batches.is_multiple_of(limits::STATE_CHECK_EVERY);
        self.batches += 1;
        let prepares = !std::mem::replace(&mut self.is_prepared, true);
        if prepares {
            ObjectName { statement: true, name: NAME }.put(tag::CLOSE, out);
            // Without the operator of the search_path.
            let text = format!(
                "select 1 operator(pg_catalog./) (({STATE}) operator(pg_catalog.=) $2)::pg_catalog.int4"
            );
            Parse { name: NAME, text: text.as_bytes(), types: &TYPES }.put(out);
        }
        // If the state at login is not known, the comparison fails.
        let expected = self.expected.as_ref().map(|state| if is_full { &state.full } else { &state.quick });
        let all = if is_full { &b"t"[..] } else { b"f" };
        frontend::put_bind_text(out, NAME, [all, expected.map_or(b"", |text| &text[..])].into_iter());
        out.extend_from_slice(frontend::EXECUTE);
        for statement in declared(batch) {
            if !self.suspects.iter().any(|known| known.id == statement.id) {
                self.suspects.push(statement.clone());
            }
        }
        Some((if is_full { StateCheck::Full } else { StateCheck::Quick }, prepares))
    }

    /// The Parse of the statement was not answered, or the server has dropped it.
    pub fn unprepare(&mut self) {
        self.is_prepared = false;
    }

    /// The advisory locks are as at login.
    pub fn clear_suspects(&mut self) {
        self.suspects.clear();
    }

    /// One of the statements of this batch has left state, or without a batch, one of those since the advisory locks were last
    /// asked for. If there is one only, it is no longer packed. Of several it is not known which one it was: all of them are
    /// passed through for a while.
    pub fn exclude(&mut self, batch: Option<&Batch<Envelope>>) {
        let mut suspects = std::mem::take(&mut self.suspects);
        if let Some(batch) = batch {
            let is_in_batch = |id| declared(batch).any(|statement| statement.id == id);
            suspects.retain(|statement| is_in_batch(statement.id));
        }
        let shapes: Vec<_> = suspects.iter().map(|one| one.shown(limits::SHOWN_SHAPE_CHARS_MAX)).collect();
        if !shapes.is_empty() {
            tracing::warn!(
                ?shapes,
                "a function in one of these statements has left state in a lane's session, although its pack rule says that it \
                 does not: they are passed through, if there is one only from now on"
            );
        }
        match suspects.as_slice() {
            [culprit] => culprit.record.exclude(),
            several => several.iter().for_each(|statement| statement.record.pass_for_long()),
        }
    }
}

/// The statements of a batch with such calls.
fn declared(batch: &Batch<Envelope>) -> impl Iterator<Item = &Arc<Statement>> {
    let runs = batch.units.iter().flat_map(|unit| unit.payload.unit.runs());
    runs.filter(|run| run.packing.is_declared).map(|run| &run.statement)
}
