//! The server's cost for a load: measured by the benchmark on its own server, or counted by the server of the load.

use crate::error::Error;
use crate::load::Run;
use crate::testbed::{Running, Testbed};
use crate::watch::{Counted, ServerWork, Watch};

/// A measurement that has begun.
pub enum Cost {
    /// Nothing is measured.
    Nothing,
    /// The benchmark's own server.
    Watched(Watch),
    /// A server of the load.
    Counted(Counted),
}

impl Cost {
    /// Begins, if the technique is about its cost.
    pub async fn start(testbed: &Testbed, run: Run, other: &Running) -> Result<Self, Error> {
        if !run.technique.is_watched() {
            return Ok(Cost::Nothing);
        }
        match counted(other).await? {
            Some(counted) => Ok(Cost::Counted(counted)),
            None => Ok(Cost::Watched(Watch::start(testbed.server()).await?)),
        }
    }

    /// The cost for each of this number of units. The load has just ended.
    pub async fn finish(self, other: &Running, units: u64) -> Result<Option<ServerWork>, Error> {
        match self {
            Cost::Nothing => Ok(None),
            Cost::Watched(watch) => Ok(Some(watch.finish(units).await?)),
            Cost::Counted(before) => Ok(counted(other).await?.map(|after| before.until(after, units))),
        }
    }
}

async fn counted(other: &Running) -> Result<Option<Counted>, Error> {
    match other.as_ref().and_then(|other| other.counted()) {
        Some(counted) => counted.await.map(Some),
        None => Ok(None),
    }
}
