//! Writes batches on a lane's connection: prepares missing statements, and puts one Sync at the end. Knows exactly
//! which batches the server can commit with the bytes that the operating system has taken.

use std::collections::VecDeque;
use std::io;

use bytes::BytesMut;
use hotrow_connect::upstream::Upstream;
use hotrow_core::key::{Format, Row};
use hotrow_core::session::statement_name;
use hotrow_core::unit::merged;
use hotrow_core::witness::Mark;
use hotrow_lane::lane::{Batch, LaneKind, Unit};
use hotrow_wire::frontend::{self, ObjectName, Parse, Value, tag};

use super::catalog_check::{BatchEnd, CatalogCheck, OwnStatement};
use super::citus;
use super::context::LaneContext;
use super::envelope::Envelope;
use super::left_locks::LeftLocks;
use super::left_state::{LaneState, LeftState};
use crate::statements::{Statement, Statements};

/// A statement that a batch prepares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Prepared {
    /// A client's, by its number.
    Statement(u64),
    /// One of those at the batch's end.
    End(OwnStatement),
    /// The one that compares the session's state.
    State,
    /// Another one of the gateway's own.
    Other,
}

/// Bytes and statements that were put on the connection and are not done.
#[derive(Debug, Default)]
pub struct Writer {
    sent: SentBytes,
    /// Statements whose ParseComplete is missing, with their batch, in order.
    parses: VecDeque<(u64, Prepared)>,
    /// Statements to be closed with the next batch.
    closes: Vec<u64>,
    /// The tables that batches rely on, and the ends of the batches under way.
    pub catalog_check: CatalogCheck,
    batch_ends: VecDeque<(u64, BatchEnd)>,
    /// The target's own statement before those of a batch is prepared.
    pub has_opening: bool,
    pub left_locks: LeftLocks,
    pub left_state: LeftState,
    /// Batches that write have a BEGIN and a COMMIT, also if no shard is known in them.
    needs_block: bool,
}

/// Bytes that were put on the connection, and those that the system has taken.
#[derive(Debug, Default)]
struct SentBytes {
    put: u64,
    taken: u64,
    /// The place of each batch from which the server can commit it.
    commits: VecDeque<(u64, u64)>,
}

impl SentBytes {
    /// A batch of this many bytes was put. Without these first ones the server does not commit it.
    fn put(&mut self, batch: u64, needed: usize, bytes: usize) {
        self.commits.push_back((batch, self.put + needed as u64));
        self.put += bytes as u64;
    }

    /// The next batch that the server can commit with the bytes that the system has taken.
    fn committable(&mut self) -> Option<u64> {
        let (number, _) = *self.commits.front().filter(|(_, place)| *place <= self.taken)?;
        self.commits.pop_front();
        Some(number)
    }
}

impl Writer {
    /// For a new connection, or none: nothing was put on it.
    pub fn reset(&mut self, mark: Option<Mark>, state: Option<LaneState>, needs_block: bool) {
        *self = Writer {
            catalog_check: CatalogCheck::with_mark(mark),
            left_state: LeftState::new(state),
            needs_block,
            ..Writer::default()
        };
    }

    /// Puts a batch on the connection.
    pub fn put(
        &mut self,
        batch: &Batch<Envelope>,
        kind: LaneKind,
        connection: u64,
        context: &LaneContext,
        upstream: &mut Upstream,
    ) {
        let before = upstream.output.len();
        for statement in self.closes.drain(..) {
            put_close(statement_name(statement).as_bytes(), &mut upstream.output);
        }
        let shards = citus::shards(batch);
        let in_block = shards.is_some() || self.needs_block && kind == LaneKind::Write;
        if in_block {
            self.put_command("begin", batch.number, &mut upstream.output);
        }
        let has_opening =
            context.target.put_opening(batch, connection, self.has_opening, &mut upstream.output);
        if has_opening && !std::mem::replace(&mut self.has_opening, true) {
            self.parses.push_back((batch.number, Prepared::Other));
        }
        for (place, (key, unit, statement)) in batch.ahead.iter().enumerate() {
            if let Some((ahead, row)) = batch.units[*unit].payload.unit.lock(*statement, *key) {
                // A batch that has locked a row waits for no other one. An outsider that waits for the batch could have locked it,
                // and the server could find this deadlock before the batch gives way.
                let lock = context.statements.ahead(ahead, place == 0);
                self.prepare(&lock, batch.number, upstream);
                put_lock(&lock.name, &row, &mut upstream.output);
            }
        }
        for call in batch.calls() {
            match &batch.units[call] {
                [unit] if !unit.claimed.may_wait => {
                    for run in unit.payload.unit.runs() {
                        self.prepare(&run.statement, batch.number, upstream);
                        upstream.output.extend_from_slice(unit.payload.unit.frames(run));
                    }
                }
                units => self.put_merged(units, &context.statements, batch.number, upstream),
            }
        }
        let state = self.left_state.put(batch, &mut upstream.output);
        if let Some((_, true)) = state {
            self.parses.push_back((batch.number, Prepared::State));
        }
        let (mut end, parses) =
            self.catalog_check.put(batch, kind, context, shards.as_deref(), &mut upstream.output);
        end.state = state.map(|(check, _)| check);
        end.checks += usize::from(state.is_some());
        (end.in_block, end.openings) = (in_block, usize::from(in_block) + usize::from(has_opening));
        self.parses.extend(parses.into_iter().map(|statement| (batch.number, Prepared::End(statement))));
        self.batch_ends.push_back((batch.number, end));
        if kind == LaneKind::Write {
            // The Flush brings the answers and the ID before the commit.
            upstream.output.extend_from_slice(frontend::FLUSH);
        }
        upstream.output.extend_from_slice(frontend::SYNC);
        // An implicit transaction needs its Sync. A COMMIT runs before the Sync after it has arrived.
        let needed = upstream.output.len() - before;
        if end.in_block {
            // After a failure, this COMMIT rolls back. It is outside of the messages that the server then skips.
            self.put_command("commit", batch.number, &mut upstream.output);
            upstream.output.extend_from_slice(frontend::SYNC);
        }
        self.sent.put(batch.number, needed, upstream.output.len() - before);
    }

