//! What the service manager is told (sd_notify): nothing where there is none.

use sd_notify::NotifyState;

/// This process serves. It may be another one than the manager has started.
pub fn ready() {
    tell(&[NotifyState::MainPid(std::process::id()), NotifyState::Ready]);
}

/// The settings are read again; followed by [`ready`].
pub fn reloading() {
    if let Ok(now) = NotifyState::monotonic_usec_now() {
        tell(&[NotifyState::Reloading, now]);
    }
}

/// This process stops, and no other one of the service goes on.
pub fn stopping() {
    tell(&[NotifyState::Stopping]);
}

fn tell(state: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(state) {
        tracing::warn!(%error, "the service manager can't be told");
    }
}
