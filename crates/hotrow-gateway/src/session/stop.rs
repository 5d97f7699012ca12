//! The progress of the gateway's stop. Sessions check it when they are idle.

use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

use hotrow_core::session::Stage;

/// Shared by all sessions.
#[derive(Debug, Default)]
pub struct Stop(AtomicU8);

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
