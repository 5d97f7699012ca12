//! `hotrow verify`: checks that all data of the hotrow schema agree with each other. Changes nothing.

mod report;

use std::io::Write;
use std::process::ExitCode;

use futures_util::TryStreamExt;
use tokio_postgres::{Client, Row};

use crate::replay::Progress;
use crate::replay::fold::Fold;
use crate::replay::history::{self, Error as HistoryError, History, Kind, OWN, Range, Snapshot};
use report::Report;

/// `hotrow verify`
#[derive(clap::Args)]
#[command(after_help = "\
Reads one snapshot of the database; of a distributed hotrow schema, one snapshot of each shard. Other clients can write at the same time; only hotrow.rotate_history() and \
hotrow.rotate_queues() have to be repeated later. For each counter, the first contradiction is shown. The exit status is 1 if \
there is a contradiction.\n\n\
Example: hotrow verify --upstream postgres://owner@127.0.0.1/shop")]
pub struct Args {
    /// The server and database: a libpq URL or keyword string; its user needs to read the hotrow schema's tables
    #[arg(long, env = "HOTROW_UPSTREAM", hide_env = true, hide_env_values = true, value_name = "URL")]
    upstream: String,
}

/// Why the check failed to run.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The rows cannot be read.
    #[error(transparent)]
    History(#[from] HistoryError),
    /// The operating system.
    #[error("the operating system reports: {0}")]
    System(#[from] std::io::Error),
}

/// Each statement returns one sentence per contradiction.
const STATEMENTS: [&str; 7] = [
    include_str!("../sql/verify_sales.sql"),
    include_str!("../sql/verify_reservations.sql"),
    include_str!("../sql/verify_buyers.sql"),
    include_str!("../sql/verify_requests.sql"),
    include_str!("../sql/verify_queues.sql"),
    include_str!("../sql/verify_orders.sql"),
    include_str!("../sql/verify_feeds.sql"),
];

/// Maximum number of attempts to read a shard. Its history can be rotated while it is read.
const ATTEMPTS: usize = 3;

/// Runs the command.
pub fn run(args: Args) -> Result<ExitCode, Error> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let report = runtime.block_on(async {
        let mut client = history::connect(&args.upstream).await?;
        let mut report = Report::default();
        let shards = hotrow_sql::shards(&client).await?;
        let snapshot = Snapshot::begin(&mut client, OWN).await?;
        // A distributed hotrow schema's original tables have the rows of the time before the distribution, which no call uses.
        if shards.is_none() {
            check(&snapshot, &mut report).await?;
        }
        drop(snapshot);
        for shard in 0..shards.unwrap_or(0) {
            report.add(shard_report(&mut client, &hotrow_sql::shard_schema(shard)).await?);
        }
        Ok::<_, HistoryError>(report)
    })?;
    write!(std::io::stdout(), "{report}")?;
    Ok(if report.sound() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

async fn check(snapshot: &Snapshot<'_>, report: &mut Report) -> Result<(), HistoryError> {
    counters(snapshot, report).await?;
    let counts = snapshot.text(include_str!("../sql/verify_counts.sql"));
    let counts = snapshot.transaction.query_one(&counts, &[]).await?;
    report.count(&counts, &["sales", "reservations", "buyers", "requests", "queues", "orders"]);
    let counts = snapshot.text(include_str!("../sql/verify_feed_counts.sql"));
    let counts = snapshot.transaction.query_one(&counts, &[]).await?;
    report.count(&counts, &["inboxes", "entries", "posts"]);
    findings(snapshot, &STATEMENTS, report).await
}

/// The report about a shard. If a part of its history was emptied meanwhile, contradictions prove nothing.
async fn shard_report(client: &mut Client, schema: &str) -> Result<Report, HistoryError> {
    let mut attempt = 1;
    loop {
        let mut report = Report::default();
        let snapshot = Snapshot::begin(client, schema).await?;
        let before = snapshot.parts().await?;
        check(&snapshot, &mut report).await?;
        drop(snapshot);
        let is_same = Snapshot::begin(client, schema).await?.parts().await? == before;
        if report.sound() || is_same || attempt == ATTEMPTS {
            return Ok(report);
        }
        attempt += 1;
    }
}

/// The counter whose history is read at the moment.
struct Current {
    name: String,
    /// None after the first contradiction, which all later rows would repeat.
    fold: Option<Fold>,
}

#[derive(Default)]
struct Counts {
    counters: u64,
    commands: u64,
    snapshots: u64,
}

async fn counters(snapshot: &Snapshot<'_>, report: &mut Report) -> Result<(), HistoryError> {
    let whole = snapshot.whole().await?;
    let mut history = History::open(snapshot, Range::ALL).await?;
    let mut progress = Progress::new(None);
    let mut counts = Counts::default();
    let mut current: Option<Current> = None;
    while let Some(record) = history.next().await? {
        progress.step();
        let name = record.counter();
        if current.as_ref().is_none_or(|current| current.name != name) {
            end(current.take(), &mut counts, report);
            let fold = match record.kind() {
                Kind::Counter(head) => {
                    counts.counters += 1;
                    current = Some(Current { name: name.to_owned(), fold: Some(Fold::new(head, whole)) });
                    continue;
                }
                Kind::Command | Kind::Snapshot => None,
            };
            report.wrong(format!("counter {name}: it has a history and no row in hotrow.counter"));
            current = Some(Current { name: name.to_owned(), fold });
        }
        let Some(Current { fold: known, .. }) = &mut current else { continue };
        if let Some(Err(difference)) = known.as_mut().map(|fold| record.fold(fold)) {
            report.wrong(format!("counter {name}: {difference}"));
            known.take().into_iter().for_each(|fold| counts.add(&fold));
        }
    }
    end(current, &mut counts, report);
    progress.finish();
    report.checked("counters", counts.counters);
    report.checked("commands", counts.commands);
    report.checked("snapshots", counts.snapshots);
    Ok(())
}

impl Counts {
    fn add(&mut self, fold: &Fold) {
        self.commands += fold.commands;
        self.snapshots += fold.snapshots;
    }
}

fn end(current: Option<Current>, counts: &mut Counts, report: &mut Report) {
    if let Some(Current { name, fold: Some(mut fold) }) = current {
        if let Err(difference) = fold.end() {
            report.wrong(format!("counter {name}: {difference}"));
        }
        counts.add(&fold);
    }
}

/// Each statement finds contradictions.
async fn findings(
    snapshot: &Snapshot<'_>,
    statements: &[&str],
    report: &mut Report,
) -> Result<(), HistoryError> {
    for statement in statements {
        let no_parameters: [&str; 0] = [];
        let rows = snapshot.transaction.query_raw(&snapshot.text(statement), no_parameters).await?;
        let mut rows = Box::pin(rows);
        while let Some(row) = rows.try_next().await? {
            report.wrong(Row::get(&row, 0));
        }
    }
    Ok(())
}
