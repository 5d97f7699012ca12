//! The command line of `hotrow doctor`.

use std::path::PathBuf;

use clap::builder::ArgPredicate;
use hotrow_core::page;

/// Finds out what the sessions of a server wait for, which row is hot, and whether the gateway would help.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = concat!("\
The doctor connects to the server itself, without a gateway. It needs no extension, writes nothing, and uses one connection \
at a time. A role of PostgreSQL that is a member of pg_monitor sees all sessions. To name the hot row, the role also needs SELECT \
on the row's table. An account of MariaDB needs the privilege PROCESS, and SELECT on the tables. The first lines of the report say what the sessions wait for and what to do; the rest are the figures \
behind them.\n\n\
Statements and keys are shown without values, unless --show-keys is given. The sampling takes at most 2 % of the time \
of one core: if a sample takes longer, the doctor takes fewer.\n\n\
Examples:\n  \
hotrow doctor --upstream postgres://monitor@db.example.com/shop\n  \
hotrow doctor --upstream postgres://monitor@db.example.com/shop --seconds 60 --json report.json --html report.html\n  \
hotrow doctor --upstream mysql://monitor:password@db.example.com:3306/shop\n  \
hotrow doctor --shadow postgres://ann@127.0.0.1:6432\n\n\
The report and the JSON: ", page!("doctor.md"), "\nThose about MariaDB: ", page!("mysql/doctor.md")))]
pub struct Args {
    /// The same as --upstream
    #[arg(value_name = "URL", conflicts_with = "shadow")]
    pub url: Option<String>,

    /// The server and database to examine: a libpq URL or keyword string, or mysql://user:password@host:port/database
    #[arg(long, env = "HOTROW_UPSTREAM", hide_env = true, hide_env_values = true, value_name = "URL")]
    #[arg(required = false, required_unless_present_any = ["shadow", "url"])]
    #[arg(
        default_value_if("shadow", ArgPredicate::IsPresent, ""),
        default_value_if("url", ArgPredicate::IsPresent, "")
    )]
    pub upstream: String,

    /// Print what a gateway in shadow mode has found, in five lines, and examine no server: the gateway's URL
    #[arg(long, value_name = "URL", num_args = 0..=1, default_missing_value = "postgres://127.0.0.1:6432")]
    pub shadow: Option<String>,

    /// Length of the examination, in seconds
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..=3600))]
    pub seconds: u32,

    /// Time between two samples, in milliseconds; longer if a sample takes long
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(10..=10_000))]
    pub interval_ms: u32,

    /// File for the report as JSON
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,

    /// File for the report as one HTML page, which loads nothing; for PostgreSQL
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,

    /// Show the values of keys and of constants in statements, which can be personal data
    #[arg(long)]
    pub show_keys: bool,
}

impl Args {
    /// The server to examine.
    pub fn server(&self) -> &str {
        self.url.as_deref().unwrap_or(&self.upstream)
    }
}
