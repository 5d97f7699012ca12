//! What differs between runs of rounds: the progress that is shown, and the report.

use super::plan::Progress;
use super::testbed::Testbed;
use super::totals::Totals;
use hotrow_bench::Error;

/// Sees a run.
pub trait Observer {
    /// The server and its gateways run, before the first round.
    fn begun(&mut self, testbed: &Testbed, totals: &Totals);

    /// A round is under load. It is called about fifty times per second, and the load goes on meanwhile.
    async fn loaded(
        &mut self,
        testbed: &Testbed,
        totals: &Totals,
        progress: &Progress,
        unknown: u64,
    ) -> Result<(), Error>;

    /// The totals have one more round, or a fault. The tables of the round are still there.
    async fn ended(&mut self, testbed: &Testbed, totals: &Totals) -> Result<(), Error>;
}
