//! The data of a report, in its JSON form. It is computed and shown elsewhere.

use crate::control::Setting;
use crate::doctor_report::{Examined, Range};
use crate::flush::FlushTime;
use crate::load::Pace;
use crate::machine::Machine;
use crate::scenario::{Figure, Protocol, Through};
use crate::statistics::{Quantiles, Spread};
use crate::watch::ServerWork;
use serde::Serialize;

/// The results of one benchmark.
#[derive(Debug, Serialize)]
pub struct Report {
    /// The version of Hotrow.
    pub hotrow: String,
    /// The start time in UTC.
    pub date: String,
    /// Whether it was a short check without meaningful figures.
    pub quick: bool,
    /// The length of each run.
    pub seconds: u32,
    /// The length of each warm-up.
    pub warm_up_seconds: u32,
    /// The number of runs of each technique.
    pub rounds: u32,
    pub machine: Machine,
    pub server: Server,
    /// The other programs and their versions.
    pub tools: Vec<String>,
    pub scenarios: Vec<ScenarioResult>,
}

#[derive(Debug, Serialize)]
pub struct Server {
    pub version: String,
    /// Whether the benchmark started the server for itself, on this machine.
    pub private: bool,
    /// The settings that influence the figures.
    pub settings: Vec<Setting>,
    /// The time of a flush on its disk, if it can be measured.
    pub flush: Option<FlushTime>,
}

impl Server {
    /// Settings that are off and make commits less than durable.
    pub fn not_durable(&self) -> Vec<&Setting> {
        const DURABLE: [&str; 3] = ["fsync", "synchronous_commit", "full_page_writes"];
        let is_off = |setting: &&Setting| DURABLE.contains(&setting.name.as_str()) && setting.value == "off";
        self.settings.iter().filter(is_off).collect()
    }
}

#[derive(Debug, Serialize)]
pub struct ScenarioResult {
    pub name: &'static str,
    /// The subject of the scenario.
    pub shows: &'static str,
    /// The figure to compare.
    pub figure: Figure,
    /// The number of rows in its table.
    pub rows: u32,
    /// Remarks for the reader.
    pub remarks: Vec<String>,
    /// The compared techniques.
    pub techniques: Vec<TechniqueResult>,
    /// Predicted and measured gains, if there is a prediction.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub gains: Vec<Gain>,
    /// The cost of new traffic, if the scenario is about that.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub novelties: Vec<Novelty>,
}

/// The cost of new traffic through Hotrow, compared with its direct cost.
#[derive(Debug, Serialize)]
pub struct Novelty {
    /// The number of clients.
    pub clients: u32,
    /// (through Hotrow with what is new / without) / (directly with what is new / without), over the rounds.
    pub share: Spread,
    /// Through Hotrow with what is new / directly with what is new, the median of the rounds.
    pub through_by_direct: f64,
    /// Whether it is within the bounds.
    pub is_within: bool,
    /// Latencies, if the scenario is about first executions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_use: Option<FirstUse>,
    /// The gateway's work without anything new, in all rounds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gateway_without: Option<GatewayWork>,
    /// The same with what is new.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gateway: Option<GatewayWork>,
}

/// Median latencies in microseconds.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct FirstUse {
    /// Of first executions directly.
    pub direct_us: u64,
    /// Of first executions through Hotrow.
    pub hotrow_us: u64,
    /// Of a statement that Hotrow passes through.
    pub round_trip_us: u64,
}

/// The work of a gateway besides that of the server.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct GatewayWork {
    /// Rounds of questions to the catalog.
    pub questions: u64,
    /// Statements of both loads.
    pub statements: u64,
    /// Statements of the second load among them.
    pub beside: u64,
    /// CPU time.
    pub cpu_us: u64,
    /// The resident memory before the first of them.
    pub bytes_before: u64,
    /// The resident memory after the last of them.
    pub bytes_after: u64,
}

impl GatewayWork {
    /// Rounds of questions for each statement.
    pub fn questions_per_statement(&self) -> f64 {
        self.questions as f64 / self.statements as f64
    }

