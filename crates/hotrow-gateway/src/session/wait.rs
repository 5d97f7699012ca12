//! A call that has found nothing and waits, at the front of its session's units: it costs a timer and its place. The client
//! may go, cancel it, or send what comes after it.

use std::time::{Duration, Instant};

use hotrow_core::limits;
use tokio::sync::oneshot;

use super::{End, Session};
use crate::lane::Envelope;
use crate::lane::Left;
use crate::lane::Wait;
use crate::session::stop::Stage;
use hotrow_core::unit::put_refusals;

/// What operators are told that such a session, and its call, does.
pub const WAITS: &str = "waits for something to answer";

/// Why a call waits no more.
enum Over {
    /// There may be something for it.
    Ask,
    /// It gets its empty answer.
    Time,
    /// It was cancelled.
    Cancelled,
    /// Its client is gone.
    Left,
}

impl Session {
    /// Waits with a call, the earliest unit that is not done.
    pub(super) async fn wait_with(&mut self, slot: u64, mut packed: Envelope, wait: Wait) -> Result<(), End> {
        let pool = self.pool.clone();
        let over = match pool.waiting.enter(&packed, self.mailbox.session) {
            Ok(Some(mut seat)) => {
                self.control.waits(WAITS);
                // A cancel request that has found nothing in the lanes meant this call.
                let cancels = self.control.cancels();
                let over = match std::mem::replace(&mut packed.cancels, cancels) == cancels {
                    true => self.wait_until(&mut seat.woken, &wait).await,
                    false => Over::Cancelled,
                };
                if self.control.set_target(None) { Over::Cancelled } else { over }
            }
            Ok(None) => Over::Ask,
            Err(problem) => {
                self.mailbox.append(|out| put_refusals(&problem, packed.unit.readies(), out));
                self.mailbox.finish_front();
                self.mailbox.try_write()?;
                return Ok(());
            }
        };
        match over {
            Over::Ask => {
                packed.since = Instant::now();
                return self.submit_again(slot, packed).await;
            }
            Over::Time | Over::Left => self.mailbox.append(|out| out.extend_from_slice(&wait.empty)),
            Over::Cancelled => {
                self.mailbox
                    .append(|out| put_refusals(&crate::lane::cancelled(), packed.unit.readies(), out));
            }
        }
        self.mailbox.finish_front();
        self.mailbox.try_write()?;
        Ok(())
    }

    async fn wait_until(&mut self, woken: &mut oneshot::Receiver<()>, wait: &Wait) -> Over {
        let due = wait.again.min(wait.deadline);
        let timer = tokio::time::sleep_until(due.into());
        tokio::pin!(timer);
        loop {
            if self.stop.stage() != Stage::Serving || self.ends {
                self.leaves = true;
                return Over::Time;
            }
            let Ok(Left { unread, .. }) = self.mailbox.try_write() else { return self.left() };
            let room = self.input.len() < limits::SESSION_BUFFER_BYTES;
            tokio::select! {
                biased;
                () = self.control.cancelled_waiting() => return Over::Cancelled,
                _ = &mut *woken => return Over::Ask,
                count = self.read.fill(&mut self.input), if room => {
                    if !matches!(count, Ok(1..)) {
                        return self.left();
                    }
                }
                writable = self.mailbox.write.writable(), if unread > 0 => {
                    if writable.is_err() {
                        return self.left();
                    }
                }
                () = self.mailbox.wake.woken() => {} // the gateway may stop
                () = &mut timer => {
                    let now = Instant::now();
                    if now >= wait.deadline {
                        return Over::Time;
                    }
                    if !self.pool.database_state().is_paused() {
                        return Over::Ask;
                    }
                    // During a pause nobody is asked.
                    let next = now + Duration::from_millis(limits::WAITING_PAUSED_MS);
                    timer.as_mut().reset(next.min(wait.deadline).into());
                }
            }
        }
    }

    /// Nobody wants an answer any more, nor to the calls behind this one.
    fn left(&mut self) -> Over {
        self.ends = true;
        Over::Left
    }
}
