//! The replicas, as each pool that reads from them knows them.

use hotrow_core::replica::Position;

use crate::shared::Shared;

#[derive(Debug)]
pub struct ReplicaState {
    /// Its pool's number.
    pub pool: u64,
    /// The pool's user.
    pub user: String,
    /// The pool's database.
    pub database: String,
    /// Its address.
    pub replica: String,
    /// Whether it serves reads, or why not.
    pub state: &'static str,
    /// How far it has replayed the WAL, if that is known.
    pub position: Option<String>,
    /// How far it was behind the primary when it was last asked, in milliseconds, if that is known.
    pub lag_ms: Option<u64>,
    /// The same in bytes of WAL.
    pub lag_bytes: u64,
    /// Reads that it has answered.
    pub reads: u64,
}

/// The replicas of all pools.
pub fn replicas(shared: &Shared) -> Vec<ReplicaState> {
    let mut all = Vec::new();
    for pool in shared.pools() {
        all.extend(pool.replicas.reports().map(|(replica, report)| {
            ReplicaState {
                pool: pool.id,
                user: pool.identity.user().to_owned(),
                database: pool.identity.database().to_owned(),
                replica: replica.hosts.to_string(),
                state: report.status.word(),
                position: Some(report.replayed)
                    .filter(|position| *position > Position::default())
                    .map(|position| position.to_string()),
                lag_ms: report.lag_ms,
                lag_bytes: report.lag_bytes,
                reads: replica.reads.get(),
            }
        }));
    }
    all
}
