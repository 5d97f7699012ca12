//! Writes batches on a lane's connection: prepares missing statements, and puts one Sync at the end. Knows exactly
//! which batches the operating system has taken completely.

use std::collections::VecDeque;
use std::io;
use std::time::Instant;

use bytes::BytesMut;
use hotrow_core::key::{Format, Row};
use hotrow_core::lane::{Batch, LaneKind, Unit};
use hotrow_core::session::statement_name;
use hotrow_core::unit::merged;
use hotrow_wire::frontend::{self, Named, Value, tag};

use super::catalogue_check::{BatchEnd, CatalogueCheck};
use super::context::LaneContext;
use super::message::Envelope;
use crate::server::upstream::Upstream;
use crate::statements::{Statement, Statements};

/// The number that stands for the statements of the gateway at a batch's end.
const END: u64 = 0;

/// Bytes and statements that were put on the connection and are not done.
#[derive(Debug, Default)]
pub struct Writer {
    /// Bytes put so far, and bytes that the system has taken.
    put: u64,
    taken: u64,
    /// Where each batch ends.
    ends: VecDeque<(u64, u64)>,
    /// Statements whose ParseComplete is missing, with their batch, in order.
    parses: VecDeque<(u64, u64)>,
    /// Statements to be closed with the next batch.
    closes: Vec<u64>,
    /// When each batch was written.
    since: VecDeque<(u64, Instant)>,
    /// The tables that batches rely on, and the ends of the batches under way.
    pub catalogue_check: CatalogueCheck,
    batch_ends: VecDeque<(u64, BatchEnd)>,
}

impl Writer {
    /// For a new connection, or none: nothing was put on it.
    pub fn reset(&mut self, mark: Option<String>) {
        *self = Writer { catalogue_check: CatalogueCheck::with_mark(mark), ..Writer::default() };
    }

    /// Puts a batch on the connection.
    pub fn put(
        &mut self,
        batch: &Batch<Envelope>,
        kind: LaneKind,
        now: Instant,
        context: &LaneContext,
        upstream: &mut Upstream,
    ) {
        let before = upstream.output.len();
        for statement in self.closes.drain(..) {
            put_close(statement_name(statement).as_bytes(), &mut upstream.output);
        }
        for (key, unit, statement) in &batch.ahead {
            if let Some((ahead, row)) = batch.units[*unit].payload.unit.lock(*statement, *key) {
                let lock = context.statements.ahead(ahead);
                self.prepare(&lock, batch.number, upstream);
                put_lock(&lock.name, &row, &mut upstream.output);
            }
        }
        for call in batch.calls() {
            match &batch.units[call] {
                [unit] if !unit.may_wait => {
                    for run in unit.payload.unit.runs() {
                        self.prepare(&run.statement, batch.number, upstream);
                        upstream.output.extend_from_slice(unit.payload.unit.frames(run));
                    }
                }
                units => self.put_merged(units, &context.statements, batch.number, upstream),
            }
        }
        let (end, parses) =
            self.catalogue_check.put(batch, kind, context.database.catalogue_epoch(), &mut upstream.output);
        self.parses.extend(std::iter::repeat_n((batch.number, END), parses));
        self.batch_ends.push_back((batch.number, end));
        if kind == LaneKind::Write {
            // The Flush brings the answers and the ID before the commit.
            upstream.output.extend_from_slice(frontend::FLUSH);
        }
        upstream.output.extend_from_slice(frontend::SYNC);
        self.put += (upstream.output.len() - before) as u64;
        self.ends.push_back((batch.number, self.put));
        self.since.push_back((batch.number, now));
    }

    fn prepare(&mut self, statement: &Statement, batch: u64, upstream: &mut Upstream) {
        let known = upstream.prepared.has(statement.id)
            || self.parses.iter().any(|(number, id)| *number == batch && *id == statement.id);
        if !known {
            // An earlier Parse whose batch failed may have left the statement there, so it is closed first.
            put_close(&statement.name, &mut upstream.output);
            statement.put_parse(&statement.name, &mut upstream.output);
            self.parses.push_back((batch, statement.id));
        }
    }

    /// One merged call for units of one group.
    fn put_merged(
        &mut self,
        units: &[Unit<Envelope>],
        statements: &Statements,
        batch: u64,
        upstream: &mut Upstream,
    ) {
        let calls = units.iter().filter_map(|unit| {
            let (run, bind) = unit.payload.unit.call()?;
            Some((run.packing.merging.as_ref()?, bind))
        });
        let calls: Vec<_> = calls.collect();
        let Some((merging, _)) = calls.first() else { return };
        let statement = statements.merged(merging);
        self.prepare(&statement, batch, upstream);
        merged::put_call(&statement.name, &calls, &mut upstream.output);
    }

    /// Writes as much as the socket takes.
    pub fn flush(&mut self, upstream: &mut Upstream) -> io::Result<()> {
        let before = upstream.output.len();
        let result = upstream.write.try_drain(&mut upstream.output);
        self.taken += (before - upstream.output.len()) as u64;
        result.map(|_| ())
    }

    /// The next batch that the system has taken completely.
    pub fn written(&mut self) -> Option<u64> {
        let (number, _) = *self.ends.front().filter(|(_, end)| *end <= self.taken)?;
        self.ends.pop_front();
        Some(number)
    }

    /// The earliest Parse was answered.
    pub fn prepared(&mut self, upstream: Option<&mut Upstream>) {
        if let (Some((_, statement)), Some(upstream)) = (self.parses.pop_front(), upstream)
            && statement != END
        {
            self.closes.extend(upstream.prepared.add(statement));
        }
    }

    /// The batch is over: statements that it has not prepared stay unprepared.
    pub fn done(&mut self, number: u64) {
        while self.parses.front().is_some_and(|(batch, _)| *batch <= number) {
            if let Some((_, END)) = self.parses.pop_front() {
                self.catalogue_check.unprepare();
            }
        }
        while self.batch_ends.front().is_some_and(|(batch, _)| *batch <= number) {
            self.batch_ends.pop_front();
        }
    }

    /// How this batch ends.
    pub fn end(&self, number: u64) -> BatchEnd {
        self.batch_ends.iter().find(|(batch, _)| *batch == number).map(|(_, end)| *end).unwrap_or_default()
    }

    /// When the batch was written. Asked once per batch.
    pub fn since(&mut self, number: u64) -> Option<Instant> {
        while let Some((batch, since)) = self.since.pop_front() {
            if batch == number {
                return Some(since);
            }
        }
        None
    }
}

/// Locks a row with the client's own values, in its formats.
fn put_lock(statement: &[u8], row: &Row<'_>, out: &mut BytesMut) {
    let values = row
        .values
        .iter()
        .map(|value| Value { binary: value.format == Format::Binary, bytes: Some(value.bytes) });
    let values: Vec<_> = values.collect();
    frontend::put_bind_values(out, statement, &values, &[]);
    out.extend_from_slice(frontend::EXECUTE);
}

fn put_close(name: &[u8], out: &mut BytesMut) {
    Named { statement: true, name }.put(tag::CLOSE, out);
}
