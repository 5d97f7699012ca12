//! The server's end of one simulated connection: frames in, messages out, one implicit transaction up to each
//! Sync. A backend whose client is gone continues with the frames that it has received. It does not depend on
//! lanes.

use std::collections::VecDeque;

use hotrow_lane::key::Key;
use hotrow_lane::lane::Failure;

use super::history::Work;
use super::model::{Reply, Statement};
use super::server::{Server, Txn};

/// A frame from a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frame {
    /// Lock a row before anything runs.
    Lock(Key),
    /// One of the units in a merged call, except the last. The server does not answer yet.
    Part(usize),
    /// A call's only unit, or the last one.
    Statement(usize),
    AskXid,
    /// The end of the batch with this number.
    Sync(u64),
}

/// A message from the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message {
    /// The result of a unit in a merged call that is not complete.
    Part(Txn, Reply),
    Answered(Txn, Reply),
    /// A unit has failed, and its transaction goes on.
    Left(Txn, Failure),
    Locked,
    Xid(Option<u64>),
    Failed(Failure),
    Ready,
}

#[derive(Debug, Default)]
pub struct Backend {
    pub input: VecDeque<Frame>,
    pub output: VecDeque<Message>,
    txn: Option<Txn>,
    skipping: bool,
    pub client_gone: bool,
    pub dead: bool,
    /// The mark that the batches on this connection set, and the connection's secret number.
    pub mark: Option<(usize, u64)>,
    /// The rows are on another server, which has the transaction's ID. This one has none.
    pub hides_ids: bool,
    /// An error undoes its statement only, as on MariaDB.
    pub undoes_statements: bool,
}

impl Backend {
    pub fn new(mark: Option<(usize, u64)>, hides_ids: bool, undoes_statements: bool) -> Self {
        Backend { mark, hides_ids, undoes_statements, ..Backend::default() }
    }

    fn statement(&self, units: &[Work]) -> Option<Statement> {
        match self.input.front() {
            Some(Frame::Part(unit) | Frame::Statement(unit)) if !self.skipping => {
                Some(units[*unit].statement)
            }
            _ => None,
        }
    }

    /// Whether the backend's next statement waits for another transaction's lock.
    pub fn waits(&self, server: &Server, units: &[Work]) -> bool {
        match self.input.front() {
            Some(Frame::Lock(row)) if !self.skipping => server.is_locked(self.txn, *row),
            _ => self.statement(units).is_some_and(|statement| server.must_wait(self.txn, statement)),
        }
    }

    /// Whether the backend has work to do, apart from waiting for a lock.
    pub fn has_work(&self) -> bool {
        !self.dead && (self.client_gone || !self.input.is_empty())
    }

    /// Receives one frame, or finds that the connection has ended.
    pub fn serve(&mut self, server: &mut Server, units: &[Work]) {
        let statement = self.statement(units);
        let frame = self.input.pop_front();
        match frame {
            None => self.die(server),
            Some(Frame::Sync(_)) => self.sync(server),
            Some(_) if self.skipping => {}
            Some(Frame::Lock(row)) => {
                let txn = *self.txn.get_or_insert_with(|| server.begin());
                server.lock_row(txn, row);
                self.output.push_back(Message::Locked);
            }
            Some(Frame::AskXid) => {
                let xid = self.txn.filter(|_| !self.hides_ids).and_then(|txn| server.id(txn));
                if let (Some((mark, base)), Some(id)) = (self.mark, xid) {
                    server.set_mark(mark, base + id);
                }
                self.output.push_back(Message::Xid(xid));
            }
            Some(Frame::Part(unit) | Frame::Statement(unit)) => match statement {
                None | Some(Statement::Kill) => self.die(server),
                Some(Statement::Slow { .. }) => self.fail(server, Failure::TooSlow),
                Some(statement) => {
                    let txn = *self.txn.get_or_insert_with(|| server.begin());
                    if self.undoes_statements && units[unit].may_leave() && server.fails(txn, statement) {
                        return self.output.push_back(Message::Left(txn, Failure::Error));
                    }
                    match server.execute(txn, unit, statement) {
                        Reply::Error => self.fail(server, Failure::Error),
                        reply if matches!(frame, Some(Frame::Part(_))) => {
                            self.output.push_back(Message::Part(txn, reply));
                        }
                        reply => self.output.push_back(Message::Answered(txn, reply)),
                    }
                }
            },
        }
    }

    /// The next statement fails because it waits for a lock or takes too long.
    pub fn give_up(&mut self, server: &mut Server, units: &[Work], failure: Failure) {
        match self.input.pop_front() {
            Some(Frame::Statement(unit)) if self.undoes_statements && units[unit].may_leave() => {
                let txn = *self.txn.get_or_insert_with(|| server.begin());
                self.output.push_back(Message::Left(txn, failure));
            }
            _ => self.fail(server, failure),
        }
    }

    /// The next statement takes too long, unless it is a commit, which has no time limit.
    pub fn stall(&mut self, server: &mut Server, units: &[Work]) {
        let is_sync = self.input.front().is_none_or(|frame| matches!(frame, Frame::Sync(_)));
        if !is_sync && !self.skipping && !self.dead {
            self.give_up(server, units, Failure::TooSlow);
        }
    }

    fn fail(&mut self, server: &mut Server, failure: Failure) {
        if let Some(txn) = self.txn.take() {
            server.abort(txn);
        }
        self.skipping = true;
        self.output.push_back(Message::Failed(failure));
    }

    fn sync(&mut self, server: &mut Server) {
        self.skipping = false;
        if let Some(txn) = self.txn.take()
            && !server.commit(txn)
        {
            self.output.push_back(Message::Failed(Failure::Error));
        }
        self.output.push_back(Message::Ready);
    }

    /// The process ends. Messages that it has sent can still arrive.
    pub fn die(&mut self, server: &mut Server) {
        if let Some(txn) = self.txn.take() {
            server.abort(txn);
        }
        self.input.clear();
        self.dead = true;
    }
}
