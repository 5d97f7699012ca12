//! The lanes, as each lane reports itself.

use serde::Serialize;

use super::snapshots;
use crate::lane::Detail;
pub use crate::lane::LaneState;
use crate::shared::Shared;

#[derive(Debug, Serialize)]
pub struct LaneOfPool {
    /// Its pool's number.
    pub pool: u64,
    /// The pool's user.
    pub user: String,
    /// The pool's database.
    pub database: String,
    #[serde(flatten)]
    pub state: LaneState,
}

/// The lanes of all pools.
pub async fn lanes(shared: &Shared) -> Vec<LaneOfPool> {
    let snapshots = snapshots(shared, Detail::None).await;
    let lanes = snapshots.into_iter().map(|(pool, lane)| LaneOfPool {
        pool: pool.id,
        user: pool.identity.user().to_owned(),
        database: pool.identity.database().to_owned(),
        state: lane.state,
    });
    lanes.collect()
}
