//! A waiting call at the front of its session's units. It uses only a timer and a slot. The client may disconnect,
//! cancel the call, or send more messages. `hotrow_core::session::CallTimer` decides when the wait ends.

use std::time::{Duration, Instant};

use hotrow_core::limits;
use hotrow_core::session::{CallEnd, CallEvent, CallTimer, SessionEnd};
use hotrow_lane::cancel::WaitsFor;
use tokio::sync::oneshot;

use super::SessionTask;
use crate::lane::{CallWait, Envelope};
use crate::mailbox::Backlog;

impl SessionTask {
    /// Waits with a call, the earliest unfinished unit.
    pub(super) async fn wait_with_call(
        &mut self,
        mut packed: Envelope,
        wait: CallWait,
    ) -> Result<(), SessionEnd> {
        let pool = self.pool.clone();
        let end = match pool.waiting.enter(&packed, self.mailbox.session) {
            Ok(Some(mut waiting_slot)) => {
                let control = self.control.clone();
                let waits = self.wait_until(&mut waiting_slot.woken, &wait);
                control.unless_cancelled(WaitsFor::Answer, waits).await.unwrap_or(CallEnd::Cancelled)
            }
            Ok(None) => CallEnd::Retry,
            Err(problem) => {
                self.session.refuse_returned(&packed, &problem);
                return self.try_write().map(drop);
            }
        };
        packed.since = Instant::now();
        self.session.call_ended(packed, end, &wait.empty);
        self.try_write().map(drop)
    }

    async fn wait_until(&mut self, woken: &mut oneshot::Receiver<()>, wait: &CallWait) -> CallEnd {
        let mut call = CallTimer::new(wait.retry_at, wait.deadline);
        let timer = tokio::time::sleep_until(call.look_at().into());
        tokio::pin!(timer);
        loop {
            let event = if self.session.ends_calls(self.stop.stage()) {
                Some(CallEvent::Stops)
            } else {
                tokio::select! {
                    biased;
                    event = self.call_event(woken) => event,
                    () = &mut timer => {
                        let now = Instant::now();
                        let later = now + Duration::from_millis(limits::WAITING_PAUSED_MS);
                        let paused = self.pool.database_state().is_paused().then_some(later);
                        Some(CallEvent::Time { now, paused })
                    }
                }
            };
            if let Some(end) = event.and_then(|event| call.step(event)) {
                return end;
            }
            timer.as_mut().reset(call.look_at().into());
        }
    }

    /// The next event for a waiting call, apart from its timer. None if there is none for it.
    async fn call_event(&mut self, woken: &mut oneshot::Receiver<()>) -> Option<CallEvent<Instant>> {
        let Ok(Backlog { unread, .. }) = self.try_write() else { return Some(self.client_left()) };
        let room = self.input.len() < limits::SESSION_BUFFER_BYTES;
        tokio::select! {
            biased;
            _ = woken => Some(CallEvent::Woken),
            count = self.read.fill(&mut self.input), if room => match count {
                Ok(1..) => {
                    self.arrived();
                    None
                }
                _ => Some(self.client_left()),
            },
            writable = self.mailbox.write.writable(), if unread > 0 => {
                writable.is_err().then(|| self.client_left())
            }
            () = self.mailbox.task_notify.notified() => None, // the gateway may stop
        }
    }

    /// The client has disconnected: this call and later ones need no answer.
    fn client_left(&mut self) -> CallEvent<Instant> {
        self.session.client_left();
        CallEvent::ClientLeft
    }
}
