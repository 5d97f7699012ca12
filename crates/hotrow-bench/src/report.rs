//! Writes a report as Markdown, as JSON and as a chart. It computes no figures.

mod json;
mod markdown;
pub mod numbers;
pub mod svg;

use crate::error::Error;
use crate::results::Report;
use std::path::Path;

/// Writes report.md, report.json and plot.svg into a folder, and returns the text of report.md.
pub fn write(report: &Report, folder: &Path) -> Result<String, Error> {
    std::fs::create_dir_all(folder).map_err(Error::file("create", folder))?;
    let markdown = markdown::render(report);
    for (name, text) in
        [("report.md", &markdown), ("report.json", &json::render(report)), ("plot.svg", &svg::render(report))]
    {
        let path = folder.join(name);
        std::fs::write(&path, text).map_err(Error::file("write", &path))?;
    }
    Ok(markdown)
}

#[cfg(test)]
mod sample {
    //! A report with an example of each element, for the tests of the renderers.

    use crate::control::Setting;
    use crate::flush::FlushTime;
    use crate::machine::Machine;
    use crate::results::{Cell, CellOutcome, Figures, Report, ScenarioResult, Server, TechniqueResult};
    use crate::scenario::{Figure, Protocol, Through};
    use crate::statistics::{Quantiles, Spread};

    pub(super) fn report() -> Report {
        let machine = Machine {
            processor: "Some <fast> CPU".into(),
            cores: 2,
            memory_bytes: Some(24 << 30),
            system: "Debian".into(),
            kernel: "Linux 6.1".into(),
            load_average: Some(0.1),
        };
        let setting = |name: &str, value: &str| Setting { name: name.into(), value: value.into() };
        Report {
            hotrow: "0.1.0".into(),
            date: "2026-01-02T03:04:05Z".into(),
            quick: false,
            seconds: 5,
            warm_up_seconds: 1,
            rounds: 3,
            machine,
            server: Server {
                version: "15.18".into(),
                private: true,
                settings: vec![setting("fsync", "on"), setting("shared_buffers", "256MB")],
                flush: Some(FlushTime { samples: 4000, p50_us: 110, p99_us: 400 }),
            },
            tools: vec!["pgbench (PostgreSQL) 15.18".into()],
            scenarios: vec![hot_row(), open_loop()],
        }
    }

    fn hot_row() -> ScenarioResult {
        let mut try_lock =
            technique("try-lock", Through::Direct, vec![measured(1, 6_500.0), measured(64, 2_500.0)]);
        if let CellOutcome::Measured(figures) = &mut try_lock.cells[1].outcome {
            figures.turned_away_per_second = Spread { median: 40_000.0, min: 39_000.0, max: 41_000.0 };
        }
        let mut select_one = measured(1, 9_000.0);
        if let CellOutcome::Measured(Figures { latency: Some(latency), .. }) = &mut select_one.outcome {
            (latency.untimed, latency.p50_us) = (500, 0);
        }
        let lost = CellOutcome::Failed { reason: "10 sales were acknowledged, but the rows show 9".into() };
        let full = CellOutcome::Skipped { reason: "the server has room for 50 of 64 connections".into() };
        ScenarioResult {
            name: "hot-row",
            shows: "Updates of one row",
            figure: Figure::Throughput,
            rows: 1,
            remarks: vec!["Only what was sold counts.".into()],
            techniques: vec![
                technique("direct", Through::Direct, vec![measured(1, 6_772.0), measured(64, 2_844.0)]),
                try_lock,
                technique("hotrow", Through::Hotrow, vec![measured(1, 4_614.0), measured(64, 75_335.0)]),
                technique(
                    "liar",
                    Through::Direct,
                    vec![measured(1, 1.0), Cell { clients: 64, outcome: lost }],
                ),
                technique("select-1", Through::Direct, vec![select_one, Cell { clients: 64, outcome: full }]),
            ],
            gains: Vec::new(),
            novelties: Vec::new(),
        }
    }

    fn open_loop() -> ScenarioResult {
        let due = |mut cell: Cell, per_second: u32| {
            if let CellOutcome::Measured(figures) = &mut cell.outcome {
                figures.due_per_second = Some(per_second);
            }
            cell
        };
        ScenarioResult {
            name: "open-loop",
            shows: "Updates at a constant rate",
            figure: Figure::Latency,
            rows: 1,
            remarks: Vec::new(),
            techniques: vec![
                technique("direct", Through::Direct, vec![due(measured(64, 1_400.0), 1_422)]),
                technique("hotrow", Through::Hotrow, vec![due(measured(64, 17_000.0), 20_000)]),
            ],
            gains: Vec::new(),
            novelties: Vec::new(),
        }
    }

    fn technique(name: &'static str, through: Through, cells: Vec<Cell>) -> TechniqueResult {
        let protocol = Protocol::Prepared;
        TechniqueResult { name, about: "one way | or another", through, protocol, against: "direct", cells }
    }

    fn measured(clients: u32, per_second: f64) -> Cell {
        let latency = Quantiles {
            samples: 1_000,
            untimed: 0,
            p50_us: 880,
            p90_us: 1_000,
            p99_us: 1_460,
            p999_us: 12_300,
            max_us: 138_900,
        };
        let figures = Figures {
            per_second: Spread { median: per_second, min: per_second * 0.9, max: per_second * 1.1 },
            turned_away_per_second: Spread { median: 0.0, min: 0.0, max: 0.0 },
            wal_bytes_each: Spread { median: 312.4, min: 300.0, max: 320.0 },
            due_per_second: None,
            latency: Some(latency),
            rounds: Vec::new(),
        };
        Cell { clients, outcome: CellOutcome::Measured(figures) }
    }
}
