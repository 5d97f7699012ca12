//! The I/O of one simulated lane: frames to write, its connection, and the batches on it. It moves frames,
//! counts them and decides nothing.

use std::collections::VecDeque;

use super::backend::Frame;
use super::history::History;
use hotrow_core::witness::{Continuity, Question, Server, question};
use hotrow_lane::key::Key;
use hotrow_lane::lane::{Doubt, Event, Lane, LaneKind};

#[derive(Debug)]
pub struct Wire {
    pub gateway: usize,
    pub kind: LaneKind,
    pub lane: Lane<usize>,
    /// Units that sessions have submitted.
    pub inbox: VecDeque<Event<usize>>,
    pub backend: Option<usize>,
    /// The last connection that had a mark.
    pub marked_by: Option<usize>,
    /// The lane was told to pause.
    pub paused: bool,
    /// The batch that makes the lane slow.
    pub slow: Option<u64>,
    /// The lane holds its next batch back.
    pub holds: bool,
    /// The lane has asked for a connection.
    pub wanted: bool,
    /// The lane has asked for the outcome of this transaction.
    pub asked: Option<Doubt>,
    /// The server that got the batches in doubt, and the server of the current connection.
    pub before: Option<Server>,
    pub now: Option<Server>,
    pub unwritten: VecDeque<Frame>,
    /// The unfinished batches on the connection, by their index in the history.
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
            holds: false,
            wanted: false,
            asked: None,
            before: None,
            now: None,
            unwritten: VecDeque::new(),
            sent: VecDeque::new(),
        }
    }

    /// Queues a batch for writing, with its units by call. A lane for reads needs no transaction IDs.
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

    /// The query for the server, and the server's relation to the previous one.
    pub fn question(&self) -> Option<(Question, Continuity)> {
        let doubt = self.asked?;
        let bond = Continuity::for_doubt(doubt, self.before.as_ref(), self.now.as_ref());
        Some((question(doubt, self.before.as_ref(), bond), bond))
    }

    /// When nothing is in doubt, later servers are compared with this connection's server.
    pub fn settle(&mut self) {
        if !self.lane.in_doubt() && self.backend.is_some() {
            self.before.clone_from(&self.now);
        }
    }

    /// The connection is gone, with everything on it.
    pub fn disconnect(&mut self) -> Option<usize> {
        self.unwritten.clear();
        self.sent.clear();
        self.asked = None;
        self.backend.take()
    }
}
