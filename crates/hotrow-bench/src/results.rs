//! What a report holds, in the shape in which it is written as JSON; how it is got or shown is elsewhere.

use crate::control::Setting;
use crate::flush::FlushTime;
use crate::load::Pace;
use crate::machine::Machine;
use crate::scenario::{Figure, Protocol, Through};
use crate::statistics::{Quantiles, Spread};
use crate::watch::ServerWork;
use serde::Serialize;

/// All of one benchmark.
#[derive(Debug, Serialize)]
pub struct Report {
    /// Hotrow's version.
    pub hotrow: String,
    /// When it began, in UTC.
    pub date: String,
    /// Whether it was in too much of a hurry for its figures to mean much.
    pub quick: bool,
    /// How long each run lasted.
    pub seconds: u32,
    /// How long each was warmed up for.
    pub warm_up_seconds: u32,
    /// How often each was run.
    pub rounds: u32,
    /// What it ran on.
    pub machine: Machine,
    /// What PostgreSQL it ran on.
    pub server: Server,
    /// The programs that took part.
    pub tools: Vec<String>,
    /// What was measured.
    pub scenarios: Vec<ScenarioResult>,
}

/// The server.
#[derive(Debug, Serialize)]
pub struct Server {
    /// Its version.
    pub version: String,
    /// Whether this program started it, on this machine and for nothing else.
    pub private: bool,
    /// The settings that bear on the figures.
    pub settings: Vec<Setting>,
    /// How long its disk takes to keep something, where that can be measured.
    pub flush: Option<FlushTime>,
}

impl Server {
    /// The settings that make a commit less than durable.
    pub fn not_durable(&self) -> Vec<&Setting> {
        const DURABLE: [&str; 3] = ["fsync", "synchronous_commit", "full_page_writes"];
        let forgets = |setting: &&Setting| DURABLE.contains(&setting.name.as_str()) && setting.value == "off";
        self.settings.iter().filter(forgets).collect()
    }
}

/// One scenario.
#[derive(Debug, Serialize)]
pub struct ScenarioResult {
    /// Its name.
    pub name: &'static str,
    /// What it shows.
    pub shows: &'static str,
    /// What to compare.
    pub figure: Figure,
    /// How many rows its table had.
    pub rows: u32,
    /// What a reader must know.
    pub remarks: Vec<String>,
    /// What was compared.
    pub techniques: Vec<TechniqueResult>,
}

impl ScenarioResult {
    /// The numbers of clients it was run with, in the order in which it was.
    pub fn clients(&self) -> Vec<u32> {
        self.techniques
            .first()
            .map(|first| first.cells.iter().map(|cell| cell.clients).collect())
            .unwrap_or_default()
    }

    /// How much more a technique does than the one it is set against, with this many clients.
    pub fn ratio(&self, technique: &TechniqueResult, clients: u32) -> Option<f64> {
        let yardstick = self.techniques.iter().find(|candidate| candidate.name == technique.against)?;
        let done = |technique: &TechniqueResult| Some(technique.figures(clients)?.per_second.median);
        Some(done(technique)? / done(yardstick)?).filter(|ratio| ratio.is_finite())
    }
}

/// One technique of it.
#[derive(Debug, Serialize)]
pub struct TechniqueResult {
    /// Its name.
    pub name: &'static str,
    /// What it is.
    pub about: &'static str,
    /// Where its clients connected to.
    pub through: Through,
    /// How they sent their statements.
    pub protocol: Protocol,
    /// What it is set against.
    pub against: &'static str,
    /// One for each number of clients.
    pub cells: Vec<Cell>,
}

impl TechniqueResult {
    /// What came out with this many clients, if anything may be said about it.
    pub fn figures(&self, clients: u32) -> Option<&Figures> {
        match &self.cells.iter().find(|cell| cell.clients == clients)?.outcome {
            CellOutcome::Measured(figures) => Some(figures),
            CellOutcome::Failed { .. } | CellOutcome::Skipped { .. } => None,
        }
    }
}

/// One technique with one number of clients.
#[derive(Debug, Serialize)]
pub struct Cell {
    /// How many.
    pub clients: u32,
    /// What came of it.
    #[serde(flatten)]
    pub outcome: CellOutcome,
}

/// What came of a cell.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case", tag = "outcome")]
pub enum CellOutcome {
    /// Every run's check passed.
    Measured(Figures),
    /// A check failed, so there is no figure.
    Failed {
        /// Why.
        reason: String,
    },
    /// It couldn't be run here.
    Skipped {
        /// Why.
        reason: String,
    },
}

/// The figures of a cell.
#[derive(Debug, Serialize)]
pub struct Figures {
    /// Real work done in a second, over the rounds.
    pub per_second: Spread,
    /// Attempts turned away in a second, over the rounds.
    pub turned_away_per_second: Spread,
    /// Bytes of the server's log for each piece of work, over the rounds.
    pub wal_bytes_each: Spread,
    /// Requests due in a second, in an open loop.
    pub due_per_second: Option<u32>,
    /// How long requests took, all rounds together.
    pub latency: Option<Quantiles>,
    /// Each round.
    pub rounds: Vec<Round>,
}

/// One run.
#[derive(Debug, Clone, Serialize)]
pub struct Round {
    /// Real work done in a second.
    pub per_second: f64,
    /// Attempts turned away in a second.
    pub turned_away_per_second: f64,
    /// Real work done, as the rows confirm it.
    pub done: u64,
    /// Attempts turned away.
    pub turned_away: u64,
    /// What the server wrote to its log meanwhile, for each piece of work.
    pub wal_bytes_each: f64,
    /// How long its requests took.
    pub latency: Option<Quantiles>,
    /// How well the load itself did, where it says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pace: Option<Pace>,
    /// What it cost the server, where that was watched.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<ServerWork>,
}
