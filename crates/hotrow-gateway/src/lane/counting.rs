//! The metrics of a lane. It adds to them once for each batch.

use std::time::Instant;

use hotrow_lane::lane::{Batch, Lane, LaneKind};

use super::Task;
use super::backend::{Backend, Work};
use crate::metrics::{METRICS, microseconds};

/// The lane's share of the numbers of waiting units.
#[derive(Debug, Default)]
pub struct WaitingUnits {
    queued: u64,
    parked: u64,
}

impl WaitingUnits {
    /// Reports the present numbers.
    pub fn report<P>(&mut self, lane: &Lane<P>) {
        self.replace(lane.queued() as u64, lane.parked() as u64);
    }

    fn replace(&mut self, queued: u64, parked: u64) {
        METRICS.queued.replace(self.queued, queued);
        METRICS.parked.replace(self.parked, parked);
        (self.queued, self.parked) = (queued, parked);
    }
}

impl Drop for WaitingUnits {
    fn drop(&mut self) {
        self.replace(0, 0);
    }
}

impl<B: Backend> Task<B> {
    /// Counts a batch that is done. Units that found nothing and wait are not done.
    pub(super) fn count(&mut self, batch: &Batch<B::Work>, now: Instant) {
        let answered = (batch.units.len() - batch.waits.len()) as u64;
        self.totals.batches_done += 1;
        self.totals.units_done += answered;
        METRICS.batches.inc();
        if self.kind == LaneKind::Read {
            METRICS.read_batches.inc();
        }
        let traffic = &self.backend.shared().traffic;
        traffic.batches.inc();
        let (single, metric, own) = match self.kind {
            LaneKind::Write => (&METRICS.packed_microseconds, &METRICS.packed, &traffic.packed),
            LaneKind::Read => (&METRICS.read_microseconds, &METRICS.packed_reads, &traffic.packed_reads),
        };
        metric.add(answered);
        own.add(answered);
        let mut times = (single.tally(), METRICS.merged_microseconds.tally());
        for call in batch.calls() {
            let is_merged = batch.is_merged(&call);
            for place in call.filter(|place| !batch.waits.contains(place)) {
                let time = microseconds(now.saturating_duration_since(batch.units[place].payload.came()));
                if is_merged { times.1.record(time) } else { times.0.record(time) }
            }
        }
        single.add(&times.0);
        METRICS.merged_microseconds.add(&times.1);
        traffic.lane_microseconds.add(times.0.sum + times.1.sum);
        self.hot_keys.count(batch, now);
    }
}
