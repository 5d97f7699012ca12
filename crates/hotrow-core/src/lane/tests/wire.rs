//! The shell around one simulated lane: what it has to write, which connection it has, which batches are on it.
//! Moves bytes and counts them; decides nothing.

use std::collections::VecDeque;

use super::backend::Frame;
use super::history::History;
use super::server::Txn;
use crate::key::Key;
use crate::lane::{Event, Kind, Lane};

#[derive(Debug)]
pub struct Wire {
    pub gateway: usize,
    pub kind: Kind,
    pub lane: Lane<usize>,
    /// What sessions have left for it.
    pub inbox: VecDeque<Event<usize>>,
    pub backend: Option<usize>,
    /// The lane was told to pause.
    pub paused: bool,
    /// The lane has asked for a connection.
    pub wanted: bool,
    /// The lane has asked what became of this transaction.
    pub asked: Option<Txn>,
    pub unwritten: VecDeque<Frame>,
    /// The batches on the connection that are not ready, by their place in the history.
    pub sent: VecDeque<usize>,
}

impl Wire {
    pub fn new(gateway: usize, kind: Kind) -> Self {
        Wire {
            gateway,
            kind,
            lane: Lane::new(kind),
            inbox: VecDeque::new(),
            backend: None,
            paused: false,
            wanted: false,
            asked: None,
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
        if self.kind == Kind::Write {
            self.unwritten.push_back(Frame::AskXid);
        }
        self.unwritten.push_back(Frame::Sync(number));
    }

    /// The connection is gone, and all that was on it.
    pub fn disconnect(&mut self) -> Option<usize> {
        self.unwritten.clear();
        self.sent.clear();
        self.asked = None;
        self.backend.take()
    }
}
