//! A word for one task, which waits for it; a word that comes too early is kept, and several are one. It knows nobody
//! else who might wait, so that waiting for it among other things costs next to nothing.

use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::task::{Context, Poll, Waker};

use crate::lock::Lock;

/// Wakes one task.
#[derive(Debug, Default)]
pub struct TaskNotify {
    is_notified: AtomicBool,
    task: Lock<Option<Waker>>,
}

impl TaskNotify {
    /// Says the word.
    pub fn notify(&self) {
        self.is_notified.store(true, SeqCst);
        // Whoever registers after this looks whether it was said.
        if let Some(task) = &*self.task.lock() {
            task.wake_by_ref();
        }
    }

    /// Waits for the word. Of several tasks only the last one that waits hears it. Cancel safe.
    pub async fn notified(&self) {
        poll_fn(|context| self.poll(context)).await;
    }

    fn poll(&self, context: &mut Context<'_>) -> Poll<()> {
        if self.take() {
            return Poll::Ready(());
        }
        let mut task = self.task.lock();
        if !task.as_ref().is_some_and(|task| task.will_wake(context.waker())) {
            *task = Some(context.waker().clone());
        }
        drop(task);
        if self.take() { Poll::Ready(()) } else { Poll::Pending }
    }

    fn take(&self) -> bool {
        self.is_notified.load(SeqCst) && self.is_notified.swap(false, SeqCst)
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::sync::Arc;
    use std::sync::atomic::AtomicUsize;
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;

    #[tokio::test]
    async fn an_early_word_is_kept_and_several_are_one() {
        let long = Duration::from_secs(30);
        let notify = TaskNotify::default();
        notify.notify();
        notify.notify();
        timeout(long, notify.notified()).await.expect("it was said before");
        let mut again = pin!(notify.notified());
        let soon = timeout(Duration::from_millis(1), &mut again).await;
        assert!(soon.is_err(), "it was heard already");
        notify.notify();
        timeout(long, again).await.expect("it was said again");
    }

    /// A task that notes that it was woken.
    #[derive(Default)]
    struct Task(AtomicBool);

    impl std::task::Wake for Task {
        fn wake(self: Arc<Self>) {
            self.0.store(true, SeqCst);
        }
    }

    /// Looks all the time at first: two threads that wait for each other in this way go on at the same moment.
    fn until(reached: &AtomicUsize, round: usize) {
        for look in 1.. {
            if reached.load(SeqCst) >= round {
                return;
            }
            if look % 1_000 == 0 { std::thread::yield_now() } else { std::hint::spin_loop() }
        }
    }

    #[test]
    fn no_word_is_missed() {
        const ROUNDS: usize = 10_000;
        let (notify, begun, is_notified) = (TaskNotify::default(), AtomicUsize::new(0), AtomicUsize::new(0));
        let mut missed = 0;
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for round in 1..=ROUNDS {
                    until(&begun, round);
                    notify.notify();
                    is_notified.store(round, SeqCst);
                }
            });
            for round in 1..=ROUNDS {
                let task = Arc::new(Task::default());
                let waker = task.clone().into();
                begun.store(round, SeqCst);
                // A bit later each time: the word comes before the task begins to wait, as it does, or afterwards.
                (0..round % 8).for_each(|_| std::hint::spin_loop());
                let heard = notify.poll(&mut Context::from_waker(&waker)).is_ready();
                until(&is_notified, round);
                missed += usize::from(!heard && !task.0.load(SeqCst));
                notify.take();
            }
        });
        assert_eq!(missed, 0);
    }
}
