//! The replies that a client expects, in the order of its commands.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use hotrow_mysql_wire::capabilities::{STATUS_AUTOCOMMIT, STATUS_IN_TRANSACTION};
use hotrow_mysql_wire::reply::ReplyReader;
use hotrow_mysql_wire::scan::Scanned;
use tokio::sync::{Notify, oneshot};

use crate::crowd::Entered;
use crate::limits;

/// A reply that the client expects.
#[derive(Debug)]
pub enum Reply {
    /// The server sends it.
    OfServer {
        reader: ReplyReader,
        /// Whether the client sends more packets before the reply ends.
        is_dialogue: bool,
        /// Where its first packet goes.
        first: Option<oneshot::Sender<Scanned>>,
        /// It counts for the crowd until it ends.
        entered: Option<Entered>,
    },
    /// The server sends it, and the gateway itself reads it: one packet.
    Internal { reader: ReplyReader, answer: oneshot::Sender<Scanned> },
    /// The gateway itself sends these payloads.
    Own {
        payloads: Vec<Vec<u8>>,
        /// Whether the session ends after it.
        is_last: bool,
    },
}

#[derive(Debug, Default)]
struct State {
    replies: VecDeque<Reply>,
    /// The number of dialogues whose replies have not ended.
    dialogues: usize,
    /// No more commands are forwarded.
    is_closed: bool,
    /// Replies that have not ended.
    open: usize,
    /// A statement of the client runs in a lane.
    is_in_lane: bool,
    /// The server's status. None after an error in a transaction, which can have ended.
    status: Option<u16>,
}

/// The queue between the two loops of a session.
#[derive(Debug, Default)]
pub struct Expected {
    state: Mutex<State>,
    added: Notify,
    taken: Notify,
    ended: Notify,
}

impl Expected {
    /// After a login with this status.
    pub fn after_login(status: Option<u16>) -> Self {
        let expected = Expected::default();
        expected.state().status = status;
        expected
    }

    /// Waits until no reply is open. Returns the server's status, if it is known.
    pub async fn idle(&self) -> Option<u16> {
        loop {
            let ended = self.ended.notified();
            {
                let state = self.state();
                if state.open == 0 {
                    return state.status;
                }
            }
            ended.await;
        }
    }

    /// A statement goes to a lane. False if no more commands may run.
    pub fn enter_lane(&self) -> bool {
        let mut state = self.state();
        state.is_in_lane = !state.is_closed;
        state.is_in_lane
    }

    /// It has come back.
    pub fn leave_lane(&self) {
        self.state().is_in_lane = false;
    }

    /// A reply has ended.
    pub fn ended(&self, status: Option<u16>, was_dialogue: bool) {
        let mut state = self.state();
        state.open -= 1;
        // A reply without a status is an error or tells of a prepared statement. It ends a transaction at most.
        let is_plain =
            |status: &u16| status & (STATUS_AUTOCOMMIT | STATUS_IN_TRANSACTION) == STATUS_AUTOCOMMIT;
        state.status = status.or(state.status.filter(is_plain));
        state.dialogues -= usize::from(was_dialogue);
        drop(state);
        self.ended.notify_one();
    }

    /// One of the gateway's own replies was sent.
    pub fn own_sent(&self) {
        self.state().open -= 1;
        self.ended.notify_one();
    }

    /// Adds a reply. Waits while too many are expected. False if no more commands may be forwarded.
    pub async fn add(&self, reply: Reply) -> bool {
        let mut reply = Some(reply);
        loop {
            let taken = self.taken.notified();
            {
                let mut state = self.state();
                if state.is_closed {
                    return false;
                }
                if state.replies.len() < limits::PIPELINED_COMMANDS_MAX {
                    let reply = reply.take().expect("it is added once");
                    state.dialogues +=
                        usize::from(matches!(reply, Reply::OfServer { is_dialogue: true, .. }));
                    state.open += 1;
                    state.replies.push_back(reply);
                    break;
                }
            }
            taken.await;
        }
        self.added.notify_one();
        true
    }

    /// Whether a reply can be added without waiting.
    pub fn has_room(&self) -> bool {
        self.state().replies.len() < limits::PIPELINED_COMMANDS_MAX
    }

    /// The next reply.
    pub fn take(&self) -> Option<Reply> {
        let reply = self.state().replies.pop_front();
        self.taken.notify_one();
        reply
    }

    /// Returns after a reply was added since the last call.
    pub async fn added(&self) {
        self.added.notified().await;
    }

    /// Forwards no more commands, if no reply is expected, apart from one that was taken. Thus a client that reads that
    /// the gateway stops knows that its last command did not run.
    pub fn close_if_empty(&self) -> bool {
        let mut state = self.state();
        state.is_closed = state.replies.is_empty() && !state.is_in_lane;
        state.is_closed
    }

    /// Whether the client can send packets that are no commands.
    pub fn in_dialogue(&self) -> bool {
        self.state().dialogues > 0
    }

    /// No code panics while it has the lock.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
