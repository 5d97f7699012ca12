//! The session's way to the lanes and back: its units keep their order, whichever lanes they go to.

use std::sync::Arc;

use hotrow_core::classify::Packing;
use hotrow_core::lane::Kind;

use super::{End, Sequences, Session};
use crate::held;
use crate::mailbox::Handed;
use crate::statements::{Statement, Verdict};
use crate::unit::Packed;

/// Which lanes run it.
pub fn lane_kind(packing: &Packing) -> Kind {
    match packing.kind {
        hotrow_core::classify::Kind::Write => Kind::Write,
        hotrow_core::classify::Kind::Read => Kind::Read,
    }
}

impl Session {
    /// How the statement may be packed, if it may.
    pub(super) async fn packing(
        &self,
        statement: &Arc<Statement>,
    ) -> Result<Option<Arc<Packing>>, held::Error> {
        if !self.packs() || !statement.has_credit() {
            return Ok(None);
        }
        Ok(match self.pool.verdict(statement).await? {
            Verdict::Packed(packing) => Some(packing),
            Verdict::Pass => None,
        })
    }

    /// Sends a unit to a lane. It may not overtake what the session has sent before: where that is in another lane,
    /// the unit waits for it.
    pub(super) async fn submit(&mut self, mut packed: Packed) -> Result<(), End> {
        let kind = lane_kind(&packed.packing);
        if packed.packing.touches_sequence {
            self.sequences = Sequences::Elsewhere;
        }
        let (lane, first) = loop {
            if self.mailbox.pending() == 0 {
                let lane = self.pool.assign(kind, packed.key, None);
                break (lane.expect("a session that waits for nothing may use any lane"), true);
            }
            if let Some((under_way, lane)) = self.lane
                && under_way == kind
                && !self.mailbox.has_handed()
                && self.pool.assign(kind, packed.key, Some(lane)).is_some()
            {
                break (lane, false);
            }
            self.drained().await?;
        };
        self.lane = Some((kind, lane));
        packed.slot = self.mailbox.reserve();
        self.pool.submit(kind, lane, self.mailbox.session, first, packed);
        Ok(())
    }

    /// Deals with a unit that a lane has given back; it is the earliest that is not done.
    pub(super) async fn take_back(&mut self, slot: u64, handed: Handed) -> Result<(), End> {
        self.was_handed = true;
        match handed {
            Handed::Again(mut packed) => {
                let kind = lane_kind(&packed.packing);
                let lane =
                    self.pool.assign(kind, packed.key, None).expect("the earliest unit may use any lane");
                self.lane = Some((kind, lane));
                packed.slot = slot;
                self.pool.submit(kind, lane, self.mailbox.session, true, packed);
            }
            Handed::Alone(packed, unblock) => {
                let result = self.run_alone(&packed).await;
                self.mailbox.finish_front();
                drop(unblock);
                result?;
                self.mailbox.try_write()?; // the client has its answer also while units behind it still wait
            }
        }
        Ok(())
    }
}
