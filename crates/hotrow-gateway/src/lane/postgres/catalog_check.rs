//! The tables that a lane's batches rely on, and the messages at the end of each batch that check them. A change of the
//! catalog rolls the batch back. The lane decides what happens to its units.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use hotrow_connect::asker::TABLE_FINGERPRINT;
use hotrow_core::classify::{self, Watch};
use hotrow_core::limits;
use hotrow_core::witness::Mark;
use hotrow_lane::lane::{Batch, LaneKind};
use hotrow_wire::SqlState;
use hotrow_wire::backend;
use hotrow_wire::frontend::{self, ObjectName, Parse, Value, tag};

use super::context::LaneContext;
use super::envelope::{Envelope, Run};
use super::left_state::StateCheck;
use crate::metrics::METRICS;

/// The name of the statement that compares a table's fingerprint.
const FINGERPRINT: &[u8] = b"hotrow_table_fingerprint";
/// The types of the last statement's parameters: the time of its analysis (`timestamptz`), the connection's number
/// (`int8`), and the shards (`int8[]`).
const TYPES: [u8; 12] = [0, 0, 0x04, 0xa0, 0, 0, 0, 0x14, 0, 0, 0x03, 0xf8];
/// The error of both statements if the catalog has changed.
const DIVISION_BY_ZERO: &[u8] = b"22012";
/// The error if a prepared statement does not exist.
pub const NO_STATEMENT: &[u8] = SqlState::UndefinedPreparedStatement.code().as_bytes();

/// The tables that a lane's batches rely on.
#[derive(Debug, Default)]
pub struct CatalogCheck {
    /// The numbers of the tables by the names that statements use.
    numbers: HashMap<String, usize>,
    /// By number. The first one stands for batches that rely on no table.
    tables: Vec<Table>,
    /// The catalog's epoch in this gateway when the tables were added.
    epoch: u64,
    /// Number of statements that were prepared.
    prepared: u64,
    /// Whether the statement that compares fingerprints is prepared.
    compares: bool,
    /// The last statements that are not answered, in order.
    under_way: VecDeque<UnderWay>,
    /// The mark that a batch sets.
    mark: Option<Mark>,
    /// Whether batches use distributed tables.
    is_distributed: bool,
}

/// A table, with the statement at the end of the batches that rely on it.
#[derive(Debug, Default)]
struct Table {
    watch: Option<Watch>,
    /// The number of its Parse. None if the statement has to be prepared.
    parse: Option<u64>,
    /// When the server analysed the statement. As long as this time does not change, the table has not changed either.
    analysed: Option<Bytes>,
}

/// A statement at a batch's end that is not answered.
#[derive(Debug)]
struct UnderWay {
    batch: u64,
    table: usize,
    parse: Option<u64>,
    /// The table's fingerprint is compared before, or there is none.
    is_compared: bool,
}

/// A statement of the gateway that a batch prepares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OwnStatement {
    /// The one that compares fingerprints.
    Fingerprint,
    /// The last one of batches that rely on the table with this number.
    End(usize),
}

#[derive(Clone, Copy, Debug, Default)]
pub struct BatchEnd {
    /// Number of statements before the last ones that compare the session's state or a table's fingerprint.
    pub checks: usize,
    /// The first of them compares the session's state.
    pub state: Option<StateCheck>,
    /// Number of last statements. The last of them returns the transaction's ID.
    pub tables: usize,
    /// Whether the batch has a BEGIN and a COMMIT of its own.
    pub in_block: bool,
    /// Number of statements of the gateway before the batch's own.
    pub openings: usize,
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

impl CatalogCheck {
    /// For a new connection, which has this mark.
    pub fn with_mark(mark: Option<Mark>) -> Self {
        CatalogCheck { mark, ..CatalogCheck::default() }
    }

    /// The mark that batches set.
    pub fn mark(&self) -> Option<&Mark> {
        self.mark.as_ref()
    }

