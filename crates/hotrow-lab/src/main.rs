//! The program `hotrow-lab`. Its parts are in the library of this crate.

use clap::{Parser, Subcommand};
use hotrow_bench::{Error, Outcome};
use hotrow_lab::billion::Ended;
use std::io::Write;
use std::process::ExitCode;

/// Makes the published figures of Hotrow that need more than `hotrow bench`.
#[derive(Debug, Parser)]
#[command(name = "hotrow-lab", version)]
struct Command {
    #[command(subcommand)]
    command: Subcommands,
}

#[derive(Debug, Subcommand)]
enum Subcommands {
    /// Measure a scenario, with the program `hotrow` that lies beside this one
    Bench(Box<hotrow_lab::Args>),
    /// Send a billion statements under a thousand kills, and check every answer (hours; goes on after an interruption)
    Billion(hotrow_lab::billion::Args),
    /// Send the load of `billion` without kills, and show whether memory, descriptors, logs or tables grow (12 hours; goes on after
    /// an interruption)
    Soak(hotrow_lab::soak::Args),
    /// Simulate 1 to 100 nodes, 1 to 20 gateways and up to a million requests per second (five minutes)
    Model(hotrow_lab::model::Args),
    /// Make random transactions through gateways that fail, and check their isolation
    Histories(hotrow_lab::histories::Args),
}

fn main() -> ExitCode {
    let Command { command } = Command::parse();
    let done = match command {
        Subcommands::Bench(args) => hotrow_lab::run(*args).map(print_outcome),
        Subcommands::Billion(args) => hotrow_lab::billion::run(args).map(print_end),
        Subcommands::Soak(args) => hotrow_lab::soak::run(args).map(print_end),
        Subcommands::Model(args) => hotrow_lab::model::run(args).map(|text| {
            print(&text);
            ExitCode::SUCCESS
        }),
        Subcommands::Histories(args) => hotrow_lab::histories::run(&args).map(|verdict| {
            print(&verdict.markdown);
            if verdict.is_broken { ExitCode::FAILURE } else { ExitCode::SUCCESS }
        }),
    };
    done.unwrap_or_else(|error: Error| {
        eprintln!("hotrow-lab: {error}");
        ExitCode::FAILURE
    })
}

fn print_outcome(outcome: Outcome) -> ExitCode {
    print(&outcome.markdown);
    outcome.say("hotrow-lab");
    outcome.exit_code()
}

fn print_end(ended: Ended) -> ExitCode {
    print(&ended.markdown);
    match ended {
        Ended { fault: Some(fault), .. } => {
            eprintln!("hotrow-lab: a promise is broken: {fault}");
            ExitCode::FAILURE
        }
        Ended { is_done: true, .. } => ExitCode::SUCCESS,
        Ended { .. } => {
            eprintln!("hotrow-lab: not finished; the same command goes on after the last checked round");
            ExitCode::SUCCESS
        }
    }
}

/// A reader such as `head` may close standard output. The text is also in its folder.
fn print(text: &str) {
    let _ = std::io::stdout().write_all(text.as_bytes());
}
