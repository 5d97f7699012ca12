//! Classifies long statements on separate threads, a few at a time. The threads that carry all clients' bytes are not
//! blocked. Short statements are classified at once.

use hotrow_core::limits;
use hotrow_core::normalise::Normaliser;
use hotrow_core::session::LongText;
use tokio::sync::Semaphore;

use super::SessionTask;

/// Limits the number of threads that classify.
static THREADS: Semaphore = Semaphore::const_new(limits::CLASSIFIED_AT_ONCE_MAX);

impl SessionTask {
    /// Makes sure that the statement of this text is known, as soon as a thread is free. If this fails, the use of the
    /// statement meets and reports the error again.
    pub(super) async fn classify(&self, text: LongText) {
        let Ok(_permit) = THREADS.acquire().await else { return };
        let pool = self.pool.clone();
        let classified = tokio::task::spawn_blocking(move || {
            let statements = &pool.context.statements;
            match text {
                LongText::Simple(text) => drop(statements.simple(&Normaliser::new().run(&text))),
                LongText::Extended(text, types) => drop(statements.extended(&text, &types)),
            }
        });
        let _ = classified.await;
    }
}