    /// Puts the end of this batch, which changes these shards. Returns it with the statements that it prepares.
    pub fn put(
        &mut self,
        batch: &Batch<Envelope>,
        kind: LaneKind,
        context: &LaneContext,
        shards: Option<&str>,
        out: &mut BytesMut,
    ) -> (BatchEnd, Vec<OwnStatement>) {
        self.keep_up_with(context.database.catalog_epoch());
        let mut end = BatchEnd::default();
        let mut tables = self.admit(batch, kind, context, shards.is_some());
        if tables.is_empty() && kind == LaneKind::Read {
            return (end, Vec::new());
        }
        if tables.is_empty() {
            tables.push(NO_TABLE);
        }
        let prepared = self.prepare(&tables, out);
        for table in tables.iter().map(|table| &self.tables[*table]).filter(|table| table.analysed.is_none())
        {
            if let Some(watch) = &table.watch {
                let values = [watch.name.as_bytes(), watch.fingerprint.as_bytes()];
                frontend::put_bind_text(out, FINGERPRINT, values.into_iter());
                out.extend_from_slice(frontend::EXECUTE);
                end.checks += 1;
            }
        }
        METRICS.table_comparisons.add(end.checks as u64);
        end.tables = tables.len();
        let base = self.mark.as_ref().map(|mark| mark.base.to_be_bytes());
        for (place, number) in tables.iter().enumerate() {
            let table = &self.tables[*number];
            // The ID as text, the time of analysis in the server's own format. Only the last statement sets the mark.
            let is_last = place + 1 == tables.len();
            // Without a table, nothing depends on the time. The server also analyses the statement anew if a role changes.
            let analysed = table.analysed.as_deref().filter(|_| table.watch.is_some());
            let analysed = Value { binary: true, bytes: analysed };
            let base = base.as_ref().filter(|_| is_last).map(|bytes| &bytes[..]);
            let base = Value { binary: true, bytes: base };
            let changed = Value { binary: false, bytes: Some(shards.unwrap_or("{}").as_bytes()) };
            frontend::put_bind_values(out, &name_of_end(*number), &[analysed, base, changed], &[0, 1, 0, 0]);
            out.extend_from_slice(frontend::EXECUTE);
            self.under_way.push_back(UnderWay {
                batch: batch.number,
                table: *number,
                parse: table.parse,
                is_compared: table.analysed.is_none() || table.watch.is_none(),
            });
        }
        (end, prepared)
    }

    /// Prepares what the end of a batch with these tables lacks.
    fn prepare(&mut self, tables: &[usize], out: &mut BytesMut) -> Vec<OwnStatement> {
        let mut prepared = Vec::new();
        let mut put = |statement, name: &[u8], text: &str, types: &[u8]| {
            ObjectName { statement: true, name }.put(tag::CLOSE, out);
            Parse { name, text: text.as_bytes(), types }.put(out);
            prepared.push(statement);
        };
        for number in tables {
            let table = &mut self.tables[*number];
            if table.parse.is_some() {
                continue;
            }
            self.prepared += 1;
            (table.parse, table.analysed) = (Some(self.prepared), None);
            let mark = self.mark.as_ref().map(Mark::sequence);
            let text = classify::end_of_batch(table.watch.as_ref(), mark, self.is_distributed);
            put(OwnStatement::End(*number), &name_of_end(*number), &text, &TYPES);
            if !std::mem::replace(&mut self.compares, true) {
                put(OwnStatement::Fingerprint, FINGERPRINT, TABLE_FINGERPRINT, &[]);
            }
        }
        prepared
    }

    /// Adds the tables that a batch relies on. Returns their numbers.
    fn admit(
        &mut self,
        batch: &Batch<Envelope>,
        kind: LaneKind,
        context: &LaneContext,
        is_distributed: bool,
    ) -> Vec<usize> {
        if is_distributed && !self.is_distributed {
            self.is_distributed = true;
            self.forget();
        }
        // Parameter types that the client has declared cannot change. A server with a substitute may show an earlier state of
        // the catalog than the one for which the statement was judged.
        let always = kind == LaneKind::Write || context.target.has_substitute();
        let counts = |run: &&Run| always || !run.statement.is_typed;
        let mut runs: Vec<&Run> =
            batch.units.iter().flat_map(|unit| unit.payload.unit.runs()).filter(counts).collect();
        // Runs of one statement rely on the same, and most batches have one statement.
        runs.dedup_by(|run, before| {
            Arc::ptr_eq(&run.packing, &before.packing) && Arc::ptr_eq(&run.statement, &before.statement)
        });
        let mut added = BTreeSet::new();
        for run in &runs {
            context.target.watches(run, &mut |watch| {
                if !self.numbers.contains_key(&watch.name) {
                    added.insert(watch.name.clone());
                }
            });
        }
        if self.tables.len() + added.len() > limits::LANE_TABLES_MAX {
            self.forget(); // this batch's own tables are added next, even if they exceed the limit
        }
        if self.tables.is_empty() {
            self.tables.push(Table::default());
        }
        let mut numbers = Vec::new();
        for run in runs {
            context.target.watches(run, &mut |watch| numbers.push(self.number(watch, &numbers)));
        }
        numbers.sort_unstable();
        numbers.dedup();
        numbers
    }

