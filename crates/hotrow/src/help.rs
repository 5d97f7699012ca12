//! `hotrow help`: the settings as a table, or a command's own help.

use std::io::Write;
use std::process::ExitCode;

use clap::CommandFactory;

use crate::settings::{NEEDS_RESTART, Settings};

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
         a flag wins over the environment, and that over the file. SIGHUP reads the file again: what it sets is in\n\
         force at once, but for the settings marked *, which wait for the next start, and for lanes, of which users and\n\
         databases that are connected keep what they have. A file with a mistake changes nothing, and the log says where\n\
         it is.\n\n",
    );
    for setting in Settings::table() {
        let mark = if NEEDS_RESTART.contains(&setting.name) { "*" } else { " " };
        text.push_str(&format!(
            "{mark} {:<22} {:>15} {:<12} {}\n",
            setting.name, setting.default, setting.unit, setting.meaning
        ));
    }
    text.push_str(
        "\nOnly in the file: [[pool]] tables, for a database, a user, or a user in a database. The first table that fits a\n\
         client is in force for it, and no other:\n\n  \
         [[pool]]\n  \
         database = \"shop\"                # any, if it is left out\n  \
         user = \"ann\"                    # any, if it is left out\n  \
         clients_max = 100               # of all clients that the table is for, beside the gateway's own limit\n  \
         held_connections_max = 20       # likewise\n  \
         pack = true                     # these and lanes, held_wait_ms, lane_lock_timeout_ms, server_wait_ms,\n  \
         queue_wait_ms = 2000            # queue_wait_ms, catalogue_age_ms: instead of the setting above\n  \
         settings = { statement_timeout = \"5s\" }   # the server's settings, unless the client starts with its own\n",
    );
    text
}
