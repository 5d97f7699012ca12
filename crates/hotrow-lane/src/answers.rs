//! The replies to one client, in the order of its units. Lanes answer units in any order, or return them
//! (`H`). The client gets a reply after the replies to all earlier units.

use std::collections::VecDeque;

use bytes::BytesMut;

use crate::limits;

/// Units under way, and the bytes that the client gets next.
#[derive(Debug)]
pub struct Answers<H> {
    /// Bytes for the client.
    pub out: BytesMut,
    /// The number of the first slot.
    first: u64,
    slots: VecDeque<Slot<H>>,
    /// Number of slots with a returned unit.
    returned: usize,
    /// The session has handled a returned unit, and others are still under way.
    is_draining: bool,
    /// Bytes of replies that wait for an earlier reply.
    kept: usize,
    /// Slots of units that the gateway has refused, until the session takes them.
    refused: Vec<u64>,
    /// The number of the slot after the last notification that waits for replies.
    notified: u64,
}

#[derive(Debug)]
enum Slot<H> {
    /// In a lane, or with the session.
    Waiting,
    /// Answered, and waiting for an earlier reply.
    Answered(BytesMut),
    /// Returned to the session.
    Returned(Box<H>),
}

/// The permission to send a session's next unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// No unit of the session is under way. The unit can use any lane, and is the session's first there.
    First,
    /// It can use the lane of the units under way. In another lane it could overtake them.
    Follow,
    /// It waits until no unit is under way. A lane has returned a unit. It also returns units that were sent
    /// after that unit, and no new unit may get between them.
    Wait,
}

impl<H> Default for Answers<H> {
    fn default() -> Self {
        Answers {
            out: BytesMut::new(),
            first: 0,
            slots: VecDeque::new(),
            returned: 0,
            is_draining: false,
            kept: 0,
            refused: Vec::new(),
            notified: 0,
        }
    }
}

impl<H> Answers<H> {
    /// Whether the session can send its next unit.
    pub fn next(&self) -> Next {
        match self.slots.is_empty() {
            true => Next::First,
            false if self.is_draining || self.returned > 0 => Next::Wait,
            false => Next::Follow,
        }
    }

    /// Reserves a slot for a unit, after all earlier ones.
    pub fn reserve(&mut self) -> u64 {
        self.slots.push_back(Slot::Waiting);
        self.first + self.slots.len() as u64 - 1
    }

    /// Stores the reply that `write` appends. Returns whether the client can get it now.
    pub fn answer(&mut self, slot: u64, write: impl FnOnce(&mut BytesMut)) -> bool {
        let index = self.index(slot);
        debug_assert!(matches!(self.slots[index], Slot::Waiting), "slot {slot} is answered twice");
        if index == 0 {
            write(&mut self.out);
            self.finish_front();
            return true;
        }
        let mut bytes = BytesMut::new();
        write(&mut bytes);
        self.kept += bytes.len();
        self.slots[index] = Slot::Answered(bytes);
        self.check();
        false
    }

    /// Appends a reply of the gateway after the replies to all earlier units.
    pub fn append_in_turn(&mut self, write: impl FnOnce(&mut BytesMut)) {
        if self.slots.is_empty() {
            return write(&mut self.out);
        }
        let mut bytes = BytesMut::new();
        write(&mut bytes);
        self.kept += bytes.len();
        self.slots.push_back(Slot::Answered(bytes));
    }

    /// Appends a notification: after the replies to all earlier units, or before the end of the earliest unit's reply. It
    /// never overtakes an earlier notification.
    pub fn notify(&mut self, in_turn: bool, write: impl FnOnce(&mut BytesMut)) {
        if in_turn || self.notified > self.first {
            self.append_in_turn(write);
            self.notified = self.first + self.slots.len() as u64;
        } else {
            self.append(write);
        }
    }

    /// Appends a part of the reply to the earliest unit.
    pub fn append(&mut self, write: impl FnOnce(&mut BytesMut)) {
        debug_assert!(!matches!(self.slots.front(), Some(Slot::Answered(_))));
        write(&mut self.out);
    }

    /// Returns a unit to the session. The result is whether the session can handle it now.
    pub fn give_back(&mut self, slot: u64, returned: H) -> bool {
        let index = self.index(slot);
        debug_assert!(matches!(self.slots[index], Slot::Waiting), "slot {slot} is returned after its answer");
        self.slots[index] = Slot::Returned(Box::new(returned));
        self.returned += 1;
        self.check();
        index == 0
    }

    /// Takes the earliest unit, if a lane returned it.
    pub fn take_returned(&mut self) -> Option<(u64, H)> {
        let front = self.slots.front_mut().filter(|slot| matches!(slot, Slot::Returned(_)))?;
        let Slot::Returned(returned) = std::mem::replace(front, Slot::Waiting) else { return None };
        self.returned -= 1;
        self.is_draining = true;
        Some((self.first, *returned))
    }

    /// The earliest unit is done, and with it the answered units directly after it.
    pub fn finish_front(&mut self) {
        debug_assert!(
            matches!(self.slots.front(), Some(Slot::Waiting)),
            "the earliest unit is not under way"
        );
        self.slots.pop_front();
        self.first += 1;
        while let Some(Slot::Answered(bytes)) = self.slots.front_mut() {
            self.kept -= bytes.len();
            self.out.extend_from_slice(bytes);
            self.slots.pop_front();
            self.first += 1;
        }
        self.is_draining &= !self.slots.is_empty();
        self.check();
    }

    /// An answered slot is never the earliest one, and the counters agree with the slots. Long queues are not counted, because
    /// each answer would take as long as the queue.
    fn check(&self) {
        debug_assert!(!matches!(self.slots.front(), Some(Slot::Answered(_))));
        debug_assert!(!self.is_draining || !self.slots.is_empty());
        if cfg!(debug_assertions) && self.slots.len() <= limits::CHECKED_MAX {
            let kept = |slot: &Slot<H>| if let Slot::Answered(bytes) = slot { bytes.len() } else { 0 };
            assert_eq!(self.kept, self.slots.iter().map(kept).sum());
            assert_eq!(
                self.returned,
                self.slots.iter().filter(|slot| matches!(slot, Slot::Returned(_))).count()
            );
        }
    }

    /// Whether the earliest unit was returned.
    pub fn is_front_returned(&self) -> bool {
        matches!(self.slots.front(), Some(Slot::Returned(_)))
    }

    /// Number of units without a reply, or with a reply that waits for an earlier one.
    pub fn pending(&self) -> usize {
        self.slots.len()
    }

    /// The slot that is answered next, and the last reserved slot, if there is one.
    pub fn slots(&self) -> (u64, Option<u64>) {
        let last = self.slots.len().checked_sub(1).map(|index| self.first + index as u64);
        (self.first, last)
    }

    /// Bytes that the client has not received.
    pub fn bytes(&self) -> usize {
        self.out.len() + self.kept
    }

    /// Records that the future reply for this slot is an error of the gateway.
    pub fn refuses(&mut self, slot: u64) {
        self.refused.push(slot);
    }

    /// The slots before `end` with an error of the gateway, each of them once.
    pub fn take_refused(&mut self, end: u64) -> Vec<u64> {
        self.refused.extract_if(.., |slot| *slot < end).collect()
    }

    fn index(&self, slot: u64) -> usize {
        usize::try_from(slot - self.first).expect("a slot is answered once, while it is there")
    }
}
