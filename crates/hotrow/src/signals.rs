//! What an operator may tell the program by signals.

use tokio::signal::unix::{self, SignalKind};

/// What is to be done.
pub enum Signal {
    /// SIGTERM, SIGINT: stop in order.
    Stop,
    /// SIGHUP: read the settings again.
    Reload,
    /// SIGUSR2: start a successor and hand over.
    HandOver,
}

/// All that are listened to.
pub struct Signals {
    terminate: unix::Signal,
    interrupt: unix::Signal,
    hangup: unix::Signal,
    user_two: unix::Signal,
}

impl Signals {
    /// Listens to them from now on.
    pub fn new() -> std::io::Result<Self> {
        Ok(Signals {
            terminate: unix::signal(SignalKind::terminate())?,
            interrupt: unix::signal(SignalKind::interrupt())?,
            hangup: unix::signal(SignalKind::hangup())?,
            user_two: unix::signal(SignalKind::user_defined2())?,
        })
    }

    /// The next one. Cancel safe.
    pub async fn next(&mut self) -> Signal {
        tokio::select! {
            _ = self.terminate.recv() => Signal::Stop,
            _ = self.interrupt.recv() => Signal::Stop,
            _ = self.hangup.recv() => Signal::Reload,
            _ = self.user_two.recv() => Signal::HandOver,
        }
    }
}
