//! One benchmark from beginning to end: testbed, scenarios, report, and clean-up, which also runs if the user interrupts it.

use crate::error::Error;
use crate::flush::FlushTime;
use crate::machine::Machine;
use crate::plan::Plan;
use crate::progress::Progress;
use crate::report;
use crate::results::{CellOutcome, Report, Server};
use crate::rounds;
use crate::testbed::{OtherLoads, Testbed};
use std::path::PathBuf;
use std::process::ExitCode;
use tokio::signal::unix::{SignalKind, signal};

/// The result of a benchmark.
#[derive(Debug)]
pub struct Outcome {
    /// The folder with report.md, report.json and plot.svg.
    pub folder: PathBuf,
    /// The text of report.md.
    pub markdown: String,
    /// The runs whose check failed, one line for each.
    pub failures: Vec<String>,
}

impl Outcome {
    /// Tells the user of a program which runs have no figure, and where the report is.
    pub fn say(&self, program: &str) {
        for failure in &self.failures {
            eprintln!("{program}: there is no figure for {failure}");
        }
        eprintln!("{program}: the report, its numbers and its charts are in {}", self.folder.display());
    }

    /// 1 if a check failed, for scripts.
    pub fn exit_code(&self) -> ExitCode {
        if self.failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }
}

/// Runs the benchmark. In all cases, the rows are dropped and all started programs are stopped.
pub async fn run(plan: Plan, others: Option<Box<dyn OtherLoads>>) -> Result<Outcome, Error> {
    let machine = Machine::this();
    let progress = Progress::new(&plan);
    progress.note("preparing the server");
    let mut testbed = tokio::select! {
        testbed = Testbed::build(&plan, others) => testbed?,
        interruption = interrupted() => return Err(interruption),
    };
    let measured = tokio::select! {
        report = measure_all(&plan, machine, &mut testbed, &progress) => report,
        interruption = interrupted() => Err(interruption),
    };
    progress.finish();
    let cleaned_up = match measured {
        Err(Error::Interrupted) => testbed.abandon().await,
        _ => testbed.tear_down().await,
    };
    let report = measured?;
    let markdown = report::write(&report, &plan.out)?;
    cleaned_up?;
    Ok(Outcome { folder: plan.out, markdown, failures: failures(&report) })
}

async fn measure_all(
    plan: &Plan,
    machine: Machine,
    testbed: &mut Testbed,
    progress: &Progress,
) -> Result<Report, Error> {
    let server = describe_server(testbed).await?;
    let mut scenarios = Vec::new();
    for scenario in &plan.scenarios {
        progress.note(&format!("{}: setting up", scenario.name));
        testbed.set_up(plan, scenario, progress).await?;
        scenarios.push(rounds::run(plan, testbed, scenario, progress).await?);
        testbed.tear_down().await?;
    }
    let others = testbed.others.iter().flat_map(|others| others.tools());
    let tools = [testbed.pgbench.version.clone()].into_iter().chain(others).collect();
    Ok(Report {
        hotrow: env!("CARGO_PKG_VERSION").to_owned(),
        date: humantime::format_rfc3339_seconds(plan.started).to_string(),
        quick: plan.quick,
        seconds: plan.seconds,
        warm_up_seconds: plan.warm_up_seconds,
        rounds: plan.rounds,
        machine,
        server,
        tools,
        scenarios,
    })
}

async fn describe_server(testbed: &Testbed) -> Result<Server, Error> {
    let data_folder = testbed.data_folder();
    Ok(Server {
        version: testbed.control.version().await?,
        private: data_folder.is_some(),
        settings: testbed.control.settings().await?,
        flush: data_folder.map(|folder| FlushTime::measure(&folder)).transpose()?,
    })
}

fn failures(report: &Report) -> Vec<String> {
    let mut failures = Vec::new();
    for scenario in &report.scenarios {
        for technique in &scenario.techniques {
            for cell in &technique.cells {
                if let CellOutcome::Failed { reason } = &cell.outcome {
                    failures.push(format!(
                        "{}, {} clients, {}: {reason}",
                        scenario.name, cell.clients, technique.name
                    ));
                }
            }
        }
    }
    failures
}

/// Waits for a signal to end, from the user or from the system.
async fn interrupted() -> Error {
    let listening = |kind| signal(kind).map_err(Error::system("listen for signals"));
    match (listening(SignalKind::interrupt()), listening(SignalKind::terminate())) {
        (Ok(mut interrupt), Ok(mut terminate)) => {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
            Error::Interrupted
        }
        (Err(error), _) | (_, Err(error)) => error,
    }
}
