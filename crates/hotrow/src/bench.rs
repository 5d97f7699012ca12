//! `hotrow bench`: prints the report of a benchmark; measures nothing itself.

use std::io::Write;
use std::process::ExitCode;

/// Runs it.
pub fn run(args: hotrow_bench::Args) -> Result<ExitCode, hotrow_bench::Error> {
    let outcome = hotrow_bench::run(args)?;
    // Whoever has seen enough, such as `head`, may close our output; the report is in its folder too.
    let _ = std::io::stdout().write_all(outcome.markdown.as_bytes());
    for failure in &outcome.failures {
        eprintln!("hotrow: no figure for {failure}");
    }
    eprintln!("hotrow: this report, its numbers and its picture are in {}", outcome.folder.display());
    Ok(outcome.exit_code())
}
