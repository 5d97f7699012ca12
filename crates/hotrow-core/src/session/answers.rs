//! The answers of one client, in the order of its units. Lanes answer units in any order, or give them back (`H`). The client gets
//! an answer after the answers of all earlier units.

use std::collections::VecDeque;

use bytes::BytesMut;

/// Units on their way, and the bytes that the client gets next.
#[derive(Debug)]
pub struct Answers<H> {
    /// Bytes for the client.
    pub out: BytesMut,
    /// The number of the first slot.
    first: u64,
    slots: VecDeque<Slot<H>>,
    /// The number of slots that hold a unit which a lane gave back.
    handed: usize,
    /// The session has dealt with such a unit, and others are still on their way.
    sorts_out: bool,
    /// Bytes of answers behind one that is missing.
    kept: usize,
    /// Slots of units that the gateway has refused, until the session asks for them.
    refused: Vec<u64>,
}

#[derive(Debug)]
enum Slot<H> {
    /// In a lane, or with the session.
    Waiting,
    /// Answered, behind one that is not.
    Answered(BytesMut),
    /// Given back to the session.
    Handed(Box<H>),
}

/// What a session can do with its next unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Nothing of the session is on its way: the unit can go to any lane, and is the session's first there.
    First,
    /// It can follow the units on their way into their lane. In another lane it could overtake them.
    Follow,
    /// It waits until nothing is on its way. A lane has given a unit back: a unit that was sent after it comes back too, and
    /// nothing may get between them.
    Wait,
}

impl<H> Default for Answers<H> {
    fn default() -> Self {
        Answers {
            out: BytesMut::new(),
            first: 0,
            slots: VecDeque::new(),
            handed: 0,
            sorts_out: false,
            kept: 0,
            refused: Vec::new(),
        }
    }
}

impl<H> Answers<H> {
    /// What the session can do with its next unit.
    pub fn next(&self) -> Next {
        match self.slots.is_empty() {
            true => Next::First,
            false if self.sorts_out || self.handed > 0 => Next::Wait,
            false => Next::Follow,
        }
    }

    /// A slot for a unit, behind all earlier ones.
    pub fn reserve(&mut self) -> u64 {
        self.slots.push_back(Slot::Waiting);
        self.first + self.slots.len() as u64 - 1
    }

    /// Puts in an answer that `write` appends. True if the client can get it now.
    pub fn answer(&mut self, slot: u64, write: impl FnOnce(&mut BytesMut)) -> bool {
        let index = self.index(slot);
        if index == 0 {
            write(&mut self.out);
            self.finish_front();
            return true;
        }
        let mut bytes = BytesMut::new();
        write(&mut bytes);
        self.kept += bytes.len();
        self.slots[index] = Slot::Answered(bytes);
        false
    }

    /// Appends an answer of the gateway's own behind all earlier units.
    pub fn append_in_turn(&mut self, write: impl FnOnce(&mut BytesMut)) {
        if self.slots.is_empty() {
            return write(&mut self.out);
        }
        let mut bytes = BytesMut::new();
        write(&mut bytes);
        self.kept += bytes.len();
        self.slots.push_back(Slot::Answered(bytes));
    }

    /// Appends a part of the answer of the unit at the front.
    pub fn append(&mut self, write: impl FnOnce(&mut BytesMut)) {
        debug_assert!(!matches!(self.slots.front(), Some(Slot::Answered(_))));
        write(&mut self.out);
    }

    /// Gives a unit back to the session. True if it is the session's turn to deal with it.
    pub fn hand(&mut self, slot: u64, handed: H) -> bool {
        let index = self.index(slot);
        self.slots[index] = Slot::Handed(Box::new(handed));
        self.handed += 1;
        index == 0
    }

    /// Takes the unit at the front, if a lane gave it back.
    pub fn take_handed(&mut self) -> Option<(u64, H)> {
        let front = self.slots.front_mut().filter(|slot| matches!(slot, Slot::Handed(_)))?;
        let Slot::Handed(handed) = std::mem::replace(front, Slot::Waiting) else { return None };
        self.handed -= 1;
        self.sorts_out = true;
        Some((self.first, *handed))
    }

    /// Takes any unit that a lane gave back, when the client is gone.
    pub fn take_any_handed(&mut self) -> Option<(u64, H)> {
        let index = self.slots.iter().position(|slot| matches!(slot, Slot::Handed(_)))?;
        let Slot::Handed(handed) = std::mem::replace(&mut self.slots[index], Slot::Waiting) else {
            return None;
        };
        self.handed -= 1;
        Some((self.first + index as u64, *handed))
    }

    /// The unit at the front is done, and so are those behind it that are answered.
    pub fn finish_front(&mut self) {
        self.slots.pop_front();
        self.first += 1;
        while let Some(Slot::Answered(bytes)) = self.slots.front_mut() {
            self.kept -= bytes.len();
            self.out.extend_from_slice(bytes);
            self.slots.pop_front();
            self.first += 1;
        }
        self.sorts_out &= !self.slots.is_empty();
    }

    /// Whether the unit at the front was given back.
    pub fn is_front_handed(&self) -> bool {
        matches!(self.slots.front(), Some(Slot::Handed(_)))
    }

    /// Whether a lane has given back a unit that the session has not taken.
    pub fn has_handed(&self) -> bool {
        self.handed > 0
    }

    /// The number of units that are unanswered, or answered behind one that is not.
    pub fn pending(&self) -> usize {
        self.slots.len()
    }

    /// The slot that is answered next, and the last one that is reserved, if any is.
    pub fn slots(&self) -> (u64, Option<u64>) {
        let last = self.slots.len().checked_sub(1).map(|index| self.first + index as u64);
        (self.first, last)
    }

    /// Bytes that the client has not got.
    pub fn bytes(&self) -> usize {
        self.out.len() + self.kept
    }

    /// Notes that the answer for this slot, which is not there yet, is the gateway's own error.
    pub fn refuses(&mut self, slot: u64) {
        self.refused.push(slot);
    }

    /// The slots before this one whose answers were the gateway's own errors, each of them once.
    pub fn take_refused(&mut self, end: u64) -> Vec<u64> {
        self.refused.extract_if(.., |slot| *slot < end).collect()
    }

    fn index(&self, slot: u64) -> usize {
        usize::try_from(slot - self.first).expect("a slot is answered once, while it is there")
    }
}