    /// Asks for locks of the session, behind the batches that are under way.
    pub fn ask_for_locks(&mut self, upstream: &mut Upstream) {
        let Some((last, _)) = self.batch_ends.back() else { return };
        let before = upstream.output.len();
        self.left_locks.ask(*last, self.catalog_check.mark(), &mut upstream.output);
        self.sent.put += (upstream.output.len() - before) as u64;
    }

    /// BEGIN or COMMIT.
    fn put_command(&mut self, text: &str, batch: u64, out: &mut BytesMut) {
        Parse { name: b"", text: text.as_bytes(), types: &[] }.put(out);
        self.parses.push_back((batch, Prepared::Other));
        frontend::put_bind_text(out, b"", std::iter::empty());
        out.extend_from_slice(frontend::EXECUTE);
    }

    fn prepare(&mut self, statement: &Statement, batch: u64, upstream: &mut Upstream) {
        let known = upstream.prepared.has(statement.id)
            || self.parses.contains(&(batch, Prepared::Statement(statement.id)));
        if !known {
            // An earlier Parse whose batch failed may have left the statement there, so it is closed first.
            put_close(&statement.name, &mut upstream.output);
            statement.put_parse(&statement.name, &mut upstream.output);
            self.parses.push_back((batch, Prepared::Statement(statement.id)));
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
        self.sent.taken += (before - upstream.output.len()) as u64;
        result.map(|_| ())
    }

    /// The next batch that the server can commit, because the system has taken its last bytes.
    pub fn written(&mut self) -> Option<u64> {
        self.sent.committable()
    }

    /// The earliest Parse was answered.
    pub fn prepared(&mut self, upstream: Option<&mut Upstream>) {
        if let (Some((_, Prepared::Statement(statement))), Some(upstream)) =
            (self.parses.pop_front(), upstream)
        {
            self.closes.extend(upstream.prepared.add(statement));
        }
    }

    /// The batch is over: statements that it has not prepared stay unprepared.
    pub fn done(&mut self, number: u64) {
        while self.parses.front().is_some_and(|(batch, _)| *batch <= number) {
            match self.parses.pop_front() {
                Some((_, Prepared::End(statement))) => self.catalog_check.unprepare(statement),
                Some((_, Prepared::State)) => self.left_state.unprepare(),
                _ => {}
            }
        }
        self.catalog_check.done(number);
        while self.batch_ends.front().is_some_and(|(batch, _)| *batch <= number) {
            self.batch_ends.pop_front();
        }
    }

    /// How this batch ends.
    pub fn end(&self, number: u64) -> BatchEnd {
        self.batch_ends.iter().find(|(batch, _)| *batch == number).map(|(_, end)| *end).unwrap_or_default()
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
    ObjectName { statement: true, name }.put(tag::CLOSE, out);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_whose_commit_is_sent_in_part_counts_as_sent() {
        let mut sent = SentBytes::default();
        sent.put(1, 100, 140); // a COMMIT of 40 bytes follows
        sent.put(2, 50, 50);
        sent.taken = 99;
        assert_eq!(sent.committable(), None);
        sent.taken = 100;
        assert_eq!(sent.committable(), Some(1), "the rest of the COMMIT may be taken without its Sync");
        sent.taken = 189;
        assert_eq!(sent.committable(), None);
        sent.taken = 190;
        assert_eq!((sent.committable(), sent.committable()), (Some(2), None));
    }
}
