//! Shadow mode of a pool: the units of its clients that are passed through and would have been packed.

use std::sync::Arc;
use std::time::Instant;

use hotrow_connect::lock::Lock;
use hotrow_lane::shadow::Shadow;

use super::Pool;
use crate::lane::Packed;

/// The simulated lane of a pool.
#[derive(Debug)]
pub(super) struct PoolShadow {
    /// Its time begins here.
    start: Instant,
    lane: Lock<Shadow>,
}

impl Default for PoolShadow {
    fn default() -> Self {
        PoolShadow { start: Instant::now(), lane: Lock::default() }
    }
}

/// A unit under way at the server that would have been packed, until this is dropped.
#[derive(Debug)]
pub struct ShadowedUnit {
    pool: Arc<Pool>,
    session: u64,
}

impl ShadowedUnit {
    /// A unit of this session begins.
    pub fn begin(pool: &Arc<Pool>, session: u64, unit: &Packed) -> Self {
        let traffic = &pool.context.shared.traffic.shadow;
        traffic.units.inc();
        let mut lane = pool.shadow.lane.lock();
        lane.begin(session, unit.keys(), pool.shadow.start.elapsed());
        traffic.found(lane.take_counts());
        drop(lane);
        ShadowedUnit { pool: pool.clone(), session }
    }
}

impl Drop for ShadowedUnit {
    fn drop(&mut self) {
        let mut lane = self.pool.shadow.lane.lock();
        lane.end(self.session, self.pool.shadow.start.elapsed());
        self.pool.context.shared.traffic.shadow.found(lane.take_counts());
    }
}
