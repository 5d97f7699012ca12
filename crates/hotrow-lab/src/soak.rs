//! A long run that shows whether anything grows: the load of `billion` without kills and without changes of the schema. It measures
//! the gateways and the server, and goes on after an interruption.
//!
//! | file | contents |
//! |---|---|
//! | `samples.rs` | what is measured |
//! | `series.rs`, `verdict.rs` | figures over time, and whether they grow |
//! | `report.rs` | the report and its pictures |

mod report;
mod samples;
mod series;
mod verdict;

use crate::billion::Ended;
use crate::billion::folder::RunFolder;
use crate::billion::observer::Observer;
use crate::billion::plan::{Goal, Progress};
use crate::billion::report::{count, duration};
use crate::billion::rounds::{Rounds, today};
use crate::billion::testbed::Testbed;
use crate::billion::totals::Totals;
use hotrow_bench::Error;
use hotrow_bench::gateway::Gateway;
use hotrow_bench::machine::Machine;
use report::Report;
use samples::{Process, RoundEnd, Sample, Samples, process};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// The file with the samples.
const SAMPLES: &str = "samples.json";
/// The samples and rounds of a short run. Those of a longer one last as long as the longest.
const SAMPLES_MIN: u64 = 60;
const ROUNDS_MIN: u64 = 20;
/// The longest time between two samples, and the longest round.
const SAMPLE_SECONDS_MAX: u64 = 60;
const ROUND_SECONDS_MAX: u64 = 300;

/// The bounds of a run, and its folder.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Time of the run, over all starts
    #[arg(long, default_value_t = 43_200, value_name = "SECONDS")]
    pub seconds: u64,

    /// Folder of the run: the server's files, the samples and the report
    #[arg(long, default_value = "soak-run", value_name = "DIR")]
    pub folder: PathBuf,

    /// Load before each check; by default a 20th of the time, at most 300 seconds
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=600))]
    pub round_seconds: Option<u64>,

    /// Clients that send requests
    #[arg(long, default_value_t = 128, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(8..=400))]
    pub clients: u32,

    /// The program to start as the gateway; by default `hotrow` beside this program
    #[arg(long, value_name = "PROGRAM")]
    pub gateway_program: Option<PathBuf>,
}

/// Runs until the time is over, or until a signal. Blocks, and must be called outside of an asynchronous runtime.
pub fn run(args: Args) -> Result<Ended, Error> {
    let folder = RunFolder::open(&args.folder)?;
    let mut sampler = Sampler::open(&folder, args.seconds)?;
    let rounds = Rounds {
        folder: &folder,
        goal: Goal { statements: u64::MAX, kills: 0 },
        seconds: Some(args.seconds.saturating_sub(sampler.samples.ran_ms / 1_000)),
        round_seconds: args.round_seconds.unwrap_or((args.seconds / ROUNDS_MIN).clamp(1, ROUND_SECONDS_MAX)),
        clients: args.clients,
        gateway_program: args.gateway_program,
        changes: false,
    };
    let (totals, fault) = rounds.run(&mut sampler)?;
    sampler.samples.samples.retain(|sample| fault.is_some() || sample.round <= totals.rounds);
    let (markdown, _) = sampler.report(&totals).render();
    let is_done = fault.is_none() && sampler.samples.ran_ms >= 1_000 * args.seconds;
    Ok(Ended { markdown, is_done, fault })
}

/// Takes the samples, and writes the report.
#[derive(Debug)]
struct Sampler<'a> {
    folder: &'a RunFolder,
    machine: Machine,
    server: String,
    seconds: u64,
    began: Instant,
    /// The time of earlier starts.
    before_ms: u64,
    samples: Samples,
    /// When statements were counted last in this round, and their number.
    counted: Option<(Instant, u64)>,
    /// Time under load and statements since the last sample.
    loaded: (Duration, u64),
    /// Statements before the round.
    statements: u64,
}

