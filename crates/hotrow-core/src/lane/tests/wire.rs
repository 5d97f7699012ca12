//! The shell around one simulated lane: what it has to write, which connection it has, which batches are on it.
//! Moves bytes and counts them; decides nothing.

use std::collections::VecDeque;

use super::backend::Frame;
use super::history::History;
use crate::key::Key;
use crate::lane::{Doubt, Event, Lane, LaneKind};
use crate::witness::{Continuity, Question, Server, question};

#[derive(Debug)]
pub struct Wire {
    pub gateway: usize,
    pub kind: LaneKind,
    pub lane: Lane<usize>,
    /// What sessions have left for it.
    pub inbox: VecDeque<Event<usize>>,
    pub backend: Option<usize>,
    /// The last one that had a mark.
    pub marked_by: Option<usize>,
    /// The lane was told to pause.
    pub paused: bool,
    /// The batch because of which the lane is slow.
    pub slow: Option<u64>,
    /// The lane has asked for a connection.
    pub wanted: bool,
    /// The lane has asked what became of this transaction.
    pub asked: Option<Doubt>,
    /// The server that the batches in doubt were sent to, and the one that the connection is to.
    pub before: Option<Server>,
    pub now: Option<Server>,
    pub unwritten: VecDeque<Frame>,
    /// The batches on the connection that are not ready, by their place in the history.
    pub sent: VecDeque<usize>,
}

impl Wire {
    pub fn new(gateway: usize, kind: LaneKind) -> Self {
        Wire {
            gateway,
            kind,
            lane: Lane::new(kind),
            inbox: VecDeque::new(),
            backend: None,
            marked_by: None,
            paused: false,
            slow: None,
            wanted: false,
            asked: None,
            before: None,
            now: None,
            unwritten: VecDeque::new(),
            sent: VecDeque::new(),
        }
    }

    /// Queues a batch for writing, its units by call. A lane for reads has no use for transaction ids.
    pub fn queue(&mut self, number: u64, ahead: &[Key], calls: &[Vec<usize>], history: &History) {
        self.unwritten.extend(ahead.iter().map(|row| Frame::Lock(*row)));
        for call in calls {
            match call[..] {
                [unit] => self.unwritten.extend(history.parts(unit).map(Frame::Statement)),
                [ref parts @ .., last] => {
                    self.unwritten.extend(parts.iter().map(|unit| Frame::Part(*unit)));
                    self.unwritten.push_back(Frame::Statement(last));
                }
                [] => {}
            }
        }
        if self.kind == LaneKind::Write {
            self.unwritten.push_back(Frame::AskXid);
        }
        self.unwritten.push_back(Frame::Sync(number));
    }

    /// What there is to ask the server, and what binds it to the one before.
    pub fn question(&self) -> Option<(Question, Continuity)> {
        let doubt = self.asked?;
        let bond = Continuity::for_doubt(doubt, self.before.as_ref(), self.now.as_ref());
        Some((question(doubt, self.before.as_ref(), bond), bond))
    }

    /// Once nothing is in doubt, this connection's server is the one to compare with.
    pub fn settle(&mut self) {
        if !self.lane.in_doubt() && self.backend.is_some() {
            self.before.clone_from(&self.now);
        }
    }

    /// The connection is gone, and all that was on it.
    pub fn disconnect(&mut self) -> Option<usize> {
        self.unwritten.clear();
        self.sent.clear();
        self.asked = None;
        self.backend.take()
    }
}
