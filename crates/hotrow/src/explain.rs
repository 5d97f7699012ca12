//! `hotrow explain`: whether the gateway packs a statement, with which key, and why.

use std::io::Write;
use std::process::ExitCode;

use hotrow_connect::config::UpstreamError;

/// `hotrow explain`
#[derive(clap::Args)]
#[command(
    after_help = "The server parses the statement and does not run it. If the server rejects it, the exit status is 1. On \
    MariaDB, only the facts about its table are read.\n\n\
    Example: hotrow explain --upstream postgres://127.0.0.1/shop \"update item set stock = stock - 1 where id = 7\""
)]
pub struct Args {
    /// The server with the statement's tables: a libpq URL or keyword string, or mysql://user:password@host:port/database
    #[arg(long, env = "HOTROW_UPSTREAM", hide_env = true, hide_env_values = true, value_name = "URL")]
    upstream: String,
    /// The statement, with literals or with $1, $2, ...
    sql: String,
}

/// Why there is no explanation.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no statement.
    #[error(
        "the statement is empty: write it in quotes, for example \"update item set stock = stock - 1 where id = 7\""
    )]
    Empty,
    /// The server's URL.
    #[error(transparent)]
    Upstream(#[from] UpstreamError),
    /// The server.
    #[error(transparent)]
    Explain(#[from] hotrow_doctor::JudgeError),
    /// MariaDB.
    #[error(transparent)]
    MariaDb(#[from] hotrow_doctor::mariadb::Error),
    /// The system.
    #[error("the operating system reports: {0}")]
    System(#[from] std::io::Error),
}

/// Runs the command.
pub fn run(args: Args) -> Result<ExitCode, Error> {
    if args.sql.trim().is_empty() {
        return Err(Error::Empty);
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let text = if hotrow_doctor::mariadb::is_meant_by(&args.upstream) {
        runtime.block_on(hotrow_doctor::mariadb::explain(&args.upstream, &args.sql))?
    } else {
        runtime.block_on(hotrow_doctor::explain(args.upstream.parse()?, &args.sql))?
    };
    writeln!(std::io::stdout(), "{}", crate::visible_lines(&text))?;
    Ok(ExitCode::SUCCESS)
}
