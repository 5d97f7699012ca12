//! The session's place in its pool: how it enters another pool, and what its lanes are told when it leaves.

use super::SessionTask;
use crate::lane::ToLane;
use crate::pool::Member;
use crate::pool::pools::PoolUse;

impl SessionTask {
    /// The lanes of the pool get no more units of the session.
    pub(super) fn leave_lanes(&mut self) {
        if self.session.leaves_lanes() {
            let session = self.mailbox.session;
            self.pool.send_all(|| ToLane::Gone(session));
        }
    }

    /// The session leaves its pool, where this number of units has done nothing but that.
    pub(super) fn leaves_pool(&mut self, units: u64) {
        let (packed, passed) = self.control.activity.counts();
        let before = std::mem::replace(&mut self.units_before, packed + passed);
        if packed + passed > before + units {
            self.pool.usage.has_served();
        }
    }

    /// The session is a client of this pool from now on, and its connection one of the pool's.
    pub(super) fn enter(&mut self, used: PoolUse) {
        let pool = used.pool().clone();
        let held = self.session.connection();
        let units = u64::from(held.is_some()); // the SETs ran there
        if let Some(held) = held {
            held.moved(pool.id, &pool.context.login);
        }
        self.leaves_pool(units);
        self.moves += 1;
        self.leave_lanes();
        self.control.moved(pool.clone());
        self.session.env.pool = pool.clone();
        let member = Member::of(&pool);
        self.membership = (used, member);
        self.pool = pool;
    }
}