    /// Microseconds of CPU time for each statement.
    pub fn cpu_us_per_statement(&self) -> f64 {
        self.cpu_us as f64 / self.statements as f64
    }

    /// Its work in this run and in a later one.
    pub fn and(self, later: Self) -> Self {
        Self {
            questions: self.questions + later.questions,
            statements: self.statements + later.statements,
            beside: self.beside + later.beside,
            cpu_us: self.cpu_us + later.cpu_us,
            bytes_after: later.bytes_after,
            ..self
        }
    }
}

/// The gain that the doctor predicts, and the measured one.
#[derive(Debug, Serialize)]
pub struct Gain {
    /// The number of clients.
    pub clients: u32,
    pub predicted: Range,
    /// The situations that the doctor found, in the order of the rounds. Empty if it made its report elsewhere.
    pub findings: Vec<String>,
    /// The measured factor.
    pub measured: f64,
    /// Whether the measured factor lies in the predicted range.
    pub is_within: bool,
}

impl ScenarioResult {
    /// The numbers of clients, in the order of the runs.
    pub fn clients(&self) -> Vec<u32> {
        self.techniques
            .first()
            .map(|first| first.cells.iter().map(|cell| cell.clients).collect())
            .unwrap_or_default()
    }

    /// The throughput of a technique divided by that of its baseline, with this number of clients.
    pub fn ratio(&self, technique: &TechniqueResult, clients: u32) -> Option<f64> {
        let baseline = self.techniques.iter().find(|candidate| candidate.name == technique.against)?;
        let done = |technique: &TechniqueResult| Some(technique.figures(clients)?.per_second.median);
        Some(done(technique)? / done(baseline)?).filter(|ratio| ratio.is_finite())
    }
}

#[derive(Debug, Serialize)]
pub struct TechniqueResult {
    pub name: &'static str,
    /// Its description.
    pub about: &'static str,
    /// The address type of its clients.
    pub through: Through,
    /// The protocol of its clients.
    pub protocol: Protocol,
    /// The name of its baseline.
    pub against: &'static str,
    /// One cell for each number of clients.
    pub cells: Vec<Cell>,
}

impl TechniqueResult {
    /// The figures with this number of clients, if there are any.
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
    /// The number of clients.
    pub clients: u32,
    #[serde(flatten)]
    pub outcome: CellOutcome,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case", tag = "outcome")]
pub enum CellOutcome {
    /// The check of every run passed.
    Measured(Figures),
    /// A check failed, so there is no figure.
    Failed { reason: String },
    /// The technique could not be run here.
    Skipped { reason: String },
}

#[derive(Debug, Serialize)]
pub struct Figures {
    /// Work done per second, over the rounds.
    pub per_second: Spread,
    /// Rejected attempts per second, over the rounds.
    pub turned_away_per_second: Spread,
    /// Bytes of WAL for each unit of work, over the rounds.
    pub wal_bytes_each: Spread,
    /// Due requests per second in an open loop.
    pub due_per_second: Option<u32>,
    /// Latencies of the requests of all rounds.
    pub latency: Option<Quantiles>,
    pub rounds: Vec<Round>,
}

/// One run.
#[derive(Debug, Clone, Serialize)]
pub struct Round {
    /// Work done per second.
    pub per_second: f64,
    /// Rejected attempts per second.
    pub turned_away_per_second: f64,
    /// Work done, as confirmed by the rows.
    pub done: u64,
    /// Rejected attempts.
    pub turned_away: u64,
    /// Bytes of WAL that the server wrote for each unit of work.
    pub wal_bytes_each: f64,
    /// Latencies of the requests.
    pub latency: Option<Quantiles>,
    /// The pace of the load, if it reports one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pace: Option<Pace>,
    /// The cost for the server, if it was measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<ServerWork>,
    /// The cost for the gateway, if it was measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gateway: Option<GatewayWork>,
    /// The doctor's prediction, if it examined the server during the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prediction: Option<Examined>,
}
