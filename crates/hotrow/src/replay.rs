//! `hotrow replay`: computes any past value of a counter from its history, and checks every command and snapshot on the way.
//! Changes nothing.

pub mod fold;
pub mod history;
mod progress;

use std::io::Write;
use std::process::ExitCode;

use hotrow_core::untrusted::visible;

use fold::{Difference, Fold, State, Strategy};
use history::{History, Kind, Range, Snapshot};
pub use progress::Progress;

/// `hotrow replay`
#[derive(clap::Args)]
#[command(after_help = "\
Starts at the beginning of the history and checks every command and snapshot up to the version. With --nearest, it starts at \
the last snapshot before the version, which is faster and checks less. The exit status is 1 at the first difference.\n\n\
Example: hotrow replay likes:42 --at 1000 --upstream postgres://owner@127.0.0.1/shop")]
pub struct Args {
    /// Name of the counter
    counter: String,
    /// The server and database: a libpq URL or keyword string; its user needs to read the hotrow schema's tables
    #[arg(long, env = "HOTROW_UPSTREAM", hide_env = true, hide_env_values = true, value_name = "URL")]
    upstream: String,
    /// Version of the value; the current version if omitted
    #[arg(long, value_name = "VERSION", value_parser = clap::value_parser!(i64).range(0..))]
    at: Option<i64>,
    /// Start at the last snapshot before the version (command log only)
    #[arg(long)]
    nearest: bool,
}

/// Why the value cannot be computed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The history cannot be read.
    #[error(transparent)]
    History(#[from] history::Error),
    /// The counter does not exist.
    #[error("there is no counter {0}: check its name; a counter is created by its first command")]
    Unknown(String),
    /// The version does not exist yet.
    #[error("counter {counter} is at version {version}: use --at with this version or an earlier one")]
    NotYet {
        /// Which counter.
        counter: String,
        /// Its last version.
        version: i64,
    },
    /// The commands of this version have been deleted.
    #[error(
        "the history of counter {counter} begins at version {version}: use --at with this version or a later one"
    )]
    Forgotten {
        /// Which counter.
        counter: String,
        /// The first version that can be computed.
        version: i64,
    },
    /// The history contradicts itself.
    #[error("counter {counter} differs at {difference}; check all counters with hotrow verify")]
    Differs {
        /// Which counter.
        counter: String,
        /// The version and the difference.
        difference: Difference,
    },
    /// The operating system.
    #[error("the operating system reports: {0}")]
    System(#[from] std::io::Error),
}

impl From<tokio_postgres::Error> for Error {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::History(error.into())
    }
}

/// Runs the command.
pub fn run(args: Args) -> Result<ExitCode, Error> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut client = history::connect(&args.upstream).await?;
        let schema = history::schema_of(&client, &args.counter).await?;
        let snapshot = Snapshot::begin(&mut client, &schema).await?;
        replay(&snapshot, &args).await
    })
}

/// The extent of a history.
struct Extent {
    strategy: Strategy,
    version: i64,
    /// The first version whose value can be computed.
    first: i64,
    /// Whether the history has the counter's first command.
    from_the_start: bool,
    /// The last snapshot up to the wanted version.
    nearest: Option<i64>,
}

async fn replay(snapshot: &Snapshot<'_>, args: &Args) -> Result<ExitCode, Error> {
    let extent = extent(snapshot, args).await?;
    let at = args.at.unwrap_or(extent.version);
    let counter = || args.counter.clone();
    if at > extent.version {
        return Err(Error::NotYet { counter: counter(), version: extent.version });
    }
    if at < extent.first {
        return Err(Error::Forgotten { counter: counter(), version: extent.first });
    }
    let after = extent.nearest.filter(|_| args.nearest).unwrap_or(-1);
    let range = Range { counter: Some(&args.counter), after, upto: at };
    let (mut fold, outcome) = fold(snapshot, range, extent.from_the_start && after < 0).await?;
    let present = at == extent.version;
    let state = match outcome.and_then(|()| if present { fold.end().map(Some) } else { Ok(fold.state()) }) {
        Ok(Some(state)) if state.version == at => state,
        Ok(reached) => {
            let last = reached.map_or(0, |state| state.version);
            let what = format!("the commands from here up to version {at} are missing");
            return Err(Error::Differs {
                counter: counter(),
                difference: Difference { version: last + 1, what },
            });
        }
        Err(difference) => return Err(Error::Differs { counter: counter(), difference }),
    };
    print(&args.counter, &extent, &fold, state, present)?;
    Ok(ExitCode::SUCCESS)
}

async fn extent(snapshot: &Snapshot<'_>, args: &Args) -> Result<Extent, Error> {
    let upto = args.at.unwrap_or(i64::MAX);
    let statement = include_str!("../sql/history_extent.sql");
    let row = snapshot.transaction.query_opt(&snapshot.text(statement), &[&args.counter, &upto]).await?;
    let row = row.ok_or_else(|| Error::Unknown(args.counter.clone()))?;
    let (version, entry, command): (i64, Option<i64>, Option<i64>) = (row.get(1), row.get(2), row.get(3));
    let strategy = if row.get::<_, &str>(0) == "log" { Strategy::Log } else { Strategy::Ledger };
    let (kept, known) = match strategy {
        Strategy::Ledger => (entry, entry),
        Strategy::Log => (command, row.get(4)),
    };
    let from_the_start = kept == Some(1) || snapshot.whole().await?;
    let first = if from_the_start { 0 } else { known.unwrap_or(version) };
    Ok(Extent { strategy, version, first, from_the_start, nearest: row.get(5) })
}

/// Folds the range. The result has the first difference.
async fn fold(
    snapshot: &Snapshot<'_>,
    range: Range<'_>,
    from_the_start: bool,
) -> Result<(Fold, Result<(), Difference>), Error> {
    let mut history = History::open(snapshot, range).await?;
    let head = match history.next().await?.map(|record| record.kind()) {
        Some(Kind::Counter(head)) => head,
        _ => return Err(Error::Unknown(range.counter.unwrap_or_default().to_owned())),
    };
    let rows = u64::try_from(range.upto.min(head.version).saturating_sub(range.after.max(0))).unwrap_or(0);
    let mut progress = Progress::new(Some(rows));
    let mut fold = Fold::new(head, from_the_start);
    while let Some(record) = history.next().await? {
        if let Err(difference) = record.fold(&mut fold) {
            progress.finish();
            return Ok((fold, Err(difference)));
        }
        progress.step();
    }
    progress.finish();
    Ok((fold, Ok(())))
}

fn print(counter: &str, extent: &Extent, fold: &Fold, state: State, present: bool) -> std::io::Result<()> {
    let mut out = std::io::stdout();
    let (strategy, snapshots) = match extent.strategy {
        Strategy::Ledger => ("ledger", String::new()),
        Strategy::Log => ("command log", format!(", {} agreed", many(fold.snapshots, "snapshot"))),
    };
    writeln!(out, "counter   {} ({strategy})", visible(counter))?;
    writeln!(out, "version   {}", state.version)?;
    writeln!(out, "value     {}", state.value)?;
    let at = state.at.map_or_else(|| "-".to_owned(), |at| humantime::format_rfc3339_micros(at).to_string());
    writeln!(out, "time      {at}")?;
    let row = if present { "; the counter's row agrees" } else { "" };
    writeln!(out, "replayed  {}{snapshots}{row}", many(fold.commands, "command"))
}

fn many(count: u64, thing: &str) -> String {
    format!("{count} {thing}{}", if count == 1 { "" } else { "s" })
}
