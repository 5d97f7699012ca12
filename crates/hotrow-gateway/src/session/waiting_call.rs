//! A waiting call at the front of its session's units. It uses only a timer and a slot. The client may disconnect,
//! cancel the call, or send more messages.

use std::time::{Duration, Instant};

use bytes::BytesMut;
use hotrow_core::limits;
use hotrow_core::session::SessionEnd;
use hotrow_core::unit::put_refusals;
use hotrow_wire::backend::Problem;
use tokio::sync::oneshot;

use super::SessionTask;
use crate::lane::{Backlog, CallWait, Envelope, cancelled};
use crate::session::stop::Stage;

/// The state of such a session and its call on the console.
pub const CALL_WAITS: &str = "waits for something to answer";

/// Why a call stops waiting.
enum WaitEnd {
    /// There may be something for it.
    Retry,
    /// Its time is over: it gets its empty answer.
    TimedOut,
    /// It was cancelled.
    Cancelled,
    /// Its client has disconnected.
    ClientLeft,
}

impl SessionTask {
    /// Waits with a call, the earliest unfinished unit.
    pub(super) async fn wait_with_call(
        &mut self,
        mut packed: Envelope,
        wait: CallWait,
    ) -> Result<(), SessionEnd> {
        let pool = self.pool.clone();
        let readies = packed.unit.readies();
        let refuse = |problem: &Problem| {
            let mut refusals = BytesMut::new();
            put_refusals(problem, readies, &mut refusals);
            refusals
        };
        let answer = match pool.waiting.enter(&packed, self.mailbox.session) {
            Ok(Some(mut waiting_slot)) => {
                self.control.set_waiting(CALL_WAITS);
                // A cancel request that found nothing in the lanes was meant for this call.
                let cancels = self.control.cancels();
                let over = match std::mem::replace(&mut packed.cancels, cancels) == cancels {
                    true => self.wait_until(&mut waiting_slot.woken, &wait).await,
                    false => WaitEnd::Cancelled,
                };
                match if self.control.set_target(None) { WaitEnd::Cancelled } else { over } {
                    WaitEnd::Retry => None,
                    WaitEnd::TimedOut | WaitEnd::ClientLeft => Some((wait.empty, false)),
                    WaitEnd::Cancelled => Some((refuse(&cancelled()), true)),
                }
            }
            Ok(None) => None,
            Err(problem) => Some((refuse(&problem), true)),
        };
        match answer {
            None => {
                packed.since = Instant::now();
                self.session.submit_again(packed);
            }
            Some((answer, refused)) => {
                self.session.answer_returned(&answer, refused);
                self.try_write()?;
            }
        }
        Ok(())
    }

    async fn wait_until(&mut self, woken: &mut oneshot::Receiver<()>, wait: &CallWait) -> WaitEnd {
        let due = wait.again.min(wait.deadline);
        let timer = tokio::time::sleep_until(due.into());
        tokio::pin!(timer);
        loop {
            if self.stop.stage() != Stage::Serving || self.has_ended {
                self.must_leave = true;
                return WaitEnd::TimedOut;
            }
            let Ok(Backlog { unread, .. }) = self.try_write() else { return self.client_left() };
            let room = self.input.len() < limits::SESSION_BUFFER_BYTES;
            tokio::select! {
                biased;
                () = self.control.cancelled_waiting() => return WaitEnd::Cancelled,
                _ = &mut *woken => return WaitEnd::Retry,
                count = self.read.fill(&mut self.input), if room => {
                    if !matches!(count, Ok(1..)) {
                        return self.client_left();
                    }
                    self.arrived();
                }
                writable = self.mailbox.write.writable(), if unread > 0 => {
                    if writable.is_err() {
                        return self.client_left();
                    }
                }
                () = self.mailbox.task_notify.notified() => {} // the gateway may stop
                () = &mut timer => {
                    let now = Instant::now();
                    if now >= wait.deadline {
                        return WaitEnd::TimedOut;
                    }
                    if !self.pool.database_state().is_paused() {
                        return WaitEnd::Retry;
                    }
                    // During a pause no call is repeated.
                    let next = now + Duration::from_millis(limits::WAITING_PAUSED_MS);
                    timer.as_mut().reset(next.min(wait.deadline).into());
                }
            }
        }
    }

    /// The client has disconnected: this call and later ones need no answer.
    fn client_left(&mut self) -> WaitEnd {
        self.has_ended = true;
        WaitEnd::ClientLeft
    }
}
