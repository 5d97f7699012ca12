//! With `hotrow.reads = replica`: which of the session's point reads run on a replica, and on which one. Reads there are never
//! older than what the session has done or seen: after any work on the primary, the session asks for the primary's position
//! before it reads from a replica again.

use hotrow_lane::affinity::LaneId;
use hotrow_lane::answers::Next;

use super::environment::Stop;
use super::planning::Planning;
use super::{Environment, Need, StatementOf};
use crate::replica::{LsnBound, ReadSource};
use crate::unit::Packed;

/// The states that the session may read on a replica.
#[derive(Debug, Default)]
pub(super) struct Reads {
    /// The oldest state that the session may see on the replica that it reads from. None after it has worked on the primary.
    bound: Option<LsnBound>,
    /// The same when the session took the connection that it holds. It counts again if the session has only prepared and
    /// described statements there: their replies show no rows.
    suspended: Option<LsnBound>,
    /// The replica that was found for the read of the message that is being handled, or none.
    found: Option<Option<LsnBound>>,
}

impl Reads {
    /// The lane to a replica for a unit, and what the replica must show. None if the primary runs the unit. `next` is what may be
    /// under way. The session holds no connection.
    pub(super) fn lane<E: Environment>(
        &mut self,
        _: &Planning,
        env: &E,
        unit: &Packed<StatementOf<E>>,
        next: Next,
    ) -> Result<Option<(LaneId, LsnBound)>, Stop<E>> {
        // Nothing of the session is under way, so its earlier work is done before the primary is asked for its position.
        if next != Next::First || !unit.is_plain_read() {
            return Ok(None);
        }
        let bound = match (self.found, env.source(self.bound.as_ref(), unit)) {
            (Some(found), _) => found,
            (None, ReadSource::Primary) => None,
            (None, ReadSource::SameReplica) => self.bound,
            (None, ReadSource::AnyReplica) => return Err(Stop::Need(Need::Replica)),
        };
        let Some(bound) = bound else { return Ok(None) };
        // The number comes before the read: connections up to it are older than the read.
        let newest = env.newest_connection();
        let Some(lane) = env.assign_replica(bound.replica, unit) else { return Ok(None) };
        self.bound = Some(bound.after(newest));
        Ok(Some((lane, bound)))
    }

    /// A replica has all that the session has done or seen. None if the session has to read from the primary.
    pub(super) fn found(&mut self, bound: Option<LsnBound>) {
        self.found = Some(bound);
    }

    /// The message is handled: the next read needs a replica of its own.
    pub(super) fn message_over(&mut self) {
        self.found = None;
    }

    /// The session has a connection to the primary. The bound is forgotten for now.
    pub(super) fn suspend_bound(&mut self) {
        let bound = self.bound;
        self.leave_replica();
        self.suspended = bound;
    }

    /// The session gives its connection back. The bound from before counts again if no reply there could show rows.
    pub(super) fn resume_bound(&mut self, has_shown_rows: bool) {
        let bound = self.suspended.take();
        if !has_shown_rows {
            self.bound = bound;
        }
    }

    /// The session works on the primary, or hears of work there. It may have seen newer states than its replica has.
    pub(super) fn leave_replica(&mut self) {
        (self.bound, self.suspended) = (None, None);
        if self.found.is_some() {
            self.found = Some(None);
        }
    }
}
