//! The tables that a lane's batches rely on, and the messages at the end of each batch that check them. A change of the
//! catalogue rolls the batch back. The lane decides what happens to its units.

use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use hotrow_core::classify::{self, Watch};
use hotrow_core::limits;
use hotrow_core::witness::Mark;
use hotrow_lane::lane::{Batch, LaneKind};
use hotrow_wire::SqlState;
use hotrow_wire::backend;
use hotrow_wire::frontend::{self, ObjectName, Parse, Value, tag};

use super::context::LaneContext;
use super::envelope::{Envelope, Run};

/// The name of the last statement of every batch of writes, and of each batch of reads that relies on a table.
const END: &[u8] = b"hotrow_end_of_batch";
/// The name of the statement that compares a table's fingerprint.
const FINGERPRINT: &[u8] = b"hotrow_table_fingerprint";
/// The types of the last statement's parameters: the time of its analysis (`timestamptz`), the connection's number
/// (`int8`), and the shards (`int8[]`).
const TYPES: [u8; 12] = [0, 0, 0x04, 0xa0, 0, 0, 0, 0x14, 0, 0, 0x03, 0xf8];
/// The error of both statements if the catalogue has changed.
const DIVISION_BY_ZERO: &[u8] = b"22012";
/// The error if a prepared statement does not exist.
pub const NO_STATEMENT: &[u8] = SqlState::UndefinedPreparedStatement.code().as_bytes();

/// The tables that a lane's batches rely on.
#[derive(Debug, Default)]
pub struct CatalogueCheck {
    /// By the name that statements use.
    watches: BTreeMap<String, Watch>,
    /// The catalogue's epoch in this gateway when the tables were added.
    epoch: u64,
    /// Number of the set of tables. Each set has its own last statement.
    generation: u64,
    /// The set for which the last statement is prepared.
    prepared: Option<u64>,
    /// When the server analysed the last statement. As long as this time does not change, the tables have not changed
    /// either.
    analysed: Option<Bytes>,
    /// The mark that the last statement sets.
    mark: Option<Mark>,
    /// Whether batches use distributed tables.
    is_distributed: bool,
}

/// A table as a run relies on it: on the pool's server, or on a node of a distributed database.
enum Relied<'r> {
    Own(&'r Watch),
    Node(Arc<Watch>),
}

impl Deref for Relied<'_> {
    type Target = Watch;

    fn deref(&self) -> &Watch {
        match self {
            Relied::Own(watch) => watch,
            Relied::Node(watch) => watch,
        }
    }
}

impl<'r> Relied<'r> {
    /// The tables of a run. Those of statements with WITH are on the pool's server.
    fn of(run: &'r Run, node: Option<i32>) -> impl Iterator<Item = Self> {
        let there = node.and_then(|node| run.statement.watch_at(node)).map(Relied::Node);
        let parts = run.packing.parts().filter(move |_| node.is_none());
        parts.filter_map(|part| part.watch.as_deref().map(Relied::Own)).chain(there)
    }
}

#[derive(Clone, Copy, Debug, Default)]
pub struct BatchEnd {
    /// Number of tables whose fingerprints are compared before the last statement.
    pub checks: usize,
    /// Whether there is a last statement.
    pub is_there: bool,
    /// Whether the batch has a BEGIN and a COMMIT of its own.
    pub in_block: bool,
    /// Whether it begins with a check of what the replica shows.
    pub on_replica: bool,
    /// Its set of tables.
    generation: u64,
}

/// The meaning of an error at the end of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckFailure {
    /// The tables may have changed. The next batch compares their fingerprints.
    Recheck,
    /// The tables have changed. Decisions about their statements are no longer valid.
    Changed,
    /// The error is about something else.
    Unrelated,
}

impl CatalogueCheck {
    /// For a new connection, which has this mark.
    pub fn with_mark(mark: Option<Mark>) -> Self {
        CatalogueCheck { mark, ..CatalogueCheck::default() }
    }

    /// The mark that batches set.
    pub fn mark(&self) -> Option<&Mark> {
        self.mark.as_ref()
    }

