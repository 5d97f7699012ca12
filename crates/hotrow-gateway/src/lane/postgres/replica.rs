//! What is special about lanes to a replica: they only read, each batch first checks that the replica shows what its units have
//! to see, and the primary runs what fails.

use std::sync::Arc;

use bytes::BytesMut;
use hotrow_connect::upstream::Rows;
use hotrow_core::replica::{LsnBound, Position};
use hotrow_lane::lane::Batch;
use hotrow_wire::frontend::{self, ObjectName, Parse, tag};

use super::envelope::Envelope;
use super::target::Target;
use crate::lane::snapshot::Place;
use crate::metrics::METRICS;
use crate::server::replica::{Replica, Replicas};
use crate::statements::RunRecord;

/// The name of the first statement of every batch.
const CHECK: &[u8] = b"hotrow_replica_check";
/// The types of its parameters: `pg_lsn` and `int8`.
const PG_LSN_AND_INT8: [u8; 8] = [0, 0, 0x0c, 0x94, 0, 0, 0, 20];

/// A replica to which lanes connect.
#[derive(Debug)]
pub struct ReplicaTarget {
    /// All replicas of the pool's server.
    pub replicas: Arc<Replicas>,
    /// Its index among them.
    pub index: usize,
}

impl ReplicaTarget {
    fn replica(&self) -> &Replica {
        &self.replicas.all()[self.index]
    }
}

impl Target for ReplicaTarget {
    fn place(&self) -> Place {
        Place { replica: Some(self.replica().hosts.to_string()), ..Place::default() }
    }

    fn has_substitute(&self) -> bool {
        true
    }

    fn expected(&self) -> Option<(&'static str, Option<Rows>)> {
        Some((include_str!("../../../sql/replica_settings.sql"), self.replica().settings()))
    }

    /// The check fails for certain if this connection may be one to a later life of the replica than the one that a session has
    /// read from, and the server lets it fail if the replica's address led to another server.
    fn put_opening(
        &self,
        batch: &Batch<Envelope>,
        connection: u64,
        is_prepared: bool,
        out: &mut BytesMut,
    ) -> bool {
        if !is_prepared {
            ObjectName { statement: true, name: CHECK }.put(tag::CLOSE, out);
            let text = include_str!("../../../sql/replica_check.sql");
            Parse { name: CHECK, text: text.as_bytes(), types: &PG_LSN_AND_INT8 }.put(out);
        }
        let bounds = || batch.units.iter().map(|unit| unit.payload.lsn_bound);
        let started = bounds().flatten().map(|bound| bound.started).next().unwrap_or_default();
        let allows = |bound: LsnBound| bound.allows(connection) && bound.started == started;
        let is_allowed = bounds().all(|bound| bound.is_some_and(allows));
        let position = bounds().flatten().map(|bound| bound.position).max();
        let position = position.filter(|_| is_allowed).unwrap_or(Position(u64::MAX));
        let values = [position.to_string(), started.to_string()];
        frontend::put_bind_text(out, CHECK, values.iter().map(String::as_bytes));
        out.extend_from_slice(frontend::EXECUTE);
        true
    }

    /// A statement with such an error waited for the replay of the WAL, or was ended for it. A failed check shows an earlier
    /// state of the catalog or of the rows.
    fn is_behind(&self, code: Option<&[u8]>) -> bool {
        let is_behind = code.is_none_or(|code| matches!(code, b"40001" | b"40P01" | b"55P03" | b"57014"));
        if is_behind {
            self.replicas.ask_soon(self.index, false);
        }
        is_behind
    }

    fn lost(&self) {
        self.replicas.ask_soon(self.index, true);
    }

    fn answered(&self, units: u64) {
        METRICS.replica_reads.add(units);
        self.replica().reads.add(units);
    }

    /// It says nothing about how fast the statement is on the primary.
    fn succeeded(&self, record: &RunRecord) {
        record.succeeded();
    }

    /// The next runs on the primary show whether the fault is the statement's.
    fn avoid(&self, record: &RunRecord) {
        record.keep_off_replicas();
    }
}
