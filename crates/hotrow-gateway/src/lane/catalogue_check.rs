//! What a lane's batches rely on in the catalogue, and the messages at their end that hold them to it: a change of the
//! catalogue rolls the batch back. Never decides what becomes of its units.

use std::collections::BTreeMap;

use bytes::{Bytes, BytesMut};
use hotrow_core::classify::{self, Watch};
use hotrow_core::lane::{Batch, LaneKind};
use hotrow_core::limits;
use hotrow_wire::backend;
use hotrow_wire::frontend::{self, Named, Parse, Value, tag};

use super::message::{Envelope, Run};

/// The name of the statement that every batch of writes ends with, and each batch of reads that relies on a table.
const END: &[u8] = b"hotrow_end_of_batch";
/// The name of the statement that compares a table's fingerprint.
const FINGERPRINT: &[u8] = b"hotrow_table_fingerprint";
/// The type of the moment at which the last statement was analysed.
const TIMESTAMPTZ: [u8; 4] = 1184_u32.to_be_bytes();
/// What both statements report when the catalogue is not as expected.
const DIVISION_BY_ZERO: &[u8] = b"22012";
const NO_STATEMENT: &[u8] = b"26000";

/// The tables that a lane's batches rely on.
#[derive(Debug, Default)]
pub struct CatalogueCheck {
    /// By the name that statements have.
    watches: BTreeMap<String, Watch>,
    /// How often the catalogue had changed through this gateway when the tables were taken in.
    epoch: u64,
    /// Counts the sets of tables: each has a last statement of its own.
    generation: u64,
    /// The last statement is prepared for this set.
    prepared: Option<u64>,
    /// When it was analysed, as the server says it: as long as this does not change, neither do the tables.
    analysed: Option<Bytes>,
    /// The mark that the last statement sets.
    mark: Option<String>,
}

/// How a batch ends.
#[derive(Clone, Copy, Debug, Default)]
pub struct BatchEnd {
    /// Tables whose fingerprints are compared before the last statement.
    pub checks: usize,
    /// There is a last statement.
    pub is_there: bool,
    /// Its set of tables.
    generation: u64,
}

/// What an error at the end of a batch means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckFailure {
    /// The tables may have changed: the next batch compares their fingerprints.
    Recheck,
    /// They have changed: what was decided about statements no longer holds.
    Changed,
    /// Neither: the error is about something else.
    Unrelated,
}

impl CatalogueCheck {
    /// On a new connection, which has this mark.
    pub fn with_mark(mark: Option<String>) -> Self {
        CatalogueCheck { mark, ..CatalogueCheck::default() }
    }

    /// Whether batches set a mark.
    pub fn has_mark(&self) -> bool {
        self.mark.is_some()
    }

    /// Puts the end of this batch, and returns it with the number of statements it prepares.
    pub fn put(
        &mut self,
        batch: &Batch<Envelope>,
        kind: LaneKind,
        epoch: u64,
        out: &mut BytesMut,
    ) -> (BatchEnd, usize) {
        self.keep_up_with(epoch);
        let is_needed = self.admit(batch, kind);
        if !is_needed {
            return (BatchEnd::default(), 0);
        }
        let is_new = self.prepared != Some(self.generation);
        if is_new {
            self.analysed = None;
            self.prepared = Some(self.generation);
            let end = classify::end_of_batch(self.watches.values(), self.mark.as_deref());
            let fingerprint = include_str!("../../sql/table_fingerprint.sql");
            for (name, text, types) in [(FINGERPRINT, fingerprint, &[][..]), (END, &end, &TIMESTAMPTZ)] {
                Named { statement: true, name }.put(tag::CLOSE, out);
                Parse { name, text: text.as_bytes(), types }.put(out);
            }
        }
        let mut checks = 0;
        if self.analysed.is_none() {
            for watch in self.watches.values() {
                let values = [watch.name.as_bytes(), watch.fingerprint.as_bytes()];
                frontend::put_bind_text(out, FINGERPRINT, values.into_iter());
                out.extend_from_slice(frontend::EXECUTE);
                checks += 1;
            }
        }
        // The id as text, the moment of analysis as the server has it.
        let analysed = Value { binary: true, bytes: self.analysed.as_deref() };
        frontend::put_bind_values(out, END, &[analysed], &[0, 1, 0, 0]);
        out.extend_from_slice(frontend::EXECUTE);
        (BatchEnd { checks, is_there: true, generation: self.generation }, if is_new { 2 } else { 0 })
    }

    /// Takes in the tables that a batch relies on; whether the batch has to be checked.
    fn admit(&mut self, batch: &Batch<Envelope>, kind: LaneKind) -> bool {
        // The types of parameters that the client has declared can't become others.
        let counts = |run: &&Run| kind == LaneKind::Write || !run.statement.is_typed;
        let runs = || batch.units.iter().flat_map(|unit| unit.payload.unit.runs());
        let watches = || runs().filter(counts).filter_map(|run| run.packing.watch.as_deref());
        let added = watches().filter(|watch| self.watches.get(&watch.name) != Some(*watch)).count();
        if added > 0 {
            if self.watches.len() + added > limits::LANE_TABLES_MAX {
                self.watches.clear(); // those of this batch alone remain, however many they are
            }
            self.watches.extend(watches().map(|watch| (watch.name.clone(), watch.clone())));
            self.generation += 1;
        }
        kind == LaneKind::Write || watches().next().is_some()
    }

    /// If the catalogue has changed through this gateway, the next batch compares the fingerprints of its own tables at
    /// once. Otherwise it would be rolled back to find out, which leaves gaps in sequences.
    fn keep_up_with(&mut self, epoch: u64) {
        if self.epoch != epoch {
            self.epoch = epoch;
            self.watches.clear();
            self.generation += 1;
        }
    }

    /// The Parse of the last statement was not answered: its batch has failed before it.
    pub fn unprepare(&mut self) {
        self.prepared = None;
    }

    /// The last statement of a batch has been answered: all that the batch relies on is as expected. The transaction's
    /// id.
    pub fn passed(&mut self, end: BatchEnd, row: &[u8]) -> Result<Option<u64>, hotrow_wire::Error> {
        let columns = backend::data_row(row)?;
        if let Some(Some(analysed)) = columns.get(1)
            && end.generation == self.generation
            && self.prepared == Some(end.generation)
        {
            self.analysed = Some(Bytes::copy_from_slice(analysed));
        }
        match columns.first() {
            Some(Some(text)) => str::from_utf8(text)
                .ok()
                .and_then(|text| text.parse().ok())
                .map(Some)
                .ok_or(hotrow_wire::Error::Malformed("a transaction's id that is no number")),
            _ => Ok(None),
        }
    }

    /// The end of a batch has failed with this code.
    pub fn failed(&mut self, end: BatchEnd, code: &[u8]) -> CheckFailure {
        let is_checked = end.checks > 0 || self.watches.is_empty();
        self.analysed = None;
        self.prepared = None;
        match code {
            // The last statement may have been prepared in a batch that failed before it came to that.
            NO_STATEMENT => CheckFailure::Recheck,
            DIVISION_BY_ZERO if !is_checked => CheckFailure::Recheck,
            DIVISION_BY_ZERO => {
                self.watches.clear();
                CheckFailure::Changed
            }
            // The mark may have been dropped, or the role may no longer set it: without it the statement does not fail.
            _ if self.mark.take().is_some() => CheckFailure::Recheck,
            _ => {
                self.watches.clear();
                CheckFailure::Unrelated
            }
        }
    }
}
