//! The replies that a client expects, in the order of its commands.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use hotrow_mysql_wire::reply::ReplyReader;
use tokio::sync::Notify;

use crate::limits;

/// A reply that the client expects.
#[derive(Debug)]
pub enum Reply {
    /// The server sends it.
    OfServer {
        reader: ReplyReader,
        /// Whether the client sends more packets before the reply ends.
        is_dialogue: bool,
    },
    /// The gateway itself sends this payload.
    Own {
        payload: Vec<u8>,
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
}

/// The queue between the two loops of a session.
#[derive(Debug, Default)]
pub struct Expected {
    state: Mutex<State>,
    added: Notify,
    taken: Notify,
}

impl Expected {
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
        state.is_closed = state.replies.is_empty();
        state.is_closed
    }

    /// The reply of a dialogue has ended.
    pub fn dialogue_ended(&self) {
        self.state().dialogues -= 1;
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
