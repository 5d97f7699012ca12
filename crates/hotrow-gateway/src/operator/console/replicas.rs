//! SHOW REPLICAS: which replicas serve the reads of a pool, and how far they are behind.

use super::answer::{Column, Row, row_of, text};
use crate::operator::view::replicas::{ReplicaState, replicas};
use crate::shared::Shared;

pub const COLUMNS: &[Column<ReplicaState>] = &[
    ("pool", |replica| text(replica.pool)),
    ("user", |replica| text(&replica.user)),
    ("database", |replica| text(&replica.database)),
    ("replica", |replica| text(&replica.replica)),
    ("state", |replica| text(replica.state)),
    ("position", |replica| replica.position.as_ref().and_then(text)),
    ("lag_ms", |replica| replica.lag_ms.and_then(text)),
    ("lag_bytes", |replica| text(replica.lag_bytes)),
    ("reads", |replica| text(replica.reads)),
];

/// One row for each replica of each pool.
pub fn rows(shared: &Shared) -> Vec<Row> {
    replicas(shared).iter().map(|replica| row_of(COLUMNS, replica)).collect()
}
