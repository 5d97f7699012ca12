//! A word for one task, which waits for it; a word that comes too early is kept, and several are one. It knows nobody
//! else who might wait, so that waiting for it among other things costs next to nothing.

use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};

/// Wakes one task.
#[derive(Debug, Default)]
pub struct Wake {
    said: AtomicBool,
    task: Mutex<Option<Waker>>,
}

impl Wake {
    fn task(&self) -> MutexGuard<'_, Option<Waker>> {
        self.task.lock().expect("nothing panics while it holds a waker")
    }

    /// Says the word.
    pub fn wake(&self) {
        self.said.store(true, SeqCst);
        // Whoever registers after this looks whether it was said.
        if let Some(task) = &*self.task() {
            task.wake_by_ref();
        }
    }

    /// Waits for the word. Of several tasks only the last one that waits hears it. Cancel safe.
    pub async fn woken(&self) {
        poll_fn(|context| self.poll(context)).await;
    }

    fn poll(&self, context: &mut Context<'_>) -> Poll<()> {
        if self.take() {
            return Poll::Ready(());
        }
        let mut task = self.task();
        if !task.as_ref().is_some_and(|task| task.will_wake(context.waker())) {
            *task = Some(context.waker().clone());
        }
        drop(task);
        if self.take() { Poll::Ready(()) } else { Poll::Pending }
    }

    fn take(&self) -> bool {
        self.said.load(SeqCst) && self.said.swap(false, SeqCst)
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::sync::Arc;
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn an_early_word_is_kept_and_several_are_one() {
        let wake = Wake::default();
        wake.wake();
        wake.wake();
        wake.woken().await;
        let mut again = pin!(wake.woken());
        let soon = tokio::time::timeout(Duration::from_millis(1), &mut again).await;
        assert!(soon.is_err(), "it was heard already");
        wake.wake();
        again.await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn no_word_is_missed() {
        let (there, back) = (Arc::new(Wake::default()), Arc::new(Wake::default()));
        let other = tokio::spawn({
            let (there, back) = (there.clone(), back.clone());
            async move {
                for _ in 0..10_000 {
                    there.woken().await;
                    back.wake();
                }
            }
        });
        for _ in 0..10_000 {
            there.wake();
            back.woken().await;
        }
        other.await.unwrap();
    }
}
