//! Clients that go away while a statement runs or waits. If the server ends the statements of such clients
//! (`client_connection_check_interval`), the gateway does too. Otherwise they are run to their end, as without the gateway.

use bytes::BytesMut;
use hotrow_connect::net::ReadHalf;
use hotrow_core::limits;
use hotrow_lane::cancel::WaitsFor;

use super::SessionTask;

impl SessionTask {
    /// Whether the work of a client that goes away now is ended.
    pub(super) fn ends_work(&self) -> bool {
        !self.is_gone && self.pool.context.ends_work_of_gone_clients()
    }

    /// Waits for something. A cancel request ends the wait, and so does the end of a client whose work ends with it. If that comes when
    /// the wait is over, its result is in the error.
    pub(super) async fn wait_for<R>(
        &mut self,
        waits_for: WaitsFor,
        wait: impl Future<Output = R>,
    ) -> Result<R, Option<R>> {
        let ends_work = self.ends_work();
        let control = self.control.clone();
        tokio::select! {
            biased;
            result = control.unless_cancelled(waits_for, wait) => return result,
            () = hung_up(&mut self.read, &mut self.input), if ends_work => {}
        }
        self.is_gone = true;
        control.wait_over();
        Err(None)
    }

    /// The client has gone: its statement is cancelled, wherever it is. A connection that the session holds is closed, so the
    /// server runs no later statement of the client.
    pub(super) fn gone(&mut self) {
        let works = self.mailbox.pending() > 0 || self.session.held_state().0;
        if self.ends_work() && works {
            self.control.client_left();
        }
        self.is_gone = true;
    }
}

/// Returns when the client has closed the connection. To see that, it reads ahead, up to a bound: the end of a client that has
/// sent more than that is seen later.
pub(super) async fn hung_up(read: &mut ReadHalf, input: &mut BytesMut) {
    while input.len() < limits::SESSION_BUFFER_BYTES {
        if !matches!(read.fill(input).await, Ok(1..)) {
            return;
        }
    }
    std::future::pending().await
}
