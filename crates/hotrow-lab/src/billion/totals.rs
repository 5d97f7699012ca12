//! The totals of all checked rounds, which a run's folder keeps, and how a round is added. No I/O.

use super::check::Found;
use super::plan::{Event, Goal, Progress};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Version of the file with the totals.
pub const FORMAT: u32 = 1;

/// What a run has shown so far.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Totals {
    pub format: u32,
    /// The version of the program that has made the run.
    pub version: String,
    /// The day on which the run began.
    pub began: String,
    pub goal: Goal,
    /// Rounds that were checked without a contradiction.
    pub rounds: u64,
    /// Seconds under load, and seconds of checks, in milliseconds.
    pub load_ms: u64,
    pub check_ms: u64,
    /// Acknowledged statements by kind.
    pub statements: BTreeMap<String, u64>,
    /// Kills and restarts by kind.
    pub events: BTreeMap<String, u64>,
    pub kills: u64,
    /// Changes of tables, indexes and functions.
    pub ddl: u64,
    /// Requests that were answered as not executed during an outage.
    pub not_run: u64,
    /// Requests whose answer did not say what happened, and those among them that were applied.
    pub unknown: u64,
    pub applied: u64,
    pub connections: u64,
    /// How often a program had to begin the run again.
    pub starts: u64,
    /// Units by way, as far as gateways have counted them that lived until a round's end.
    pub units: BTreeMap<String, u64>,
    /// The most memory of a gateway.
    pub gateway_bytes: u64,
    /// The first contradiction. Nothing is added after it.
    pub fault: Option<String>,
}

/// What happened in a round, besides the answers.
#[derive(Clone, Debug, Default)]
pub struct Happened {
    pub load_ms: u64,
    pub check_ms: u64,
    pub events: Vec<Event>,
    pub ddl: u64,
    pub connections: u64,
    pub units: BTreeMap<String, u64>,
    pub gateway_bytes: u64,
}

impl Totals {
    /// The totals of a run that begins.
    pub fn new(goal: Goal, began: String) -> Self {
        let version = env!("CARGO_PKG_VERSION").to_owned();
        Self { format: FORMAT, version, began, goal, ..Self::default() }
    }

    /// All acknowledged statements.
    pub fn acknowledged(&self) -> u64 {
        self.statements.values().sum()
    }

    /// The progress at the beginning of the next round.
    pub fn progress(&self) -> Progress {
        let statements = self.acknowledged();
        let events = self.events.values().sum();
        Progress { statements, kills: self.kills, events, at_last_event: statements }
    }

    /// Whether the goal is reached.
    pub fn is_done(&self) -> bool {
        self.acknowledged() >= self.goal.statements && self.kills >= self.goal.kills
    }

    /// Adds a checked round.
    pub fn add(&mut self, happened: &Happened, found: &Found) {
        let add = |sums: &mut BTreeMap<String, u64>, name: &str, count: u64| {
            *sums.entry(name.to_owned()).or_default() += count;
        };
        self.rounds += 1;
        self.load_ms += happened.load_ms;
        self.check_ms += happened.check_ms;
        found.statements.iter().for_each(|(kind, count)| add(&mut self.statements, kind.name(), *count));
        happened.events.iter().for_each(|event| add(&mut self.events, event.name(), 1));
        happened.units.iter().for_each(|(way, count)| add(&mut self.units, way, *count));
        self.kills += happened.events.iter().filter(|event| event.is_kill()).count() as u64;
        self.ddl += happened.ddl;
        self.not_run += found.not_run;
        self.unknown += found.unknown;
        self.applied += found.applied;
        self.connections += happened.connections;
        self.gateway_bytes = self.gateway_bytes.max(happened.gateway_bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::{Happened, Totals};
    use crate::billion::check::Found;
    use crate::billion::plan::{Event, Goal};
    use crate::billion::work::Kind;

    #[test]
    fn rounds_are_added_and_survive_the_file() {
        let mut totals = Totals::new(Goal { statements: 100, kills: 2 }, "2026-01-31".into());
        let happened = Happened {
            events: vec![Event::KillServer, Event::RestartServer],
            units: [("packed".to_owned(), 5)].into(),
            gateway_bytes: 7,
            ..Happened::default()
        };
        let found = Found {
            statements: [(Kind::Update, 40), (Kind::Read, 10)].into(),
            not_run: 1,
            unknown: 3,
            applied: 2,
        };
        totals.add(&happened, &found);
        assert!(!totals.is_done());
        totals.add(&happened, &found);
        assert!(totals.is_done());
        let progress = totals.progress();
        assert_eq!((progress.statements, progress.kills, progress.events), (100, 2, 4));
        assert_eq!(
            (totals.unknown, totals.applied, totals.units["packed"], totals.gateway_bytes),
            (6, 4, 10, 7)
        );
        let text = serde_json::to_string(&totals).unwrap();
        assert_eq!(serde_json::from_str::<Totals>(&text).unwrap(), totals);
    }
}
