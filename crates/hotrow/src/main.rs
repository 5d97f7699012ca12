//! The `hotrow` command: parses the command line and calls the module of the command.

mod bench;
mod completions;
mod convert;
mod demo;
mod direct;
mod doctor;
mod explain;
mod health;
mod help;
mod http;
mod limits;
mod live;
mod log;
mod manager;
mod metrics;
mod migrate;
mod replay;
mod serve;
mod settings;
mod signals;
mod successor;
mod traces;
mod verify;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use hotrow_core::untrusted::visible;

/// Group commit across clients for PostgreSQL.
///
/// Point your driver at Hotrow's port instead of PostgreSQL's. Statements that update the same row run in one
/// transaction and are committed once. Each client gets its own exact answer. Everything else is passed through.
#[derive(Parser)]
#[command(version, disable_help_subcommand = true, after_help = "Start with: hotrow demo")]
struct Command {
    #[command(subcommand)]
    command: Subcommands,
}

#[derive(Subcommand)]
enum Subcommands {
    /// Sell phones to many buyers, directly and through the gateway, on a private server; needs no database
    Demo(demo::Args),
    /// Run the gateway in front of a PostgreSQL server, or of a MariaDB server (preview)
    Serve(Box<serve::Args>),
    /// Write settings from the configuration of PgBouncer (pgbouncer.ini) or pgcat (pgcat.toml)
    Convert(convert::Args),
    /// Show whether the gateway packs a statement or passes it through, with which key, and why
    Explain(explain::Args),
    /// Find out what the sessions of a server wait for, which row is hot, and whether the gateway would help
    Doctor(hotrow_doctor::Args),
    /// Install the hotrow schema: counters, sales, queues and feeds as SQL functions; on MariaDB, what packing needs
    Migrate(migrate::Args),
    /// Compute any past value of a counter from its history, and check the history
    Replay(replay::Args),
    /// Check that counters, sales, queues, feeds and histories agree with each other, under load too
    Verify(verify::Args),
    /// Compare Hotrow with other techniques in one run, and check every answer
    Bench(hotrow_bench::Args),
    /// Ask a running gateway whether it is live or ready, for health checks
    Health(health::Args),
    /// Print the script with which a shell completes commands and options
    Completions(completions::Args),
    /// List the settings (`hotrow help config`) or explain a command (`hotrow help serve`)
    Help(help::Args),
}

fn main() -> ExitCode {
    let command = Command::parse().command;
    run(command).unwrap_or_else(|error| {
        eprintln!("hotrow: {}", visible_lines(&error.to_string()));
        ExitCode::FAILURE
    })
}

fn run(command: Subcommands) -> Result<ExitCode, Box<dyn std::error::Error>> {
    let names: Vec<String> = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok()).collect();
    settings::environment::check_names(names.iter().map(String::as_str))?;
    match command {
        Subcommands::Demo(args) => demo::run(args).map_err(Into::into),
        Subcommands::Serve(args) => serve::run(*args).map_err(Into::into),
        Subcommands::Convert(args) => convert::run(args).map_err(Into::into),
        Subcommands::Explain(args) => explain::run(args).map_err(Into::into),
        Subcommands::Doctor(args) => doctor::run(&args).map_err(Into::into),
        Subcommands::Migrate(args) => migrate::run(args).map_err(Into::into),
        Subcommands::Replay(args) => replay::run(args).map_err(Into::into),
        Subcommands::Verify(args) => verify::run(args).map_err(Into::into),
        Subcommands::Bench(args) => bench::run(args).map_err(Into::into),
        Subcommands::Health(args) => health::run(args).map_err(Into::into),
        Subcommands::Completions(args) => completions::run::<Command>(&args).map_err(Into::into),
        Subcommands::Help(args) => help::run::<Command>(&args).map_err(Into::into),
    }
}

/// A text of several lines for a terminal. Messages of a server can be in it.
fn visible_lines(text: &str) -> String {
    text.lines().map(visible).collect::<Vec<_>>().join("\n")
}
