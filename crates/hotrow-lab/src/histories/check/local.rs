//! Collects the anomalies that need no cycle, each once.

use super::anomaly::{Anomaly, Name};
use super::story;
use super::view::View;
use crate::histories::history::{Level, Value};
use std::collections::HashSet;

pub struct Local<'h> {
    view: &'h View<'h>,
    seen: HashSet<(Name, Value)>,
    pub found: Vec<Anomaly>,
}

impl<'h> Local<'h> {
    pub fn new(view: &'h View<'h>) -> Self {
        Self { view, seen: HashSet::new(), found: Vec::new() }
    }

    /// Reports an anomaly of a value, or of a key, unless it is known.
    pub fn add(&mut self, name: Name, of: Value, transactions: &[u32], what: String) {
        if !self.seen.insert((name, of)) {
            return;
        }
        let lines = transactions.iter().map(|at| format!("\n  {}", story::of_transaction(self.view, *at)));
        let story = what + &lines.collect::<String>();
        self.found.push(Anomaly { name, in_real_time: false, breaks: Level::ReadCommitted, story });
    }
}
