//! `hotrow migrate`: installs the hotrow schema, prints what it would install, or compares. The SQL itself is in `hotrow-sql`.
//! `mariadb.rs` installs what packing needs at a MariaDB server.

mod mariadb;

use std::io::{ErrorKind, Write};
use std::process::ExitCode;

use hotrow_core::page;
use hotrow_core::untrusted::visible;
use hotrow_mysql_client::Upstream;
use hotrow_sql::{DEFAULT_ROLE, Difference, GroupRole, MIGRATIONS, State};
use tokio_postgres::Client;

/// `hotrow migrate`
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    hotrow migrate --upstream postgres://owner@127.0.0.1/shop --role shop_app\n  \
    hotrow migrate --upstream mysql://admin:secret@127.0.0.1:3306      what packing needs on MariaDB (preview)")]
pub struct Args {
    /// The server and database to install into: a libpq URL or keyword string, or a mysql:// URL
    #[arg(long, env = "HOTROW_UPSTREAM", hide_env = true, hide_env_values = true, value_name = "URL")]
    upstream: String,
    /// The role whose members can call the functions; created if it is missing, which needs the right to create roles
    #[arg(long, default_value = DEFAULT_ROLE, value_name = "NAME")]
    role: String,
    /// Print the statements that would run, and change nothing
    #[arg(long, conflicts_with = "check")]
    dry_run: bool,
    /// Compare the installed hotrow schema with this program; the exit status is 0 if they agree, else 1
    ///
    /// The comparison covers the list of migrations, each function of the hotrow schema (text, settings, owner, rights
    /// to call it), also of each shard of a distributed hotrow schema and on each node, and the role with its grants. It
    /// does not cover tables, settings, merge rules, or other objects in the schema.
    #[arg(long)]
    check: bool,
    /// Distribute counters, sales, queues and feeds over the nodes of a cluster of Citus 12 or later
    #[arg(long, conflicts_with_all = ["check", "dry_run"], long_help = DISTRIBUTE)]
    distribute: bool,
    /// Number of shards, a power of two; fixed by the first run
    #[arg(long, requires = "distribute", value_name = "N", value_parser = shards)]
    shards: Option<i32>,
}

/// The long help of `--distribute`.
const DISTRIBUTE: &str = concat!(
    "Distribute counters, sales, queues and feeds over the nodes of a cluster of Citus 12 or later\n\n",
    "The URL names the coordinator. Rows that exist are moved in one transaction, and calls wait for it. ",
    "An interrupted run is completed by the next one. The differences from a hotrow schema on one server: ",
    page!("citus.md"),
);

/// A number of shards that divides the hashes into equal parts.
fn shards(text: &str) -> Result<i32, String> {
    let number = text.parse::<i32>().ok().filter(|number| (1..=hotrow_sql::SHARDS_MAX).contains(number));
    number.filter(|number| number.count_ones() == 1).ok_or_else(|| {
        format!(
            "the number of shards is a power of two from 1 to {}: for example {}",
            hotrow_sql::SHARDS_MAX,
            hotrow_sql::SHARDS
        )
    })
}

/// Why the command failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The server cannot be reached.
    #[error(transparent)]
    Connect(#[from] crate::direct::Error),
    /// The hotrow schema cannot be installed or compared.
    #[error(transparent)]
    Install(#[from] hotrow_sql::Error),
    /// The functions are installed, and only their owner can call them.
    #[error(
        "the hotrow schema is installed, but the role {role} is missing and this user may not create it; until it exists, only \
         the owner can call the functions: have an administrator run `{statement};`, then run hotrow migrate again"
    )]
    RoleMissing {
        /// The role whose members are to call the functions.
        role: String,
        /// The statement that creates it.
        statement: String,
    },
    /// A MariaDB server.
    #[error(transparent)]
    MariaDb(#[from] mariadb::Error),
    /// The system.
    #[error("the operating system reports: {0}")]
    System(#[from] std::io::Error),
}

impl From<tokio_postgres::Error> for Error {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Install(error.into())
    }
}

/// Runs the command.
pub fn run(args: Args) -> Result<ExitCode, Error> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        if Upstream::is_meant_by(&args.upstream) {
            return Ok(mariadb::run(&args).await?);
        }
        let mut client = crate::direct::connect(&args.upstream).await?;
        if args.check {
            check(&client, &args.role).await
        } else if args.dry_run {
            dry_run(&client).await
        } else {
            migrate(&mut client, &args).await
        }
    })
}