    /// Puts the end of this batch, which changes these shards. Returns it with the number of statements that it prepares.
    pub fn put(
        &mut self,
        batch: &Batch<Envelope>,
        kind: LaneKind,
        context: &LaneContext,
        shards: Option<&str>,
        out: &mut BytesMut,
    ) -> (BatchEnd, usize) {
        self.keep_up_with(context.database.catalogue_epoch());
        let on_replica = context.replica.is_some();
        let is_needed = self.admit(batch, kind, context, shards.is_some());
        if !is_needed {
            return (BatchEnd { on_replica, ..BatchEnd::default() }, 0);
        }
        let is_new = self.prepared != Some(self.generation);
        if is_new {
            self.analysed = None;
            self.prepared = Some(self.generation);
            let mark = self.mark.as_ref().map(Mark::sequence);
            let end = classify::end_of_batch(self.watches.values(), mark, self.is_distributed);
            let fingerprint = include_str!("../../../sql/table_fingerprint.sql");
            for (name, text, types) in [(FINGERPRINT, fingerprint, &[][..]), (END, &end, &TYPES[..])] {
                ObjectName { statement: true, name }.put(tag::CLOSE, out);
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
        // The ID as text, the time of analysis in the server's own format.
        let analysed = Value { binary: true, bytes: self.analysed.as_deref() };
        let base = self.mark.as_ref().map(|mark| mark.base.to_be_bytes());
        let base = Value { binary: true, bytes: base.as_ref().map(|bytes| &bytes[..]) };
        let changed = Value { binary: false, bytes: Some(shards.unwrap_or("{}").as_bytes()) };
        frontend::put_bind_values(out, END, &[analysed, base, changed], &[0, 1, 0, 0]);
        out.extend_from_slice(frontend::EXECUTE);
        (
            BatchEnd {
                checks,
                is_there: true,
                on_replica,
                generation: self.generation,
                ..BatchEnd::default()
            },
            if is_new { 2 } else { 0 },
        )
    }

    /// Adds the tables that a batch relies on. Returns whether the batch has to be checked.
    fn admit(
        &mut self,
        batch: &Batch<Envelope>,
        kind: LaneKind,
        context: &LaneContext,
        is_distributed: bool,
    ) -> bool {
        if is_distributed && !self.is_distributed {
            self.is_distributed = true;
            self.generation += 1;
        }
        // Parameter types that the client has declared cannot change. A replica may show an earlier state of the catalogue
        // than the one for which the statement was judged.
        let always = kind == LaneKind::Write || context.replica.is_some();
        let counts = |run: &&Run| always || !run.statement.is_typed;
        let runs = || batch.units.iter().flat_map(|unit| unit.payload.unit.runs());
        let watches = || runs().filter(counts).flat_map(|run| Relied::of(run, context.node));
        let added = watches().filter(|watch| self.watches.get(&watch.name) != Some(&**watch)).count();
        if added > 0 {
            if self.watches.len() + added > limits::LANE_TABLES_MAX {
                self.watches.clear(); // this batch's own tables are added next, even if they exceed the limit
            }
            self.watches.extend(watches().map(|watch| (watch.name.clone(), Watch::clone(&watch))));
            self.generation += 1;
        }
        kind == LaneKind::Write || watches().next().is_some()
    }

    /// If the catalogue has changed through this gateway, the next batch compares the fingerprints of its own tables at
    /// once. Otherwise the check would roll it back first, and a rollback leaves gaps in sequences.
    fn keep_up_with(&mut self, epoch: u64) {
        if self.epoch != epoch {
            self.epoch = epoch;
            self.watches.clear();
            self.generation += 1;
        }
    }

    /// The Parse of the last statement was not answered, because its batch failed before it.
    pub fn unprepare(&mut self) {
        self.prepared = None;
    }

    /// The last statement of a batch was answered, so the tables are as expected. Returns the transaction's ID.
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
                .ok_or(hotrow_wire::Error::Malformed("a transaction's ID that is not a number")),
            _ => Ok(None),
        }
    }

    pub fn failed(&mut self, end: BatchEnd, code: &[u8]) -> CheckFailure {
        let is_checked = end.checks > 0 || self.watches.is_empty();
        self.analysed = None;
        self.prepared = None;
        match code {
            // The batch that was to prepare the last statement may have failed before it.
            NO_STATEMENT => CheckFailure::Recheck,
            DIVISION_BY_ZERO if !is_checked => CheckFailure::Recheck,
            DIVISION_BY_ZERO => {
                self.watches.clear();
                CheckFailure::Changed
            }
            // The mark may have been dropped, or the role can no longer set it. Without the mark the statement does not
            // fail.
            _ if self.mark.take().is_some() => CheckFailure::Recheck,
            _ => {
                self.watches.clear();
                CheckFailure::Unrelated
            }
        }
    }
}

/// The shards that a batch changes, each once, as an array in text format. None if it changes none.
pub fn shards(batch: &Batch<Envelope>) -> Option<String> {
    let mut shards: Vec<i64> =
        batch.units.iter().flat_map(|unit| unit.payload.unit.shards.iter().copied()).collect();
    shards.sort_unstable();
    shards.dedup();
    let numbers: Vec<String> = shards.iter().map(ToString::to_string).collect();
    (!numbers.is_empty()).then(|| format!("{{{}}}", numbers.join(",")))
}
