//! The progress of the gateway's stop. Sessions check it when they are idle.

use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

/// Shared by all sessions.
#[derive(Debug, Default)]
pub struct Stop(AtomicU8);

/// The behaviour of sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Sessions serve their clients.
    Serving,
    /// Another gateway has taken over: sessions of silent clients end. A client that has just connected here is still
    /// served.
    TakenOver,
    /// All sessions end as soon as their work under way is done, and no new client is admitted.
    Leaving,
}

impl Stop {
    /// The present stage.
    pub fn stage(&self) -> Stage {
        match self.0.load(Relaxed) {
            0 => Stage::Serving,
            1 => Stage::TakenOver,
            _ => Stage::Leaving,
        }
    }

    /// Moves to a stage.
    pub fn set(&self, stage: Stage) {
        self.0.store(stage as u8, Relaxed);
    }
}
