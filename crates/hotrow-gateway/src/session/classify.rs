//! Classifies long statements on separate threads, a few at a time. The threads that carry all clients' bytes are not
//! blocked. Short statements are classified at once.

use hotrow_core::limits;
use hotrow_core::normalise::Normaliser;
use hotrow_wire::Frame;
use hotrow_wire::frontend::{self, Parse, tag};
use tokio::sync::Semaphore;

use super::{Session, SessionEnd};

/// Limits the number of threads that classify.
static THREADS: Semaphore = Semaphore::const_new(limits::CLASSIFIED_AT_ONCE_MAX);

impl Session {
    /// Makes sure that the statement of a long Query or Parse is known before the message is handled.
    pub(super) async fn classify_long(&mut self, frame: Frame<'_>) -> Result<(), SessionEnd> {
        let pool = self.pool.clone();
        match frame.tag {
            tag::QUERY => {
                let Ok(text) = str::from_utf8(frontend::query(frame.body())?) else { return Ok(()) };
                let shape = self.normaliser.run(text);
                let is_last =
                    self.last_simple.as_ref().is_some_and(|(signature, _)| signature[..] == *shape.signature);
                let is_short = shape.signature.len() <= limits::CLASSIFIED_INLINE_BYTES_MAX;
                if is_short || is_last || pool.context.statements.knows_simple(&shape) {
                    return Ok(());
                }
                let text = text.to_owned();
                on_a_thread(move || drop(pool.context.statements.simple(&Normaliser::new().run(&text))))
                    .await;
            }
            tag::PARSE => {
                let Parse { text, types, .. } = Parse::read(frame.body())?;
                let is_last = self
                    .last_parsed
                    .as_ref()
                    .is_some_and(|statement| statement.text == text && statement.types == types);
                if is_last || pool.context.statements.knows_extended(text, types) {
                    return Ok(());
                }
                let (text, types) = (text.to_owned(), types.to_owned());
                on_a_thread(move || drop(pool.context.statements.extended(&text, &types))).await;
            }
            _ => {}
        }
        Ok(())
    }
}

/// Runs the work when a thread is free, and waits for it. If it fails, the use of the statement meets and reports the
/// error again.
async fn on_a_thread(work: impl FnOnce() + Send + 'static) {
    if let Ok(_permit) = THREADS.acquire().await {
        let _ = tokio::task::spawn_blocking(work).await;
    }
}
