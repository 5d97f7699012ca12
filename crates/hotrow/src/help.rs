//! `hotrow help`: the list of settings, or the help of a command.

use std::io::Write;
use std::process::ExitCode;

use clap::CommandFactory;
use hotrow_core::page;

use crate::settings::{NEEDS_RESTART, Settings};

/// `hotrow help`
#[derive(clap::Args)]
pub struct Args {
    /// `config`, or the name of a command
    topic: Option<String>,
}

/// Runs the command.
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
                    "hotrow: there is no help on {topic:?}; try hotrow help config or hotrow help serve"
                )?;
                return Ok(ExitCode::from(2));
            }
        },
    }
    Ok(ExitCode::SUCCESS)
}

/// The tables of several servers.
const SERVERS: &str = concat!(
    "\nInstead of upstream the file can have [[server]] and [[database]] tables, for databases of several servers. A reload\n\
     applies to new clients. The details: ",
    page!("servers.md"),
    "\n\n  \
     [[server]]\n  \
     name = \"shop\"\n  \
     url = \"postgres://gate@10.0.0.5:5432/postgres\"   # as in upstream; the user is for the gateway's own queries\n\n  \
     [[database]]\n  \
     name = \"shop\"                  # the name that clients connect to; \"*\" for all that no other table names\n  \
     server = \"shop\"                # the name of a [[server]] table\n  \
     database = \"shop_live\"         # the name at the server; the same name if omitted\n  \
     user = \"app\"                   # the user of all clients at the server; each client's own user if omitted\n  \
     password = \"...\"               # its password, if neither url nor users_file has it\n\n\
     HTTP, and logins to the console, use the first [[database]] table.\n"
);

fn config() -> String {
    let mut text = String::from(
        "Settings of hotrow serve. Each setting can be a flag (--lane-lock-timeout-ms 50), an environment variable\n\
         (HOTROW_LANE_LOCK_TIMEOUT_MS=50) or a line of the file named by --config (lane_lock_timeout_ms = 50).\n\
         Flags take precedence over the environment, and the environment over the file.\n\n\
         SIGHUP reads the file again. Settings take effect immediately, with two exceptions: those marked * take\n\
         effect at the next start, and a new number of lanes applies to users and databases that connect later. A file with\n\
         an error changes nothing, and the log names the line.\n\n",
    );
    for setting in Settings::table() {
        let mark = if NEEDS_RESTART.contains(&setting.name) { "*" } else { " " };
        text.push_str(&format!(
            "{mark} {:<22} {:>15} {:<12} {}\n",
            setting.name, setting.default, setting.unit, setting.meaning
        ));
    }
    text.push_str(
        "\nThe file can also have [[pool]] tables with settings for a database, a user, or a user in a database. Only the\n\
         first table that matches a client applies to it:\n\n  \
         [[pool]]\n  \
         database = \"shop\"               # all databases if omitted\n  \
         user = \"ann\"                    # all users if omitted\n  \
         clients_max = 100               # for all clients of the table together; the gateway's limit also applies\n  \
         held_connections_max = 20       # as above\n  \
         pack = \"shadow\"                 # replaces the setting above; also possible: unpacked_tables, lanes, held_wait_ms,\n  \
         queue_wait_ms = 2000            # lane_lock_timeout_ms, server_wait_ms, catalog_age_ms\n  \
         settings = { statement_timeout = \"5s\" }   # settings of the server, unless the client sends its own\n",
    );
    text.push_str(SERVERS);
    text
}
