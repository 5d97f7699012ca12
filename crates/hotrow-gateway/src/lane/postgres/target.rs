//! How the server that lanes lead to differs from the pool's own server, whose behaviour the defaults are.

use std::fmt::Debug;

use bytes::BytesMut;
use hotrow_connect::upstream::Rows;
use hotrow_core::classify::Watch;
use hotrow_lane::lane::Batch;

use super::envelope::{Envelope, Run};
use crate::lane::snapshot::Place;
use crate::statements::RunRecord;

/// The server that the lanes of one context lead to.
pub trait Target: Debug + Send + Sync {
    /// Which server it is, for people.
    fn place(&self) -> Place {
        Place::default()
    }

    /// Whether the pool's server runs what this one cannot run, such as everything that writes.
    fn has_substitute(&self) -> bool {
        false
    }

    /// Whether its transactions can have parts on other servers.
    fn has_parts(&self) -> bool {
        true
    }

    /// A catalog query and the answer that a new connection has to give. No answer will do if none is known.
    fn expected(&self) -> Option<(&'static str, Option<Rows>)> {
        None
    }

    /// Puts a statement of its own before those of a batch, on the connection with this number. Returns whether it does.
    fn put_opening(
        &self,
        _batch: &Batch<Envelope>,
        _connection: u64,
        _is_prepared: bool,
        _out: &mut BytesMut,
    ) -> bool {
        false
    }

    /// Passes on the tables that a run relies on.
    fn watches(&self, run: &Run, found: &mut dyn FnMut(&Watch)) {
        run.packing.parts().filter_map(|part| part.watch.as_deref()).for_each(found);
    }

    /// Whether an error with this SQLSTATE, or without one a failed check, shows only that the server is behind the pool's own.
    fn is_behind(&self, _code: Option<&[u8]>) -> bool {
        false
    }

    /// A connection is lost or could not be made.
    fn lost(&self) {}

    /// As many units are answered.
    fn answered(&self, _units: u64) {}

    /// A statement has succeeded.
    fn succeeded(&self, record: &RunRecord) {
        record.succeeded_in_lane();
    }

    /// A statement was in a batch that was too slow, or has failed although there is a substitute.
    fn avoid(&self, record: &RunRecord) {
        record.was_in_slow_batch();
    }
}

/// The pool's own server.
#[derive(Debug)]
pub struct OwnServer;

impl Target for OwnServer {}
