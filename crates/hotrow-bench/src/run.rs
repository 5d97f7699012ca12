//! One run of the benchmark, as it is planned: a scenario, a technique, a number of clients. Never makes it.

use crate::scenario::{Scenario, Technique};

/// One run to be made.
#[derive(Debug, Clone, Copy)]
pub struct Run {
    /// Of this scenario.
    pub scenario: &'static Scenario,
    /// In this way.
    pub technique: &'static Technique,
    /// With this many.
    pub clients: u32,
    /// At this rate, in an open loop.
    pub rate: Option<u32>,
}