impl<'a> Sampler<'a> {
    fn open(folder: &'a RunFolder, seconds: u64) -> Result<Self, Error> {
        let path = folder.path().join(SAMPLES);
        let mut samples = Samples::default();
        if path.exists() {
            let text = std::fs::read_to_string(&path).map_err(Error::file("read", &path))?;
            samples = serde_json::from_str(&text)
                .map_err(|error| Error::file("read", &path)(std::io::Error::other(error)))?;
        }
        Ok(Self {
            folder,
            machine: Machine::this(),
            server: String::new(),
            seconds,
            began: Instant::now(),
            before_ms: samples.ran_ms,
            samples,
            counted: None,
            loaded: (Duration::ZERO, 0),
            statements: 0,
        })
    }

    fn at_ms(&self) -> u64 {
        self.before_ms + milliseconds(self.began.elapsed())
    }

    fn report<'b>(&'b self, totals: &'b Totals) -> Report<'b> {
        let Self { machine, server, samples, seconds, .. } = self;
        Report { date: today(), machine, server, totals, samples, seconds: *seconds }
    }
}

impl Observer for Sampler<'_> {
    fn begun(&mut self, testbed: &Testbed, totals: &Totals) {
        self.server = testbed.server_version();
        self.statements = totals.acknowledged();
    }

    async fn loaded(
        &mut self,
        testbed: &Testbed,
        totals: &Totals,
        progress: &Progress,
        _: u64,
    ) -> Result<(), Error> {
        let now = (Instant::now(), progress.statements);
        if let Some(before) = self.counted.replace(now) {
            self.loaded.0 += now.0 - before.0;
            self.loaded.1 += now.1 - before.1;
        }
        if self.loaded.0.as_secs() < (self.seconds / SAMPLES_MIN).clamp(1, SAMPLE_SECONDS_MAX) {
            return Ok(());
        }
        let (load, statements) = std::mem::take(&mut self.loaded);
        let [first, second] = testbed.gateways();
        let connections = "select count(*) from pg_catalog.pg_stat_activity
             where backend_type = 'client backend' and pid <> pg_catalog.pg_backend_pid()";
        let connections = testbed.query(connections.to_owned()).await?;
        self.samples.samples.push(Sample {
            at_ms: self.at_ms(),
            start: totals.starts,
            round: totals.rounds + 1,
            gateways: [measure(first)?, measure(second)?],
            connections: connections.parse().unwrap_or_default(),
            statements,
            load_ms: milliseconds(load),
        });
        Ok(())
    }

    async fn ended(&mut self, testbed: &Testbed, totals: &Totals) -> Result<(), Error> {
        self.counted = None;
        self.samples.ran_ms = self.at_ms();
        if totals.fault.is_none() {
            let sizes = testbed.query(include_str!("../sql/soak/sizes.sql").to_owned()).await?;
            let statements = totals.acknowledged() - self.statements;
            self.samples.ends.push(RoundEnd {
                at_ms: self.at_ms(),
                start: totals.starts,
                round: totals.rounds,
                statements,
                log_bytes: testbed.gateways().each_ref().map(|gateway| gateway.child.log_bytes()),
                tables: serde_json::from_str(&sizes).expect("the statement returns names and pairs of sizes"),
            });
            self.statements = totals.acknowledged();
            let (round, statements) = (totals.rounds, count(statements));
            let [ran, all] = [self.samples.ran_ms as f64 / 1_000.0, self.seconds as f64].map(duration);
            eprintln!("round {round}: {statements} statements, {ran} of {all}, 0 faults");
        }
        let text = serde_json::to_string(&self.samples).expect("samples are numbers and texts");
        self.folder.write(SAMPLES, &text)?;
        let (markdown, pictures) = self.report(totals).render();
        pictures.iter().try_for_each(|(name, picture)| self.folder.write(name, picture))?;
        self.folder.write("report.md", &markdown)
    }
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// Measures a gateway's process.
fn measure(gateway: &Gateway) -> Result<Process, Error> {
    let folder = PathBuf::from(format!("/proc/{}", gateway.child.id().unwrap_or_default()));
    let read = || {
        let status = std::fs::read_to_string(folder.join("status"))?;
        let process = process(&status).ok_or_else(|| std::io::Error::other("it does not show its memory"))?;
        let descriptors = std::fs::read_dir(folder.join("fd"))?.count() as u64;
        Ok(Process { descriptors, ..process })
    };
    read().map_err(Error::file("read", &folder))
}
