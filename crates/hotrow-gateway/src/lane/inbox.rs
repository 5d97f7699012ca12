//! The messages of sessions for a lane's task. The task is woken only if it would act on them.

use std::mem::take;
use std::ops::Deref;
use std::sync::Arc;

use hotrow_connect::lock::Lock;
use tokio::sync::Notify;

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
    has_ended: bool,
}

/// The end of an inbox that a lane's task reads. When it is dropped, because the task was aborted, the messages in the inbox and
/// all later ones are dropped, so that nobody waits for an answer to one of them.
#[derive(Debug)]
pub struct Reader<M>(Arc<Inbox<M>>);

impl<M> Reader<M> {
    /// The reader of a new inbox. An inbox has one reader.
    pub fn new(inbox: Arc<Inbox<M>>) -> Self {
        Reader(inbox)
    }

    /// The inbox, for those who send.
    pub fn inbox(&self) -> Arc<Inbox<M>> {
        self.0.clone()
    }
}

impl<M> Deref for Reader<M> {
    type Target = Inbox<M>;

    fn deref(&self) -> &Inbox<M> {
        &self.0
    }
}

impl<M> Drop for Reader<M> {
    fn drop(&mut self) {
        let mut state = self.0.state.lock();
        state.has_ended = true;
        let unread = take(&mut state.messages);
        drop(state);
        drop(unread); // outside the lock, because a message can send another one when it is dropped
    }
}

impl<M> Default for Inbox<M> {
    fn default() -> Self {
        Inbox {
            state: Lock::new(State { messages: Vec::new(), wake_at: 0, has_ended: false }),
            notify: Notify::new(),
        }
    }
}

impl<M: Urgency> Inbox<M> {
    /// Adds a message. It is dropped if the lane has ended.
    pub fn send(&self, message: M) {
        let mut state = self.state.lock();
        if state.has_ended {
            drop(state); // before the message, which can send another one when it is dropped
            return;
        }
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

#[cfg(test)]
mod tests {
    use tokio::sync::oneshot;

    use super::*;

    /// A question to the lane, which sends another message when it is dropped.
    struct Question {
        _answer: oneshot::Sender<()>,
        inbox: Arc<Inbox<Option<Question>>>,
    }

    impl Urgency for Option<Question> {
        fn is_urgent(&self) -> bool {
            true
        }
    }

    impl Drop for Question {
        fn drop(&mut self) {
            self.inbox.send(None);
        }
    }

    #[test]
    fn nobody_waits_for_the_answer_of_a_lane_that_has_ended() {
        let inbox = Arc::<Inbox<_>>::default();
        let reader = Reader::new(inbox.clone());
        let ask = || {
            let (answer, receiver) = oneshot::channel();
            inbox.send(Some(Question { _answer: answer, inbox: inbox.clone() }));
            receiver
        };
        let before = ask();
        drop(reader);
        let after = ask();
        for mut receiver in [before, after] {
            assert_eq!(receiver.try_recv(), Err(oneshot::error::TryRecvError::Closed));
        }
    }
}
