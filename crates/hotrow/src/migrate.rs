//! `hotrow migrate`: installs the schema pack, says what it would install, or compares. Never what the pack holds.

use std::io::{ErrorKind, Write};
use std::process::ExitCode;

use hotrow_sql::{DEFAULT_ROLE, Difference, GroupRole, MIGRATIONS, State};
use tokio_postgres::Client;

/// `hotrow migrate`
#[derive(clap::Args)]
#[command(after_help = "Example: hotrow migrate --upstream postgres://owner@127.0.0.1/shop --role shop_app")]
pub struct Args {
    /// The server and database to install into: a libpq URL or keyword string
    #[arg(long, env = "HOTROW_UPSTREAM", hide_env = true, hide_env_values = true, value_name = "URL")]
    upstream: String,
    /// The role whose members may call the functions; made if it is missing and you may
    #[arg(long, default_value = DEFAULT_ROLE, value_name = "NAME")]
    role: String,
    /// Print what would run, and change nothing
    #[arg(long, conflicts_with = "check")]
    dry_run: bool,
    /// Say whether what is installed fits this program: exit 0 if it does, else 1
    ///
    /// Compared are the list of migrations, each function of the pack (text, settings, owner, who may call it), and the role
    /// with its grants; not the tables, the settings, the merge rules, nor what others have put into the schema.
    #[arg(long)]
    check: bool,
}

/// Why nothing was installed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The server can't be reached.
    #[error(transparent)]
    Connect(#[from] crate::direct::Error),
    /// The pack can't be installed.
    #[error(transparent)]
    Install(#[from] hotrow_sql::Error),
    /// The system.
    #[error("the system refuses: {0}")]
    System(#[from] std::io::Error),
}

/// Runs it.
pub fn run(args: Args) -> Result<ExitCode, Error> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut client = crate::direct::connect(&args.upstream).await?;
        if args.check {
            check(&client, &args.role).await
        } else if args.dry_run {
            dry_run(&client).await
        } else {
            migrate(&mut client, &args.role).await
        }
    })
}

async fn check(client: &Client, role: &str) -> Result<ExitCode, Error> {
    let mut out = std::io::stdout();
    match hotrow_sql::check(client).await? {
        State::Fits => {}
        State::Missing(missing) => {
            let all = MIGRATIONS.len();
            writeln!(out, "{missing} of {all} migrations are missing: run hotrow migrate")?;
            return Ok(ExitCode::FAILURE);
        }
        State::Newer(number) => {
            writeln!(
                out,
                "the schema pack is newer than this program (migration {number}): use the newer program"
            )?;
            return Ok(ExitCode::FAILURE);
        }
    }
    let differences = hotrow_sql::differences(client, role).await?;
    if differences.is_empty() {
        writeln!(out, "the schema pack fits this program")?;
        return Ok(ExitCode::SUCCESS);
    }
    for difference in &differences {
        writeln!(out, "{difference}")?;
    }
    let changed = differences.iter().any(|difference| matches!(difference, Difference::Function(_)));
    writeln!(out, "{}", if changed { FUNCTIONS_DIFFER } else { GRANTS_DIFFER })?;
    Ok(ExitCode::FAILURE)
}

const FUNCTIONS_DIFFER: &str = "the schema pack does not fit this program: hotrow migrate changes no function that is installed; \
     what it would install into an empty database is printed by hotrow migrate --dry-run there";
const GRANTS_DIFFER: &str =
    "the schema pack does not fit this program: hotrow migrate puts the role and its grants right";

async fn dry_run(client: &Client) -> Result<ExitCode, Error> {
    let plan = hotrow_sql::plan(client).await?;
    let mut text = String::new();
    for migration in &plan {
        text.extend(["-- ", migration.name, "\n", &migration.sql(), "\n"]);
    }
    if plan.is_empty() {
        text.push_str("-- nothing is missing\n");
    }
    match std::io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => {} // who reads has seen enough
        written => written?,
    }
    Ok(ExitCode::SUCCESS)
}

async fn migrate(client: &mut Client, role: &str) -> Result<ExitCode, Error> {
    let mut out = std::io::stdout();
    let installed = hotrow_sql::migrate(client, role).await?;
    if installed.migrations.is_empty() {
        writeln!(out, "nothing was missing")?;
    }
    for migration in installed.migrations {
        writeln!(out, "installed {}", migration.name)?;
    }
    match installed.role {
        GroupRole::Granted => writeln!(out, "members of {role} may call the functions")?,
        GroupRole::Created => writeln!(out, "created the role {role}; its members may call the functions")?,
        GroupRole::Missing { statement } => writeln!(
            out,
            "the role {role} is missing and you may not create it: have an administrator run `{statement};`, then run \
             hotrow migrate again; until then only the owner can call the functions"
        )?,
    }
    Ok(ExitCode::SUCCESS)
}
