//! Ctrl-C, SIGTERM and SIGHUP while the demo runs. The caller cleans up.

use std::future::Future;

use tokio::signal::unix::{Signal, SignalKind, signal};

use super::error::Error;

/// The signals that ask the demo to stop.
pub struct StopSignals {
    interrupt: Signal,
    terminate: Signal,
    hangup: Signal,
}

impl StopSignals {
    /// Registers the signals: they no longer end the program.
    pub fn listen() -> Result<Self, Error> {
        let listen = |kind| signal(kind).map_err(Error::Runtime);
        Ok(Self {
            interrupt: listen(SignalKind::interrupt())?,
            terminate: listen(SignalKind::terminate())?,
            hangup: listen(SignalKind::hangup())?,
        })
    }

    /// Does the work, unless a signal arrives.
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
