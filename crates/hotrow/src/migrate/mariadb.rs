//! `hotrow migrate` for a MariaDB server: installs the table and the routines that packing needs there, or prints their SQL.

use std::process::ExitCode;

use hotrow_mysql_client::{Client, INSTALL, OwnError, Upstream, UpstreamError};
use hotrow_sql::DEFAULT_ROLE;

use super::{Args, print};

/// Why the command failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An option without a meaning for this server.
    #[error("{0} is an option for a PostgreSQL server, and has no meaning for MariaDB: leave it out")]
    Option(&'static str),
    /// The URL.
    #[error(transparent)]
    Upstream(#[from] UpstreamError),
    /// The server cannot be reached.
    #[error("cannot reach the server: {0}; check host and port in the URL, and whether the server runs")]
    Unreachable(OwnError),
    /// The server refuses the login or a statement.
    #[error(
        "the routines for packing are not installed: {0}; the user of the URL needs all rights. An administrator without a \
         password can run `hotrow migrate --dry-run --upstream mysql://root@localhost | mariadb` on the server's machine"
    )]
    Refused(OwnError),
    /// The system.
    #[error("the operating system reports: {0}")]
    System(#[from] std::io::Error),
}

impl From<OwnError> for Error {
    fn from(error: OwnError) -> Self {
        match error {
            OwnError::Refused(_) | OwnError::Plugin(_) => Error::Refused(error),
            _ => Error::Unreachable(error),
        }
    }
}

/// Installs everything again, which is harmless, or prints it for a dry run.
pub async fn run(args: &Args) -> Result<ExitCode, Error> {
    let given =
        [(args.check, "--check"), (args.distribute, "--distribute"), (args.role != DEFAULT_ROLE, "--role")];
    if let Some((_, option)) = given.into_iter().find(|(is_given, _)| *is_given) {
        return Err(Error::Option(option));
    }
    let upstream: Upstream = args.upstream.parse()?;
    if args.dry_run {
        print(INSTALL)?;
    } else {
        Client::open(&upstream).await?.script(INSTALL).await?;
        print(&format!(
            "installed the database hotrow at {upstream}: users whose statements are to be packed need EXECUTE on it\n"
        ))?;
    }
    Ok(ExitCode::SUCCESS)
}
