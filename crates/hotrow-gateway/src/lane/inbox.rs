//! Where sessions leave units for a lane's task. It is woken only when it would do something with them.

use std::sync::{Arc, Mutex, MutexGuard};

use hotrow_core::key::Key;
use hotrow_core::lane::Unit;
use tokio::sync::{Notify, oneshot};

use super::look::Look;
use crate::unit::Packed;

/// What a lane can be told.
#[expect(clippy::large_enum_variant, reason = "nearly all messages are units")]
#[derive(Debug)]
pub enum Message {
    /// Run this.
    Unit(Unit<Packed>),
    /// The session's client wants its earliest unit cancelled.
    Cancel(u64),
    /// The session has ended.
    Gone(u64),
    /// The unit that was blocked on this key has been run.
    Unblocked(Key),
    /// Come to rest, with no connection, and say so.
    Pause(oneshot::Sender<()>),
    /// Log in anew, and say when the old connection is closed.
    Renew(oneshot::Sender<()>),
    /// Go on.
    Resume,
    /// Say how you do.
    Look {
        /// And which units you have.
        with_units: bool,
        /// To whom.
        answer: oneshot::Sender<Look>,
    },
}

/// A lane's inbox.
#[derive(Debug, Default)]
pub struct Inbox {
    state: Mutex<State>,
    notify: Notify,
}

#[derive(Debug, Default)]
struct State {
    messages: Vec<Message>,
    wake_at: usize,
}

/// Tells the lane, when dropped, that the unit which was blocked on this key is done with: it has been run, or its
/// session has ended before. A lane that waits for the word in vain would hold up the key for ever.
#[derive(Debug)]
pub struct Unblock {
    /// The lane.
    pub inbox: Arc<Inbox>,
    /// The key.
    pub key: Key,
}

impl Drop for Unblock {
    fn drop(&mut self) {
        self.inbox.send(Message::Unblocked(self.key));
    }
}

impl Inbox {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("nothing panics while it holds an inbox")
    }

    /// Leaves a message.
    pub fn send(&self, message: Message) {
        let mut state = self.lock();
        let urgent = !matches!(message, Message::Unit(_));
        state.messages.push(message);
        if urgent || state.messages.len() == state.wake_at.max(1) {
            drop(state);
            self.notify.notify_one();
        }
    }

    /// Takes all messages in exchange for an empty list.
    pub fn take(&self, messages: &mut Vec<Message>) {
        std::mem::swap(&mut self.lock().messages, messages);
    }

    /// The lane wants to be woken when so many messages are there.
    pub fn wake_at(&self, count: usize) {
        let mut state = self.lock();
        state.wake_at = count;
        if state.messages.len() >= count.max(1) {
            drop(state);
            self.notify.notify_one();
        }
    }

    /// Waits to be woken.
    pub async fn woken(&self) {
        self.notify.notified().await;
    }
}
