//! The messages of sessions for a lane's task. The task is woken only if it would act on them.

use tokio::sync::Notify;

use crate::lock::Lock;

/// Whether a message can wait until the lane has room.
pub trait Urgency {
    /// Whether the message needs an immediate reaction.
    fn is_urgent(&self) -> bool;
}

/// A lane's inbox.
#[derive(Debug)]
pub struct Inbox<M> {
    state: Lock<State<M>>,
    notify: Notify,
}

#[derive(Debug)]
struct State<M> {
    messages: Vec<M>,
    wake_at: usize,
}

impl<M> Default for Inbox<M> {
    fn default() -> Self {
        Inbox { state: Lock::new(State { messages: Vec::new(), wake_at: 0 }), notify: Notify::new() }
    }
}

impl<M: Urgency> Inbox<M> {
    /// Adds a message.
    pub fn send(&self, message: M) {
        let mut state = self.state.lock();
        let urgent = message.is_urgent();
        state.messages.push(message);
        if urgent || state.messages.len() == state.wake_at.max(1) {
            drop(state);
            self.notify.notify_one();
        }
    }

    /// Takes all messages in exchange for an empty list.
    pub fn take(&self, messages: &mut Vec<M>) {
        std::mem::swap(&mut self.state.lock().messages, messages);
    }

    /// Wakes the lane when this many messages are there.
    pub fn wake_at(&self, count: usize) {
        let mut state = self.state.lock();
        state.wake_at = count;
        if state.messages.len() >= count.max(1) {
            drop(state);
            self.notify.notify_one();
        }
    }

    /// Waits for the next wake-up.
    pub async fn woken(&self) {
        self.notify.notified().await;
    }
}
