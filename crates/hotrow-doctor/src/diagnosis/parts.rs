//! The parts of a diagnosis, from which its findings are made.

use crate::diagnosis::blocking::{Blocked, Blocker, Blocking};
use crate::diagnosis::hold::Hold;
use crate::diagnosis::load::Load;
use crate::diagnosis::rows::RowWaits;
use crate::diagnosis::statements::StatementLoads;
use crate::diagnosis::throughput::Throughput;
use crate::diagnosis::workload::Workload;
use crate::recording::Recording;

/// The parts of a diagnosis from which findings are made.
pub struct Parts<'p> {
    pub recording: &'p Recording,
    /// The sessions.
    pub load: &'p Load,
    /// The rows that they wait for.
    pub rows: &'p RowWaits,
    /// The sessions that block others.
    pub blocking: &'p Blocking,
    pub statements: &'p StatementLoads,
    /// Commits, flushes and WAL.
    pub throughput: &'p Throughput,
    /// The shape of the load.
    pub workload: &'p Workload,
    /// The lock of the hottest row.
    pub hold: Option<&'p Hold>,
    /// Values can be shown.
    pub show_keys: bool,
}

impl Parts<'_> {
    /// A blocker of most samples, from the first sample to the last.
    pub fn stuck_blocker(&self) -> Option<(&Blocker, &Blocked)> {
        let (blocker, blocked, share) = self.blocking.longest()?;
        let begun = self.recording.samples.first()?.at_us;
        let lasted = blocked.last_us - blocker.xact_us.unwrap_or(begun);
        let window = (self.load.seconds * 1e6) as i64;
        let is_long = lasted >= 1_000_000.min(window / 2) && blocked.samples >= 3;
        (share >= 0.7 && is_long).then_some((blocker, blocked))
    }
}
