//! Signals from an operator.

use tokio::signal::unix::{self, SignalKind};

/// A request from an operator.
pub enum Signal {
    /// SIGTERM, SIGINT: stop after transactions under way.
    Stop,
    /// SIGHUP: read the settings again.
    Reload,
    /// SIGUSR2: start a successor and hand over.
    HandOver,
}

/// The handled signals.
pub struct Signals {
    terminate: unix::Signal,
    interrupt: unix::Signal,
    hangup: unix::Signal,
    user_two: unix::Signal,
}

impl Signals {
    /// Registers the handlers.
    pub fn new() -> std::io::Result<Self> {
        Ok(Signals {
            terminate: unix::signal(SignalKind::terminate())?,
            interrupt: unix::signal(SignalKind::interrupt())?,
            hangup: unix::signal(SignalKind::hangup())?,
            user_two: unix::signal(SignalKind::user_defined2())?,
        })
    }

    /// Waits for the next signal. Cancel safe.
    pub async fn next(&mut self) -> Signal {
        tokio::select! {
            _ = self.terminate.recv() => Signal::Stop,
            _ = self.interrupt.recv() => Signal::Stop,
            _ = self.hangup.recv() => Signal::Reload,
            _ = self.user_two.recv() => Signal::HandOver,
        }
    }
}
