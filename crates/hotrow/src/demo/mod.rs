//! `hotrow demo`: a flash sale on one row, first straight to PostgreSQL, then through Hotrow, side by side. Nothing
//! here is used by the gateway, and nothing is measured here that `hotrow bench` reports.
//!
//! | file | holds |
//! |---|---|
//! | `stage` | server, gateway and connection: set before, cleared after |
//! | `gateway` | this program as a gateway, in a process of its own |
//! | `sale` | the table, and the check of its row against the answers |
//! | `round` | one round on one side, and its figures |
//! | `buyers` | the load: many connections in one thread |
//! | `connection` | one of them: log in, prepare, buy |
//! | `view` | what is seen meanwhile |
//! | `report` | what is left at the end, as text and as JSON |
//! | `story` | the words under it |
//! | `signals` | Ctrl-C and the like |
//! | `error` | what can go wrong |

mod buyers;
mod connection;
mod error;
mod figures;
mod gateway;
mod report;
mod round;
mod sale;
mod signals;
mod stage;
mod story;
#[cfg(test)]
mod tests;
mod view;

use std::process::ExitCode;
use std::time::Duration;

use clap::value_parser;

use self::buyers::Demand;
use self::connection::purchase_sql;
pub use self::error::Error;
use self::figures::{Plan, Side};
use self::report::Report;
use self::signals::StopSignals;
use self::stage::Stage;
use self::view::View;

/// More than any round can sell, so that no timed purchase is refused.
const LARGE_STOCK: i32 = 1_000_000_000;
const RUSH_STOCK: i32 = 100;
const RUSH_BUYERS: u64 = 10_000;
/// What a shell reports for a program that Ctrl-C ended.
const STOPPED_STATUS: u8 = 130;

/// See what Hotrow does: a flash sale on one row, with and without it
///
/// Many buyers want the same item at the same time; each purchase is one ordinary UPDATE of one row. First they go
/// straight to PostgreSQL, then through Hotrow, in turns. Afterwards the row is compared with what the buyers were
/// told; if they disagree, the exit status is 1.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// Server to sell on, instead of a private one that is started and removed
    ///
    /// The demo works in a schema of its own, hotrow_demo, and drops it at the end.
    #[arg(long, value_name = "URL")]
    upstream: Option<String>,

    /// Length of each round, in seconds (1 to 60)
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = value_parser!(u64).range(1..=60))]
    seconds: u64,

    /// Rounds on each side, of which the median counts (1 to 20)
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = value_parser!(u32).range(1..=20))]
    rounds: u32,

    /// Buyers at the same time, each with a connection (1 to 500)
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = value_parser!(u16).range(1..=500))]
    buyers: u16,

    /// Print one JSON document and nothing else
    #[arg(long)]
    json: bool,
}

/// Shows the demo. Whatever happens, server, gateway and schema are gone afterwards.
pub fn run(args: Args) -> Result<ExitCode, Error> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Error::Runtime)?;
    let mut view = View::new(args.json);
    let outcome = runtime.block_on(show(&args, &mut view));
    // A server whose start was interrupted is stopped by the thread that starts it; this waits for that.
    drop(runtime);
    view.ends();
    match outcome {
        Ok(report) => {
            view.print(&if args.json { report.json() } else { report.text() })?;
            Ok(if report.passed() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
        }
        Err(Error::Stopped) => {
            view.say("\n  Stopped; nothing is left behind.")?;
            Ok(ExitCode::from(STOPPED_STATUS))
        }
        Err(error) => Err(error),
    }
}

async fn show(args: &Args, view: &mut View) -> Result<Report, Error> {
    let mut stop = StopSignals::listen()?;
    view.say(&format!("\n  A flash sale: {} buyers at once, one item, one row\n", args.buyers))?;
    let mut stage = stop.or(Stage::set(args.upstream.as_deref(), view)).await?;
    let outcome = stop.or(sell(args, &mut stage, view)).await.map_err(|error| stage.explained(error));
    view.busy("clearing up");
    let cleared = stage.clear().await;
    let report = outcome?;
    cleared?;
    Ok(report)
}

async fn sell(args: &Args, stage: &mut Stage, view: &mut View) -> Result<Report, Error> {
    stage.sale.open().await?;
    view.say(&introduction(stage))?;
    let plans = plans(args);
    view.table_begins(&plans)?;
    let mut rounds = Vec::with_capacity(plans.len());
    for plan in plans {
        rounds.push(round::hold(stage, plan, view).await?);
    }
    let rush = Plan {
        number: None,
        side: Side::Hotrow,
        stock: RUSH_STOCK,
        buyers: args.buyers.into(),
        demand: Demand::Buyers(RUSH_BUYERS),
    };
    let rush = round::hold(stage, rush, view).await?;
    Ok(Report::of(&stage.facts, args.buyers.into(), &rounds, &rush))
}

/// The two sides in turns, so that a slow moment of the machine hits both.
fn plans(args: &Args) -> Vec<Plan> {
    let sides = |round| [Side::Direct, Side::Hotrow].map(|side| (round, side));
    (1..=args.rounds)
        .flat_map(sides)
        .map(|(round, side)| Plan {
            number: Some(round),
            side,
            stock: LARGE_STOCK,
            buyers: args.buyers.into(),
            demand: Demand::For(Duration::from_secs(args.seconds)),
        })
        .collect()
}

fn introduction(stage: &Stage) -> String {
    let facts = &stage.facts;
    let whose = if stage.private() {
        "private, removed at the end"
    } else {
        "yours\n  schema    hotrow_demo, dropped at the end"
    };
    let durable = if facts.durable() { "sold means on disk" } else { "sold may be lost in a crash" };
    format!(
        "  server    PostgreSQL {} on {}, {whose}\n  \
           durable   fsync {}, synchronous_commit {}: {durable}\n  \
           gateway   hotrow serve on {}, in front of that server\n  \
           purchase  {}\n",
        facts.version,
        stage.target(Side::Direct).address(),
        facts.fsync,
        facts.synchronous_commit,
        stage.target(Side::Hotrow).address(),
        purchase_sql().replace(" WHERE", "\n            WHERE"),
    )
}