    /// The number of a table. It is prepared anew if statements of this name rely on another state than before. If a run of the same
    /// batch relies on that other state, both are checked, and one of the checks fails: that run was judged by another
    /// definition. `of_batch` are the numbers of the runs before this one.
    fn number(&mut self, watch: &Watch, of_batch: &[usize]) -> usize {
        let is_free =
            |number: &usize| self.tables[*number].watch.as_ref() == Some(watch) || !of_batch.contains(number);
        let number = match self.numbers.get(&watch.name).copied().filter(is_free) {
            Some(number) => number,
            None => {
                self.numbers.insert(watch.name.clone(), self.tables.len());
                self.tables.push(Table::default());
                self.tables.len() - 1
            }
        };
        if self.tables[number].watch.as_ref() != Some(watch) {
            self.tables[number] = Table { watch: Some(watch.clone()), ..Table::default() };
        }
        number
    }

    /// If the catalog has changed through this gateway, the next batch compares the fingerprints of its own tables at
    /// once. Otherwise the check would roll it back first, and a rollback leaves gaps in sequences.
    fn keep_up_with(&mut self, epoch: u64) {
        if self.epoch != epoch {
            self.epoch = epoch;
            self.forget();
        }
    }

    fn forget(&mut self) {
        self.numbers.clear();
        self.tables.clear();
    }

    /// The Parse of this statement was not answered, because its batch failed before it.
    pub fn unprepare(&mut self, statement: OwnStatement) {
        match statement {
            OwnStatement::Fingerprint => self.compares = false,
            OwnStatement::End(number) => {
                if let Some(table) = self.tables.get_mut(number) {
                    (table.parse, table.analysed) = (None, None);
                }
            }
        }
    }

    /// A last statement of a batch was answered, so its table is as expected. Returns the transaction's ID.
    pub fn passed(&mut self, row: &[u8]) -> Result<Option<u64>, hotrow_wire::Error> {
        let columns = backend::data_row(row)?;
        if let (Some(under_way), Some(Some(analysed))) = (self.under_way.pop_front(), columns.get(1))
            && let Some(table) = self.tables.get_mut(under_way.table)
            && table.parse == under_way.parse
        {
            table.analysed = Some(Bytes::copy_from_slice(analysed));
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

    /// A statement at the end of this batch has failed. `is_comparison` is whether it compares a fingerprint.
    pub fn failed(&mut self, batch: u64, is_comparison: bool, code: &[u8]) -> CheckFailure {
        let of_batch = || self.under_way.iter().filter(|under_way| under_way.batch == batch);
        let is_compared = is_comparison || of_batch().next().is_none_or(|under_way| under_way.is_compared);
        let failed: Vec<usize> = of_batch().map(|under_way| under_way.table).collect();
        self.compares = false;
        for number in failed {
            self.unprepare(OwnStatement::End(number));
        }
        match code {
            // The batch that was to prepare the statement may have failed before it.
            NO_STATEMENT => CheckFailure::Recheck,
            DIVISION_BY_ZERO if !is_compared => CheckFailure::Recheck,
            DIVISION_BY_ZERO => {
                self.forget();
                CheckFailure::Changed
            }
            // The mark may have been dropped, or the role can no longer set it. Without the mark the statement does not
            // fail.
            _ if self.mark.take().is_some() => {
                self.forget();
                CheckFailure::Recheck
            }
            _ => {
                self.forget();
                CheckFailure::Unrelated
            }
        }
    }

    /// The batch is over.
    pub fn done(&mut self, batch: u64) {
        while self.under_way.front().is_some_and(|under_way| under_way.batch <= batch) {
            self.under_way.pop_front();
        }
    }
}

/// The number of the statement for batches that rely on no table.
const NO_TABLE: usize = 0;

/// The name of the last statement of each batch of writes that relies on this table, and of each batch of reads that does.
fn name_of_end(table: usize) -> Vec<u8> {
    format!("hotrow_end_of_batch_{table}").into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_definition_on_which_a_batch_relies_has_a_check() {
        let watch = |fingerprint: &str| Watch {
            name: "t".to_owned(),
            oid: 1,
            fingerprint: fingerprint.to_owned(),
            trigger_functions: Vec::new(),
            parts: Vec::new(),
        };
        let mut check = CatalogCheck { tables: vec![Table::default()], ..CatalogCheck::default() };
        let mut batch = |fingerprints: &[&str]| {
            let mut numbers = Vec::new();
            for one in fingerprints {
                let number = check.number(&watch(one), &numbers);
                numbers.push(number);
            }
            numbers.iter().map(|number| check.tables[*number].watch.clone().unwrap().fingerprint).collect()
        };
        for fingerprints in [&["old", "old"][..], &["old", "new"], &["new", "old", "new"], &["new"]] {
            let checked: Vec<String> = batch(fingerprints);
            assert_eq!(checked, fingerprints, "each run is checked by its own definition");
        }
    }
}
