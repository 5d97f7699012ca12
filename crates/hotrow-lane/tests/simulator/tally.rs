//! Counts relevant events in simulated runs. A test can require that they happened.

use std::collections::BTreeMap;

use hotrow_lane::lane::{Changes, LaneKind, Outcome};

use super::history::{Evidence, Fate, History};
use super::model::Reply;
use super::server::Entry;

#[derive(Debug, Default)]
pub struct Tally(BTreeMap<String, usize>);

impl Tally {
    pub fn add(&mut self, history: &History) {
        for one in &history.outcomes {
            match (one.fate, &one.evidence) {
                (Fate::Answered(..), Some(evidence)) => self.count(&format!("answered: {}", proof(evidence))),
                (Fate::Answered(_, Reply::Error), None) => self.count("failed alone"),
                (Fate::Answered(..), None) => self.count("answered alone"),
                (fate, Some(evidence)) => self.count(&format!("{fate:?}: {}", proof(evidence))),
                (fate, None) => self.count(&format!("{fate:?}")),
            }
        }
        for (_, evidence) in &history.again {
            self.count(&format!("again: {}", proof(evidence)));
        }
        for (batch, _) in &history.left {
            self.count(&format!("left: {}", proof(&history.batches[*batch].evidence)));
        }
        for batch in &history.batches {
            self.count(&format!("{} under way", batch.under_way));
            if batch.units.iter().any(|unit| history.units[*unit].then.is_some()) {
                self.count(&format!("two statements: {}", proof(&batch.evidence)));
            }
            if !batch.ahead.is_empty() {
                self.count(&format!("locked ahead: {}", proof(&batch.evidence)));
            }
            if batch.calls.iter().any(|units| *units > 1) {
                self.count(&format!("merged: {}", proof(&batch.evidence)));
            }
        }
        if history.log.iter().any(|entry| matches!(entry, Entry::Direct { .. })) {
            self.count("direct change");
        }
        if history.moved > 0 {
            self.count("moved on");
        }
        if history.too_slow > 0 {
            self.count("too slow");
        }
        if history.held > 0 {
            self.count("held back");
        }
        if history.paused > 0 {
            self.count("paused");
        }
        if history.parked > 0 {
            self.count("parked behind a lock");
        }
    }

    fn count(&mut self, what: &str) {
        *self.0.entry(what.to_owned()).or_default() += 1;
    }

    /// Fails unless all of these events happened.
    pub fn require(&self, wanted: &[&str]) {
        for what in wanted {
            assert!(self.0.contains_key(*what), "{what:?} never happened: {self:#?}");
        }
    }

    /// Fails if an event whose name contains this text happened.
    pub fn require_none(&self, unwanted: &str) {
        assert!(!self.0.keys().any(|what| what.contains(unwanted)), "{unwanted:?} happened: {self:#?}");
    }
}

/// The evidence for a batch's outcome, strongest first.
fn proof(evidence: &Evidence) -> &'static str {
    match evidence {
        Evidence { failed: true, ready: true, .. } => "failed",
        Evidence { failed: true, .. } => "failed and lost",
        Evidence { xid: Some(None), changes: Changes::Rows, ready: true, .. } => "changed elsewhere, ready",
        Evidence { xid: Some(None), changes: Changes::Rows, .. } => "changed elsewhere, lost",
        Evidence { xid: Some(None), changes: Changes::Hidden, ready: false, .. } => "hidden changes, lost",
        Evidence { ready: true, .. } => "ready",
        Evidence { kind: LaneKind::Read, .. } => "reads only",
        Evidence { written: false, .. } => "not all sent",
        Evidence { xid: Some(None), .. } => "nothing written",
        Evidence { resolved: Some(Outcome::Committed), .. } => "asked, committed",
        Evidence { resolved: Some(Outcome::Aborted), xid: None, .. } => "no id, none committed",
        Evidence { resolved: Some(Outcome::Aborted), crashed: true, .. } => "lost in a crash",
        Evidence { resolved: Some(Outcome::Aborted), .. } => "asked, aborted",
        Evidence { resolved: Some(Outcome::Unknown), xid: None, crashed: true, .. } => "no id, crashed",
        Evidence { resolved: Some(Outcome::Unknown), xid: None, .. } => "no id",
        Evidence { resolved: Some(Outcome::Unknown), crashed: true, .. } => "asked, crashed",
        Evidence { resolved: Some(Outcome::Unknown), .. } => "asked, unknown",
        Evidence { xid: Some(_), gave_up: true, .. } => "outcome not available",
        Evidence { xid: None, .. } => "no id",
        Evidence { .. } => "nothing",
    }
}
