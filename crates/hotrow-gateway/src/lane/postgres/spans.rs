//! The spans of a lane's batches that are under way, if batches are traced.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use hotrow_core::limits;
use hotrow_core::traceparent::SpanContext;
use hotrow_lane::lane::{Batch, LaneKind, Unit};

use super::context::LaneContext;
use super::envelope::Envelope;
use crate::lane::snapshot::Place;
use crate::traces::{BatchOutcome, BatchSpan, TracedLane, Traces};

/// The spans of batches under way, in the order in which the batches were put on the connection.
#[derive(Default)]
pub struct OpenSpans {
    /// Where spans go. None if batches are not traced.
    to: Option<(Traces, Arc<TracedLane>)>,
    open: VecDeque<OpenSpan>,
}

struct OpenSpan {
    batch: u64,
    since: Instant,
    span: BatchSpan,
}

impl OpenSpans {
    pub fn new(context: &LaneContext, kind: LaneKind, index: usize) -> Self {
        let to = context.traces.clone().map(|traces| {
            let Place { node, replica, .. } = context.target.place();
            let kind = if kind == LaneKind::Write { "write" } else { "read" };
            (traces, Arc::new(TracedLane { pool: context.describe(), kind, index, node, replica }))
        });
        OpenSpans { to, open: VecDeque::new() }
    }

    /// A batch is put on the connection. It has a span if one of its units is part of a client's span.
    pub fn begin(&mut self, batch: &Batch<Envelope>) {
        let Some((_, lane)) = &self.to else { return };
        let (links, dropped_links) = linked(parents(&batch.units));
        if links.is_empty() {
            return;
        }
        let span = BatchSpan {
            lane: lane.clone(),
            began: SystemTime::now(),
            took: Duration::ZERO,
            units: batch.units.len(),
            statements: batch.units.iter().map(|unit| usize::from(unit.claimed.statements)).sum(),
            outcome: BatchOutcome::RolledBack,
            links,
            dropped_links,
        };
        self.open.push_back(OpenSpan { batch: batch.number, since: Instant::now(), span });
    }

    /// The batch with this number is committed.
    pub fn committed(&mut self, batch: u64) {
        if let Some(place) = self.open.iter().position(|open| open.batch == batch) {
            self.end(place, BatchOutcome::Committed);
        }
    }

    /// The outcome of the batch with these units is unknown.
    pub fn unknown(&mut self, units: &[Unit<Envelope>]) {
        let has_unit = |open: &OpenSpan| parents(units).any(|parent| open.span.links.contains(&parent));
        if let Some(place) = self.open.iter().position(has_unit) {
            self.end(place, BatchOutcome::Unknown);
        }
    }

    /// All other batches than these are over, and left nothing behind.
    pub fn keep(&mut self, is_under_way: impl Fn(u64) -> bool) {
        while let Some(place) = self.open.iter().position(|open| !is_under_way(open.batch)) {
            self.end(place, BatchOutcome::RolledBack);
        }
    }

    fn end(&mut self, place: usize, outcome: BatchOutcome) {
        if let (Some(OpenSpan { since, span, .. }), Some((traces, _))) = (self.open.remove(place), &self.to) {
            traces.put(BatchSpan { took: since.elapsed(), outcome, ..span });
        }
    }
}

/// The clients' spans that these units are part of.
fn parents(units: &[Unit<Envelope>]) -> impl Iterator<Item = SpanContext> {
    units.iter().filter_map(|unit| unit.payload.unit.parent.as_deref().copied())
}

/// The spans for which there is room in a batch's span, and the number of the others.
fn linked(mut parents: impl Iterator<Item = SpanContext>) -> (Vec<SpanContext>, usize) {
    let links = parents.by_ref().take(limits::SPAN_LINKS_MAX).collect();
    (links, parents.count())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_beyond_the_limit_are_counted() {
        let numbers = |count: usize| {
            let parents = (0..count).map(|_| SpanContext { trace_id: [1; 16], span_id: [1; 8] });
            let (links, dropped) = linked(parents);
            (links.len(), dropped)
        };
        let all = limits::SPAN_LINKS_MAX;
        assert_eq!([0, all, all + 3].map(numbers), [(0, 0), (all, 0), (all, 3)]);
    }
}
