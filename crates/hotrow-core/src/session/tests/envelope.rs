//! A simulated unit on its way to a lane and back, and what a lane tells its session.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use bytes::BytesMut;
use hotrow_lane::answers::Answers;
use hotrow_lane::waiting::NotificationCount;
use hotrow_wire::backend::Problem;

use super::environment::SimStatement;
use super::packing::is_take;
use crate::key::KeySpec;
use crate::replica::LsnBound;
use crate::session;
use crate::unit::Packed;

/// A unit on its way to a lane and back.
#[derive(Debug)]
pub struct SimEnvelope {
    pub unit: Packed<Arc<SimStatement>>,
    pub slot: u64,
    /// The notifications when a call that may wait was sent.
    pub notified: Option<NotificationCount>,
    pub changes_names: bool,
    /// What a replica must show.
    pub lsn_bound: Option<LsnBound>,
    pub answers: SimAnswers,
}

impl session::Envelope<SimStatement> for SimEnvelope {
    fn unit(&self) -> &Packed<Arc<SimStatement>> {
        &self.unit
    }

    fn address(&mut self, slot: u64, changes_names: bool) {
        (self.slot, self.changes_names) = (slot, changes_names);
    }

    fn set_lsn_bound(&mut self, bound: LsnBound) {
        self.lsn_bound = Some(bound);
    }
}

impl SimEnvelope {
    /// The key of a call that may wait.
    pub fn key_of_take(&self) -> Option<&KeySpec> {
        let run = self.unit.runs().find(|run| str::from_utf8(&run.statement.text).is_ok_and(is_take))?;
        run.packing.key.as_ref()
    }

    /// The gateway answers the unit with an error, or the session does that because its transaction stays open.
    pub fn refusal(self, problem: &Problem) -> Delivery {
        if self.unit.may_stay_open() {
            return Delivery::Returned(self.slot, Box::new(SimReturned::Refuse(self, problem.clone())));
        }
        let mut reply = BytesMut::new();
        self.unit.put_refusal(problem, &mut reply);
        match self.changes_names {
            true => Delivery::Refusal(self.slot, reply),
            false => Delivery::Reply(self.slot, reply),
        }
    }
}

/// A message from a lane to a session. Lanes run concurrently, so the message can arrive at any time.
pub enum Delivery {
    Reply(u64, BytesMut),
    Refusal(u64, BytesMut),
    Returned(u64, Box<SimReturned>),
}

/// A unit that a lane returns to a session.
#[derive(Debug)]
pub enum SimReturned {
    Alone(SimEnvelope),
    Resubmit(SimEnvelope),
    /// A call that found nothing, and its empty answer.
    Wait(SimEnvelope, BytesMut),
    /// The gateway refuses it.
    Refuse(SimEnvelope, Problem),
}

pub type SimAnswers = Rc<RefCell<Answers<SimReturned>>>;
