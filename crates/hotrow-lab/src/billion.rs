//! A long run that proves the promises: a billion statements and a thousand kills, with every answer checked. It goes on after an
//! interruption, a crash or a reboot.
//!
//! | file | contents |
//! |---|---|
//! | `work.rs` | requests, their statements and values |
//! | `answers.rs` | what a client knows after an answer |
//! | `check.rs` | the answers of a round compared with its rows |
//! | `plan.rs`, `totals.rs`, `report.rs` | which fault comes next, the sums of the rounds, and how they are shown |
//! | `client.rs`, `connection.rs` | the clients |
//! | `testbed.rs` | the server, two gateways, kills and changes of the schema |
//! | `round.rs` | one round |
//! | `folder.rs` | the files of a run |

mod answers;
mod check;
mod client;
mod connection;
mod folder;
mod plan;
mod report;
mod round;
mod testbed;
mod totals;
mod work;

use folder::RunFolder;
use hotrow_bench::Error;
use hotrow_bench::machine::Machine;
use plan::{Goal, Progress};
use report::{Report, duration};
use round::{Bounds, Stop};
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};
use testbed::Testbed;
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::LocalSet;
use totals::Totals;

/// The bounds of a run, and its folder.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Acknowledged statements
    #[arg(long, default_value_t = 1_000_000_000, value_name = "COUNT")]
    pub statements: u64,

    /// Kills of the server, of gateways and of connections
    #[arg(long, default_value_t = 1_000, value_name = "COUNT")]
    pub kills: u64,

    /// End after this time, also if the goal is not reached; a later run goes on
    #[arg(long, value_name = "SECONDS")]
    pub seconds: Option<u64>,

    /// Folder of the run: the server's files, the totals and the report
    #[arg(long, default_value = "billion-run", value_name = "DIR")]
    pub folder: PathBuf,

    /// Load before each check
    #[arg(long, default_value_t = 30, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=600))]
    pub round_seconds: u64,

    /// Clients that send requests
    #[arg(long, default_value_t = 128, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(8..=400))]
    pub clients: u32,

    /// The program to start as the gateway; by default `hotrow` beside this program
    #[arg(long, value_name = "PROGRAM")]
    pub gateway_program: Option<PathBuf>,
}

/// The end of a run.
#[derive(Debug)]
pub struct Ended {
    /// The report.
    pub markdown: String,
    /// Whether the goal is reached.
    pub is_done: bool,
    /// The contradiction that has stopped the run, and where its evidence is.
    pub fault: Option<String>,
}

