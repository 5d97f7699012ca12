//! `hotrow demo`: a flash sale on one row, directly on PostgreSQL or MariaDB and through Hotrow, side by side. The gateway uses nothing
//! from here, and `hotrow bench` has its own measurements.
//!
//! | file | contents |
//! |---|---|
//! | `stage` | server, gateway and connection: set up before the sale, removed after it |
//! | `gateway` | this program as a gateway in its own process |
//! | `browser` | opens the operations page |
//! | `postgres/`, `mariadb/` | the table and a buyer's connection on both kinds of server |
//! | `sale`, `target` | the choice between the two |
//! | `facts` | the server's version and settings, and texts that depend on its kind |
//! | `stocktaking` | the comparison of the row with the answers |
//! | `round` | one round on one side, and its figures |
//! | `buyers` | the load: many connections in one thread |
//! | `answer` | the answer that a buyer gets |
//! | `view` | the output during the sale |
//! | `report` | the result, as text and as JSON |
//! | `story` | the explanation of the result |
//! | `layout` | lines that fit the terminal |
//! | `signals` | Ctrl-C and other signals to stop |
//! | `error` | the errors |

mod answer;
mod browser;
mod buyers;
mod error;
mod facts;
mod figures;
mod gateway;
mod layout;
mod mariadb;
mod postgres;
mod report;
mod round;
mod sale;
mod signals;
mod stage;
mod stocktaking;
mod story;
mod target;
#[cfg(test)]
mod tests;
mod view;

use std::process::ExitCode;
use std::time::Duration;

use clap::value_parser;

use self::buyers::Demand;
pub use self::error::Error;
use self::figures::{Plan, Side};
use self::layout::Layout;
use self::report::Report;
use self::sale::Sale;
use self::signals::StopSignals;
use self::stage::{Place, Stage};
use self::view::View;

/// No round can sell this stock, so no purchase of a timed round is refused.
const LARGE_STOCK: i32 = 1_000_000_000;
const RUSH_STOCK: i32 = 100;
const RUSH_BUYERS: u64 = 10_000;
/// On MariaDB, a batch takes longer.
const RUSH_BUYERS_MARIADB: u64 = 2_000;
/// The exit status that a shell reports for a program ended by Ctrl-C.
const STOPPED_STATUS: u8 = 130;

/// Show a flash sale on one row, with and without Hotrow
///
/// Many buyers want the same item at the same time. Each purchase is one ordinary UPDATE of one row. The rounds go
/// directly to the server and through Hotrow in turn. After each round, the demo compares the row with the buyers'
/// answers. If they differ, the exit status is 1.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// Server for the sale, instead of a private server that the demo starts and removes
    ///
    /// The demo uses the schema hotrow_demo, which it creates and drops at the end.
    #[arg(long, value_name = "URL")]
    upstream: Option<String>,

    /// Sell on a private MariaDB server instead, which must be installed (Linux only); the gateway in front of MariaDB is a preview
    ///
    /// The server writes its binary log in ROW format and flushes both logs at each commit.
    #[arg(long, conflicts_with_all = ["upstream", "page"])]
    mysql: bool,

    /// Length of each round, in seconds (1 to 60)
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = value_parser!(u64).range(1..=60))]
    seconds: u64,

    /// Rounds on each side; the comparison uses their median (1 to 20)
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = value_parser!(u32).range(1..=20))]
    rounds: u32,

    /// Concurrent buyers, each with a connection (1 to 500)
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = value_parser!(u16).range(1..=500))]
    buyers: u16,

    /// Serve the gateway's operations page while the demo runs, and open it in a browser if there is one
    ///
    /// More rounds give more time to look at it: hotrow demo --page --rounds 20
    #[arg(long, conflicts_with = "json")]
    page: bool,

    /// Print one JSON document only
    #[arg(long)]
    json: bool,
}