async fn check(client: &Client, role: &str) -> Result<ExitCode, Error> {
    let mut out = std::io::stdout();
    match hotrow_sql::check(client).await? {
        State::Fits => {}
        State::Missing(missing) => {
            let all = MIGRATIONS.len();
            if missing == all {
                writeln!(out, "the hotrow schema is not installed: run hotrow migrate")?;
            } else {
                writeln!(out, "{missing} of {all} migrations are missing: run hotrow migrate")?;
            }
            return Ok(ExitCode::FAILURE);
        }
        State::Newer(number) => {
            writeln!(
                out,
                "the hotrow schema is newer than this program (migration {number}): use the newer program"
            )?;
            return Ok(ExitCode::FAILURE);
        }
    }
    let differences = hotrow_sql::differences(client, role).await?;
    if differences.is_empty() {
        writeln!(out, "the hotrow schema matches this program")?;
        return Ok(ExitCode::SUCCESS);
    }
    for difference in &differences {
        writeln!(out, "{}", visible(&difference.to_string()))?;
    }
    writeln!(out, "{}", advice(client, &differences, role).await?)?;
    Ok(ExitCode::FAILURE)
}

/// The next step after a comparison that found these differences.
async fn advice(client: &Client, differences: &[Difference], role: &str) -> Result<String, Error> {
    if differences.iter().any(|difference| matches!(difference, Difference::Function(_))) {
        return Ok("the hotrow schema differs from this program. hotrow migrate changes no installed function: compare with \
             the output of hotrow migrate --dry-run for an empty database, and restore the functions by hand"
            .to_owned());
    }
    let is_distributed =
        |difference: &Difference| matches!(difference, Difference::Distributed(_) | Difference::Node(_));
    if differences.iter().any(is_distributed) {
        return Ok("run hotrow migrate --distribute: it creates the functions of the shards again".to_owned());
    }
    let row = client.query_one(include_str!("../sql/role_to_create.sql"), &[&role]).await?;
    let is_missing = differences.iter().any(|difference| matches!(difference, Difference::NoRole(_)));
    let (may_create, quoted): (bool, String) = (row.get(0), row.get(1));
    Ok(if is_missing && !may_create {
        format!(
            "have an administrator run `create role {quoted} nologin;`, then run hotrow migrate: this user may not create \
             roles"
        )
    } else {
        "run hotrow migrate: it creates the role and its grants".to_owned()
    })
}

async fn dry_run(client: &Client) -> Result<ExitCode, Error> {
    let plan = hotrow_sql::plan(client).await?;
    let mut text = String::new();
    for migration in &plan {
        text.extend(["-- ", migration.name, "\n", &migration.sql(), "\n"]);
    }
    if plan.is_empty() {
        text.push_str("-- everything is installed\n");
    }
    print(&text)?;
    Ok(ExitCode::SUCCESS)
}

fn print(text: &str) -> std::io::Result<()> {
    match std::io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()), // the reader, such as `head`, has enough
        written => written,
    }
}

async fn migrate(client: &mut Client, args: &Args) -> Result<ExitCode, Error> {
    let mut out = std::io::stdout();
    let role = args.role.as_str();
    let installed = hotrow_sql::migrate(client, role).await?;
    if installed.migrations.is_empty() {
        writeln!(out, "everything was installed already")?;
    }
    for migration in installed.migrations {
        writeln!(out, "installed {}", migration.name)?;
    }
    // New migrations have replaced functions that find the shard of a call.
    let distributed = hotrow_sql::shards(client).await?;
    if args.distribute || distributed.is_some() {
        let shards = hotrow_sql::distribute(client, role, args.shards.unwrap_or(hotrow_sql::SHARDS)).await?;
        writeln!(out, "counters, sales, queues and feeds are distributed over {shards} shards")?;
    }
    match installed.role {
        GroupRole::Granted => writeln!(out, "members of {role} can call the functions")?,
        GroupRole::Created => writeln!(out, "created the role {role}; its members can call the functions")?,
        GroupRole::Missing { statement } => {
            return Err(Error::RoleMissing { role: role.to_owned(), statement });
        }
    }
    Ok(ExitCode::SUCCESS)
}
