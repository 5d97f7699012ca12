//! A notification for one task. An early notification is kept, and several count as one. It has no list of waiters, so
//! waiting for it among other events costs next to nothing.

use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::task::{Context, Poll, Waker};

use hotrow_connect::lock::Lock;

/// Notifies one task.
#[derive(Debug, Default)]
pub struct TaskNotify {
    is_notified: AtomicBool,
    task: Lock<Option<Waker>>,
}

impl TaskNotify {
    /// Notifies the task.
    pub fn notify(&self) {
        self.is_notified.store(true, SeqCst);
        // A task that registers after this line sees the flag.
        if let Some(task) = &*self.task.lock() {
            task.wake_by_ref();
        }
    }

    /// Waits for a notification. Only the last of several waiting tasks is woken. Cancel safe.
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
    async fn an_early_notification_is_kept_and_several_count_as_one() {
        let long = Duration::from_secs(30);
        let notify = TaskNotify::default();
        notify.notify();
        notify.notify();
        timeout(long, notify.notified()).await.expect("the notification was kept");
        let mut again = pin!(notify.notified());
        let soon = timeout(Duration::from_millis(1), &mut again).await;
        assert!(soon.is_err(), "the notification was consumed");
        notify.notify();
        timeout(long, again).await.expect("there is another notification");
    }

    /// Records that it was woken.
    #[derive(Default)]
    struct Task(AtomicBool);

    impl std::task::Wake for Task {
        fn wake(self: Arc<Self>) {
            self.0.store(true, SeqCst);
        }
    }

    /// Spins at first: two threads that wait for each other in this way continue at the same moment.
    fn until(reached: &AtomicUsize, round: usize) {
        for look in 1.. {
            if reached.load(SeqCst) >= round {
                return;
            }
            if look % 1_000 == 0 { std::thread::yield_now() } else { std::hint::spin_loop() }
        }
    }

    #[test]
    fn no_notification_is_missed() {
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
                // A bit later each time: the notification comes before, while or after the task begins to wait.
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
