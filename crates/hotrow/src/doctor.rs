//! `hotrow doctor`: prints the report, which `hotrow-doctor` makes.

use std::io::Write;
use std::process::ExitCode;

/// Runs the command. The exit status is 0 if there is a report, whatever it says.
pub fn run(args: &hotrow_doctor::Args) -> Result<ExitCode, hotrow_doctor::Error> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    if let Some(gateway) = &args.shadow {
        let lines = runtime.block_on(hotrow_doctor::shadow(gateway))?;
        let _ = std::io::stdout().write_all(lines.as_bytes());
        return Ok(ExitCode::SUCCESS);
    }
    hotrow_doctor::check(args)?;
    eprintln!("hotrow: examining the server for {} seconds", args.seconds);
    let text = runtime.block_on(hotrow_doctor::run(args))?;
    // A reader such as `head` may close standard output.
    let _ = std::io::stdout().write_all(text.as_bytes());
    Ok(ExitCode::SUCCESS)
}