/// Runs the demo. Server, gateway and schema are removed afterwards, also after an error.
pub fn run(args: Args) -> Result<ExitCode, Error> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Error::Runtime)?;
    let mut view = View::new(args.json);
    let outcome = runtime.block_on(show(&args, &mut view));
    // If the start of a server was interrupted, the thread that starts it also stops it. Dropping the runtime waits for that.
    drop(runtime);
    view.ends();
    match outcome {
        Ok(report) => {
            view.print(&if args.json { report.json() } else { report.text(view.layout()) })?;
            Ok(if report.passed() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
        }
        Err(Error::Stopped) => {
            view.say("\n  Stopped. The demo has removed its server, gateway and schema.")?;
            Ok(ExitCode::from(STOPPED_STATUS))
        }
        Err(error) => Err(error),
    }
}

async fn show(args: &Args, view: &mut View) -> Result<Report, Error> {
    let mut stop = StopSignals::listen()?;
    view.say(&format!("\n  A flash sale: {} concurrent buyers, one item, one row\n", args.buyers))?;
    let place = match &args.upstream {
        Some(url) => Place::Upstream(url),
        None if args.mysql => Place::MariaDb,
        None => Place::Postgres,
    };
    let mut stage = stop.or(Stage::set(place, args.page, view)).await?;
    let outcome = stop.or(sell(args, &mut stage, view)).await.map_err(|error| stage.explained(error));
    view.busy("removing server and gateway");
    let cleared = stage.clear().await;
    let report = outcome?;
    cleared?;
    Ok(report)
}

async fn sell(args: &Args, stage: &mut Stage, view: &mut View) -> Result<Report, Error> {
    if let Sale::Postgres(sale) = &mut stage.sale {
        sale.open().await?;
    }
    view.say(&introduction(stage, view.layout()))?;
    if let Some(url) = stage.page() {
        browser::open(&url);
    }
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
        demand: Demand::Buyers(if args.mysql { RUSH_BUYERS_MARIADB } else { RUSH_BUYERS }),
    };
    let rush = round::hold(stage, rush, view).await?;
    Ok(Report::of(&stage.facts, args.buyers.into(), &rounds, &rush))
}

/// The two sides in turn: a slow moment of the machine affects both.
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

fn introduction(stage: &Stage, layout: Layout) -> String {
    let facts = &stage.facts;
    let direct = stage.target(Side::Direct).address();
    let gateway = stage.target(Side::Hotrow).address();
    let whose = if stage.private() { "private, removed at the end" } else { "yours" };
    let durable =
        if facts.durable() { "a sale is on disk when it is acknowledged" } else { "a crash can lose sales" };
    let mut entries = vec![
        ("server", format!("{} on {direct}, {whose}", facts.product())),
        ("durable", format!("{}: {durable}", facts.settings())),
        ("gateway", format!("hotrow serve on {gateway}, in front of that server")),
        ("build", build(report::BUILD)),
        ("purchase", stage.target(Side::Direct).purchase_sql().to_owned()),
    ];
    if let Some(url) = stage.page() {
        entries.insert(3, ("page", format!("{url}, until the demo ends")));
    }
    if !stage.private() {
        entries.insert(1, ("schema", "hotrow_demo, dropped at the end".to_owned()));
    }
    let lines: Vec<String> = entries.iter().map(|(name, value)| layout.entry(name, value)).collect();
    lines.join("\n") + "\n"
}

/// The profile of the build, and how its figures compare with those of the documentation.
fn build(profile: &str) -> String {
    match profile {
        "release" => "profile release, as for the figures in the documentation".to_owned(),
        profile => format!(
            "profile {profile}, slower than the release build that the figures in the documentation are from"
        ),
    }
}

/// The text of an SQL file without the comment in its first line.
fn without_comment(file: &'static str) -> &'static str {
    file.split_once('\n').map_or(file, |(_comment, sql)| sql).trim_end()
}