/// Runs until the goal or a bound is reached, or until a signal. Blocks, and must be called outside of an asynchronous runtime.
pub fn run(args: Args) -> Result<Ended, Error> {
    let folder = RunFolder::open(&args.folder)?;
    let goal = Goal { statements: args.statements, kills: args.kills };
    let program = match args.gateway_program.clone() {
        Some(program) => program,
        None => std::env::current_exe().map_err(Error::system("name this program"))?.with_file_name("hotrow"),
    };
    if !program.exists() {
        return Err(Error::NoGatewayProgram { program });
    }
    let mut totals = folder.totals()?.unwrap_or_else(|| Totals::new(goal, today()));
    totals.goal = goal;
    if let Some(fault) = &totals.fault {
        let fault = format!(
            "{fault}\nThis run has stopped there. Keep its folder, and begin another run with --folder."
        );
        return Ok(Ended { markdown: String::new(), is_done: false, fault: Some(fault) });
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(Error::system("start a runtime"))?;
    runtime.block_on(LocalSet::new().run_until(until_signal(&args, &folder, &program, totals)))
}

/// Runs rounds until the end or a signal. A round that a signal interrupts does not count.
async fn until_signal(
    args: &Args,
    folder: &RunFolder,
    program: &Path,
    mut totals: Totals,
) -> Result<Ended, Error> {
    let listen = |kind| signal(kind).map_err(Error::system("listen for signals"));
    let (mut interrupt, mut terminate) = (listen(SignalKind::interrupt())?, listen(SignalKind::terminate())?);
    let mut about = About { machine: Machine::this(), server: String::new() };
    let ran = tokio::select! {
        ran = rounds(args, folder, program, &mut totals, &mut about) => ran,
        _ = interrupt.recv() => Ok(None),
        _ = terminate.recv() => Ok(None),
    };
    let fault = ran?;
    let markdown = about.report(&totals).markdown();
    Ok(Ended { markdown, is_done: totals.is_done() && fault.is_none(), fault })
}

/// What a report says about the run's place.
#[derive(Debug)]
struct About {
    machine: Machine,
    server: String,
}

impl About {
    fn report<'a>(&'a self, totals: &'a Totals) -> Report<'a> {
        Report { date: today(), machine: &self.machine, server: &self.server, totals }
    }
}

fn today() -> String {
    let now = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
    now.chars().take("2026-01-31".len()).collect()
}

/// Runs and checks rounds. Returns the first contradiction.
async fn rounds(
    args: &Args,
    folder: &RunFolder,
    program: &Path,
    totals: &mut Totals,
    about: &mut About,
) -> Result<Option<String>, Error> {
    let deadline = args.seconds.map(|seconds| Instant::now() + Duration::from_secs(seconds));
    let bounds = Bounds { clients: args.clients, lasts: Duration::from_secs(args.round_seconds), deadline };
    let mut testbed = Testbed::start(folder.path(), program).await?;
    about.server = testbed.server_version();
    totals.starts += 1;
    let mut line = Line::new(totals);
    while !totals.is_done() && deadline.is_none_or(|deadline| Instant::now() < deadline) {
        let ran = round::run(&mut testbed, totals, bounds, |progress, unknown| {
            line.show(totals, progress, unknown);
        });
        match ran.await {
            Ok((happened, found)) => {
                totals.add(&happened, &found);
                write(folder, totals, about)?;
                line.end(totals);
            }
            Err(Stop::Error(error)) => return Err(error),
            Err(Stop::Fault(fault, records)) => {
                totals.fault = Some(fault.clone());
                let evidence = folder.keep_evidence(&fault, &testbed.logs(), &records)?;
                write(folder, totals, about)?;
                testbed.stop().await?;
                return Ok(Some(format!("{fault}\nThe evidence is in {}.", evidence.display())));
            }
        }
    }
    testbed.stop().await?;
    Ok(None)
}

fn write(folder: &RunFolder, totals: &Totals, about: &About) -> Result<(), Error> {
    let report = about.report(totals);
    folder.keep(totals)?;
    folder.write("report.md", &report.markdown())?;
    folder
        .write("report.json", &serde_json::to_string_pretty(&report).expect("a report is numbers and texts"))
}

/// The progress on standard error: one line that changes on a terminal, and otherwise a line for each round.
#[derive(Debug)]
struct Line {
    began: Instant,
    shown: Instant,
    /// Statements at the beginning.
    first: u64,
}

impl Line {
    fn new(totals: &Totals) -> Self {
        Self { began: Instant::now(), shown: Instant::now(), first: totals.acknowledged() }
    }

    fn text(&self, totals: &Totals, progress: &Progress, unknown: u64) -> String {
        let elapsed = self.began.elapsed().as_secs_f64();
        let per_second = (progress.statements - self.first) as f64 / elapsed;
        let remaining = totals.goal.remaining_seconds(progress, per_second).map_or("?".to_owned(), duration);
        format!(
            "round {}: {} of {} statements ({}/s), {} of {} kills, {} unknown, {} since the start, {remaining} remain",
            totals.rounds,
            report::count(progress.statements),
            report::count(totals.goal.statements),
            report::count(per_second as u64),
            progress.kills,
            totals.goal.kills,
            totals.unknown + unknown,
            duration(elapsed),
        )
    }

    fn show(&mut self, totals: &Totals, progress: &Progress, unknown: u64) {
        if std::io::stderr().is_terminal() && self.shown.elapsed() > Duration::from_secs(1) {
            let text = self.text(totals, progress, unknown);
            self.shown = Instant::now();
            let _ = write!(std::io::stderr(), "\r\x1b[K{text}");
        }
    }

    fn end(&self, totals: &Totals) {
        let text = self.text(totals, &totals.progress(), 0);
        let start = if std::io::stderr().is_terminal() { "\r\x1b[K" } else { "" };
        let _ = writeln!(std::io::stderr(), "{start}{text}, 0 faults");
    }
}
