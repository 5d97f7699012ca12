//! Histories: clients make random transactions, directly and through gateways that fail, and a checker searches their answers for
//! anomalies that the isolation levels forbid.
//!
//! | file | contents |
//! |---|---|
//! | `history.rs` | a history as plain data |
//! | `check.rs`, `check/` | the checker |
//! | `load.rs`, `load/` | the clients |
//! | `gateways.rs`, `faults.rs` | the server and the gateways, and how they fail |
//! | `report.rs` | the report |

mod check;
mod faults;
mod gateways;
mod history;
mod load;
mod report;

#[cfg(test)]
mod tests;

use faults::World;
use history::Outcome;
use hotrow_bench::Error;
use load::{Load, Place};
use report::Report;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// What is run, and where the report is written.
#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// Duration of the load
    #[arg(long, default_value_t = 120, value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub seconds: u64,

    /// Clients. A quarter of them connects directly to the server, unless --direct
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..=200))]
    pub clients: u16,

    /// Seed of the transactions and of the faults. Times are not repeated
    #[arg(long)]
    pub seed: Option<u64>,

    /// Leave out the faults
    #[arg(long)]
    pub no_faults: bool,

    /// Let all clients connect directly to the server, to compare
    #[arg(long)]
    pub direct: bool,

    /// Folder for report.md and the logs of the gateways
    #[arg(long, value_name = "DIR", default_value = "bench-results/histories")]
    pub out: PathBuf,

    /// Program to start as the gateway. The default is the one beside this program
    #[arg(long, value_name = "FILE")]
    pub gateway_program: Option<PathBuf>,
}

/// The report of a run.
pub struct Verdict {
    pub markdown: String,
    /// Whether a promise was broken.
    pub is_broken: bool,
    /// The number of transactions that were committed.
    pub committed: usize,
    /// The number of cycles that the levels allow.
    pub allowed: usize,
}

/// Lists and registers. More than the load uses per second.
const ROWS_PER_SECOND: u64 = 100;
const ROWS_MIN: u64 = 1_000;
/// The time between two faults.
const FAULT_EVERY_MS: std::ops::Range<u64> = 300..3_000;

/// Runs the load with faults, checks the history and writes the report. Blocks.
pub fn run(args: &Args) -> Result<Verdict, Error> {
    let folder = &args.out;
    std::fs::create_dir_all(folder).map_err(Error::file("create", folder))?;
    let program = match &args.gateway_program {
        Some(program) => program.clone(),
        None => std::env::current_exe().map_err(Error::system("name this program"))?.with_file_name("hotrow"),
    };
    let seed = args.seed.unwrap_or_else(|| fastrand::u64(..1 << 32));
    let rows = ROWS_MIN + ROWS_PER_SECOND * args.seconds;
    let mut world = World::start(&program, folder, &load::tables(rows))?;
    let places = places(args.clients, args.direct);
    let load = Load::start(Arc::clone(&world.ports), &places, rows, seed, !args.no_faults);
    let done = fail(args, seed, &mut world, &load);
    // The clients end before the server, also after an error.
    let settled = world.await_server();
    let records = load.stop();
    done.and(settled)?;
    let start = Instant::now();
    let findings = check::check(&records.history);
    let report = Report {
        args,
        seed,
        version: world.version(),
        faults: &world.faults,
        metrics: &world.metrics(),
        records: &records,
        findings: &findings,
        check_time: start.elapsed(),
    };
    let markdown = report.markdown();
    write(folder, "report.md", &markdown)?;
    let is_broken = !findings.forbidden.is_empty() || !records.wrong.is_empty();
    if is_broken {
        write(folder, "history.txt", &text(&records.history))?;
    }
    let (committed, allowed) = (records.count(Outcome::Committed), findings.allowed.values().sum());
    Ok(Verdict { markdown, is_broken, committed, allowed })
}

fn write(folder: &Path, name: &str, text: &str) -> Result<(), Error> {
    let path = folder.join(name);
    std::fs::write(&path, text).map_err(Error::file("write", &path))
}

/// The whole history, one transaction per line.
fn text(history: &[history::Transaction]) -> String {
    let mut text = String::new();
    for (transaction, at) in history.iter().zip(0..) {
        writeln!(text, "T{at} {transaction:?}").expect("a String accepts all text");
    }
    text
}

/// A quarter of the clients is direct, a quarter is in sessions that hold back writes.
fn places(clients: u16, direct: bool) -> Vec<Place> {
    let place = |client: usize| match client % 4 {
        _ if direct => Place::Server,
        0 => Place::Server,
        1 => Place::Gateway(client / 4 % 2),
        2 => Place::Gateway((client / 4 + 1) % 2),
        _ => Place::Deferring(client / 4 % 2),
    };
    (0..usize::from(clients)).map(place).collect()
}

/// Lets things fail until the time is over, or until the user interrupts it.
fn fail(args: &Args, seed: u64, world: &mut World, load: &Load) -> Result<(), Error> {
    let interrupted = interrupts();
    let mut random = fastrand::Rng::with_seed(seed);
    let end = Instant::now() + Duration::from_secs(args.seconds);
    let mut next = Instant::now() + Duration::from_millis(random.u64(FAULT_EVERY_MS));
    while Instant::now() < end && !interrupted.load(Ordering::Relaxed) {
        std::thread::sleep(Duration::from_millis(20));
        if !args.no_faults && Instant::now() > next {
            world.fault(&mut random)?;
            next = Instant::now() + Duration::from_millis(random.u64(FAULT_EVERY_MS));
            eprintln!("histories: {} transactions committed", load.committed());
        }
    }
    Ok(())
}

/// A flag that Ctrl-C sets, so that servers end in order and the history so far is checked.
fn interrupts() -> Arc<AtomicBool> {
    let flag = Arc::new(AtomicBool::new(false));
    let set = Arc::clone(&flag);
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        // Without a runtime, Ctrl-C ends the program as usual.
        if let Ok(runtime) = runtime
            && runtime.block_on(tokio::signal::ctrl_c()).is_ok()
        {
            set.store(true, Ordering::Relaxed);
        }
    });
    flag
}
