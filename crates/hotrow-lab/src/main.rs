//! The laboratory: the program `hotrow-lab` makes figures that the project publishes and that no user of Hotrow needs. It is
//! not part of Hotrow.
//!
//! | file | contents |
//! |---|---|
//! | `model.rs`, `model/` | a simulation of gateways and servers, calibrated with measured runs |

mod model;

use clap::{Parser, Subcommand};
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
    /// Simulate 1 to 100 nodes, 1 to 20 gateways and up to a million requests per second (five minutes)
    Model(model::Args),
}

fn main() -> ExitCode {
    let Command { command } = Command::parse();
    let done = match command {
        Subcommands::Model(args) => model::run(args).map(|text| print(&text)),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("hotrow-lab: {error}");
            ExitCode::FAILURE
        }
    }
}

/// A reader such as `head` may close standard output. The text is also in its folder.
fn print(text: &str) {
    let _ = std::io::stdout().write_all(text.as_bytes());
}
