//! `hotrow bench`: prints the report of a benchmark, which `hotrow-bench` measures.

use std::io::Write;
use std::process::ExitCode;

/// Runs the command.
pub fn run(args: hotrow_bench::Args) -> Result<ExitCode, hotrow_bench::Error> {
    let outcome = hotrow_bench::run(args)?;
    // A reader such as `head` may close standard output. The report is also in its folder.
    let _ = std::io::stdout().write_all(outcome.markdown.as_bytes());
    outcome.say("hotrow");
    Ok(outcome.exit_code())
}
