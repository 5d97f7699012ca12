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
//! | `round.rs`, `rounds.rs` | one round, and a run of rounds |
//! | `observer.rs` | what differs between this run and `soak` |
//! | `folder.rs` | the files of a run |

mod answers;
mod check;
mod client;
mod connection;
pub(crate) mod folder;
pub(crate) mod observer;
pub(crate) mod plan;
pub(crate) mod report;
mod round;
pub(crate) mod rounds;
pub(crate) mod testbed;
pub(crate) mod totals;
mod work;

use folder::RunFolder;
use hotrow_bench::Error;
use hotrow_bench::machine::Machine;
use observer::Observer;
use plan::{Goal, Progress};
use report::{Report, duration};
use rounds::{Rounds, today};
use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::time::{Duration, Instant};
use testbed::Testbed;
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
    let rounds = Rounds {
        folder: &folder,
        goal: Goal { statements: args.statements, kills: args.kills },
        seconds: args.seconds,
        round_seconds: args.round_seconds,
        clients: args.clients,
        gateway_program: args.gateway_program,
        changes: true,
    };
    let mut teller = Teller { folder: &folder, machine: Machine::this(), server: String::new(), line: None };
    let (totals, fault) = rounds.run(&mut teller)?;
    let markdown = if teller.line.is_some() { teller.report(&totals).markdown() } else { String::new() };
    Ok(Ended { markdown, is_done: totals.is_done() && fault.is_none(), fault })
}

/// Shows the progress, and writes the report.
#[derive(Debug)]
struct Teller<'a> {
    folder: &'a RunFolder,
    machine: Machine,
    server: String,
    /// Set after the start.
    line: Option<Line>,
}

impl Teller<'_> {
    fn report<'a>(&'a self, totals: &'a Totals) -> Report<'a> {
        Report { date: today(), machine: &self.machine, server: &self.server, totals }
    }
}

impl Observer for Teller<'_> {
    fn begun(&mut self, testbed: &Testbed, totals: &Totals) {
        self.server = testbed.server_version();
        self.line = Some(Line::new(totals));
    }

    async fn loaded(
        &mut self,
        _: &Testbed,
        totals: &Totals,
        progress: &Progress,
        unknown: u64,
    ) -> Result<(), Error> {
        self.line.iter_mut().for_each(|line| line.show(totals, progress, unknown));
        Ok(())
    }

    async fn ended(&mut self, _: &Testbed, totals: &Totals) -> Result<(), Error> {
        let report = self.report(totals);
        self.folder.write("report.md", &report.markdown())?;
        let json = serde_json::to_string_pretty(&report).expect("a report is numbers and texts");
        self.folder.write("report.json", &json)?;
        if totals.fault.is_none() {
            self.line.iter().for_each(|line| line.end(totals));
        }
        Ok(())
    }
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
