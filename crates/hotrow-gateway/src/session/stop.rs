//! How far the end of the gateway has come. Sessions look at it when they have nothing under way.

use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

/// Shared by all sessions.
#[derive(Debug, Default)]
pub struct Stop(AtomicU8);

/// What sessions do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// They serve.
    Serving,
    /// Another gateway has taken over: who has nothing to say for a while leaves. A client that has just come, and got in
    /// here, gets what it came for.
    TakenOver,
    /// All leave as soon as nothing of theirs is under way, and nobody new is let in.
    Leaving,
}

impl Stop {
    /// How far it is.
    pub fn stage(&self) -> Stage {
        match self.0.load(Relaxed) {
            0 => Stage::Serving,
            1 => Stage::TakenOver,
            _ => Stage::Leaving,
        }
    }

    /// Goes on to a stage.
    pub fn set(&self, stage: Stage) {
        self.0.store(stage as u8, Relaxed);
    }
}
