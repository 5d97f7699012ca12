//! Ctrl-C, SIGTERM and SIGHUP while the demo runs. Never what is done about them: the caller cleans up.

use std::future::Future;

use tokio::signal::unix::{Signal, SignalKind, signal};

use super::error::Error;

/// The requests to stop.
pub struct StopSignals {
    interrupt: Signal,
    terminate: Signal,
    hangup: Signal,
}

impl StopSignals {
    /// From now on these signals no longer end the program by themselves.
    pub fn listen() -> Result<Self, Error> {
        let listen = |kind| signal(kind).map_err(Error::Runtime);
        Ok(Self {
            interrupt: listen(SignalKind::interrupt())?,
            terminate: listen(SignalKind::terminate())?,
            hangup: listen(SignalKind::hangup())?,
        })
    }

    /// Does the work, unless someone asks to stop.
    pub async fn or<T>(&mut self, work: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
        tokio::select! {
            biased;
            () = self.asked() => Err(Error::Stopped),
            outcome = work => outcome,
        }
    }

    async fn asked(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
            _ = self.hangup.recv() => {}
        }
    }
}
