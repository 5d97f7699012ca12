//! `hotrow help`: the settings as a table, or a command's own help.

use std::io::Write;
use std::process::ExitCode;

use clap::CommandFactory;

use crate::settings::Settings;

/// `hotrow help`
#[derive(clap::Args)]
pub struct Args {
    /// `config`, or the name of a command
    topic: Option<String>,
}

/// Runs it.
pub fn run<C: CommandFactory>(args: &Args) -> std::io::Result<ExitCode> {
    let mut stdout = std::io::stdout();
    let mut command = C::command();
    match args.topic.as_deref() {
        None => command.print_help()?,
        Some("config") => write!(stdout, "{}", config())?,
        Some(topic) => match command.find_subcommand_mut(topic) {
            Some(subcommand) => subcommand.print_long_help()?,
            None => {
                writeln!(
                    std::io::stderr(),
                    "hotrow: no help on {topic:?}; try: hotrow help config, hotrow help serve"
                )?;
                return Ok(ExitCode::from(2));
            }
        },
    }
    Ok(ExitCode::SUCCESS)
}

fn config() -> String {
    let mut text = String::from(
        "Settings of hotrow serve. Each can be a flag (--lane-lock-timeout-ms 50), an environment variable\n\
         (HOTROW_LANE_LOCK_TIMEOUT_MS=50) or a line of the file named by --config (lane_lock_timeout_ms = 50);\n\
         a flag wins over the environment, and that over the file.\n\n",
    );
    for setting in Settings::table() {
        text.push_str(&format!(
            "  {:<22} {:>15} {:<12} {}\n",
            setting.name, setting.default, setting.unit, setting.meaning
        ));
    }
    text
}
