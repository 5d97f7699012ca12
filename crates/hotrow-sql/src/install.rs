//! Installs the hotrow schema: finds the missing migrations and runs them, all in one transaction. Other files define the
//! contents of the hotrow schema.

use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, GenericClient, Transaction};

use crate::Error;
use crate::functions::Grant;
use crate::generate::grants;
use crate::migrations::{BOOTSTRAP, MIGRATIONS, Migration, REVOKE, TRUST};

/// The role whose members can execute the hotrow schema's functions.
pub const DEFAULT_ROLE: &str = "hotrow_caller";

/// The key of the installers' advisory lock: "hotrow" as a number. If two installers run at once, the second finds nothing
/// missing.
pub(crate) const INSTALLER_LOCK: i64 = 0x68_6f74_726f_7700;

const OLDEST_SERVER: i32 = 140_000;

/// The result of `migrate`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Installed {
    /// The migrations that were missing and have been run.
    pub migrations: Vec<Migration>,
    /// The role that can execute the functions.
    pub role: GroupRole,
}

/// The group role and its grants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GroupRole {
    /// It existed, and has its grants.
    Granted,
    /// It was created, and has its grants.
    Created,
    /// It does not exist, and the installing role cannot create it: only the owner can execute the functions.
    Missing {
        /// The statement that an administrator runs before the next `migrate`.
        statement: String,
    },
}

/// How the database compares with this program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Everything is installed.
    Fits,
    /// This number of migrations is missing.
    Missing(usize),
    /// The database has migrations that this program does not know, up to this number.
    Newer(i32),
}

/// Compares the installation with the migrations of this program. Changes only the session's search_path, and runs no code
/// that other roles have put into the database.
pub async fn check(client: &impl GenericClient) -> Result<State, Error> {
    pin(client).await?;
    if let Some(schema) = schema(client).await? {
        schema.trusted()?;
    }
    compare(client).await
}

async fn compare(client: &impl GenericClient) -> Result<State, Error> {
    let installed = installed(client).await?;
    if let Some(newer) = installed.iter().copied().max().filter(|number| *number > newest()) {
        return Ok(State::Newer(newer));
    }
    Ok(match missing(&installed).len() {
        0 => State::Fits,
        missing => State::Missing(missing),
    })
}

/// The migrations that `migrate` would run, in order. Changes only the session's search_path.
pub async fn plan(client: &impl GenericClient) -> Result<Vec<Migration>, Error> {
    pin(client).await?;
    oldest_server(client).await?;
    if let Some(schema) = schema(client).await? {
        schema.trusted()?;
    }
    Ok(missing(&installed(client).await?))
}

/// Runs the missing migrations in one transaction, and grants `role` its rights. Several installers can run at once, and an
/// installer can run again.
pub async fn migrate(client: &mut Client, role: &str) -> Result<Installed, Error> {
    let transaction = client.transaction().await?;
    transaction
        .batch_execute("set local search_path = pg_catalog, pg_temp; set local client_min_messages = warning")
        .await?;
    oldest_server(&transaction).await?;
    transaction.batch_execute(&format!("select pg_advisory_xact_lock({INSTALLER_LOCK})")).await?;
    become_owner(&transaction).await?;
    bootstrap(&transaction).await?;
    if let State::Newer(found) = compare(&transaction).await? {
        return Err(Error::Newer { found, known: newest() });
    }
    let migrations = missing(&installed(&transaction).await?);
    for migration in &migrations {
        run(&transaction, migration).await?;
    }
    transaction.batch_execute(REVOKE).await?;
    transaction.batch_execute(&grants(Grant::Public, "public")).await?;
    let role = grant(&transaction, role).await?;
    transaction.commit().await?;
    Ok(Installed { migrations, role })
}

async fn oldest_server(client: &impl GenericClient) -> Result<(), Error> {
    let row = client
        .query_one(
            "select current_setting('server_version_num')::int, current_setting('server_version')",
            &[],
        )
        .await?;
    if row.get::<_, i32>(0) < OLDEST_SERVER {
        return Err(Error::ServerTooOld { found: row.get(1) });
    }
    Ok(())
}

/// The numbers of the installed migrations; none if the hotrow schema is not installed.
async fn installed(client: &impl GenericClient) -> Result<Vec<i32>, Error> {
    let there = client.query_one("select to_regclass('hotrow.migration') is not null", &[]).await?;
    if !there.get::<_, bool>(0) {
        return Ok(Vec::new());
    }
    let rows = client.query("select number from hotrow.migration order by number", &[]).await?;
    Ok(rows.iter().map(|row| row.get(0)).collect())
}

fn missing(installed: &[i32]) -> Vec<Migration> {
    MIGRATIONS.iter().filter(|migration| !installed.contains(&migration.number)).copied().collect()
}

fn newest() -> i32 {
    MIGRATIONS.last().map_or(0, |migration| migration.number)
}

/// After this, the session uses only the server's own functions and operators. Without it, the owner of the database could
/// choose the search_path of every session.
async fn pin(client: &impl GenericClient) -> Result<(), Error> {
    Ok(client.batch_execute("set search_path = pg_catalog, pg_temp").await?)
}

/// The result of `sql/base/trust.sql` about an existing schema.
struct Schema {
    owner: String,
    mine: bool,
    trusted: bool,
    superuser: bool,
    foreign_thing: Option<String>,
}

async fn schema(client: &impl GenericClient) -> Result<Option<Schema>, Error> {
    Ok(client.query_opt(TRUST, &[]).await?.map(|row| Schema {
        owner: row.get("owner"),
        mine: row.get("mine"),
        trusted: row.get("trusted"),
        superuser: row.get("superuser"),
        foreign_thing: row.get("foreign_thing"),
    }))
}

impl Schema {
    /// Refuses a schema in which code of other roles could run with the rights of this session.
    fn trusted(&self) -> Result<(), Error> {
        match &self.foreign_thing {
            _ if !self.trusted => Err(Error::Owner { owner: self.owner.clone() }),
            Some(thing) => Err(Error::Foreign { owner: self.owner.clone(), thing: thing.clone() }),
            None => Ok(()),
        }
    }
}

/// Makes the schema's owner the current role. Everything in the schema belongs to this role, and functions run with its
/// rights. If the owner is a superuser, another superuser acts as the owner.
pub(crate) async fn become_owner(transaction: &Transaction<'_>) -> Result<(), Error> {
    let acting = "select current_user::text where current_user <> session_user";
    if let Some(row) = transaction.query_opt(acting, &[]).await? {
        return Err(Error::ActsAs { role: row.get(0) });
    }
    let Some(schema) = schema(transaction).await? else { return Ok(()) };
    schema.trusted()?;
    if schema.mine {
        return Ok(());
    }
    if !schema.superuser {
        return Err(Error::Owner { owner: schema.owner });
    }
    // The server has already quoted the name where that is necessary.
    Ok(transaction.batch_execute(&format!("set local role {}", schema.owner)).await?)
}

async fn bootstrap(transaction: &Transaction<'_>) -> Result<(), Error> {
    let schema_missing = transaction.query_one("select to_regnamespace('hotrow') is null", &[]).await?;
    match transaction.batch_execute(BOOTSTRAP).await {
        Err(error)
            if schema_missing.get::<_, bool>(0)
                && error.code() == Some(&SqlState::INSUFFICIENT_PRIVILEGE) =>
        {
            // The transaction is aborted. The caller knows the role's name.
            Err(Error::Schema)
        }
        outcome => Ok(outcome?),
    }
}

async fn run(transaction: &Transaction<'_>, migration: &Migration) -> Result<(), Error> {
    let failed = |source| Error::Migration { name: migration.name, source };
    transaction.batch_execute(&migration.sql()).await.map_err(failed)?;
    let record = "insert into hotrow.migration (number, name) values ($1, $2)";
    transaction.execute(record, &[&migration.number, &migration.name]).await.map_err(failed)?;
    Ok(())
}

async fn grant(transaction: &Transaction<'_>, role: &str) -> Result<GroupRole, Error> {
    let facts = "select quote_ident($1), exists (select from pg_roles where rolname = $1),
        (select r.rolsuper or r.rolcreaterole from pg_roles r where r.rolname = session_user)";
    let row = transaction.query_one(facts, &[&role]).await?;
    let quoted: String = row.get(0);
    let statement = format!("create role {quoted} nologin");
    let outcome = match (row.get(1), row.get(2)) {
        (true, _) => GroupRole::Granted,
        (false, false) => return Ok(GroupRole::Missing { statement }),
        (false, true) => {
            create(transaction, &statement).await?;
            GroupRole::Created
        }
    };
    transaction.batch_execute(&grants(Grant::Group, &quoted)).await?;
    Ok(outcome)
}

/// Creates the role with the rights of the role that has logged in. Roles belong to the whole server: an installer of another
/// database can create the role at the same moment, which has the same result.
async fn create(transaction: &Transaction<'_>, statement: &str) -> Result<(), Error> {
    let owner: String = transaction.query_one("select current_user::text", &[]).await?.get(0);
    let make = format!(
        "set local role none;
        do $$ begin {statement}; exception when duplicate_object or unique_violation then null; end $$;"
    );
    transaction.batch_execute(&make).await?;
    let back = transaction.query_one("select quote_ident($1)", &[&owner]).await?.get::<_, String>(0);
    transaction.batch_execute(&format!("set local role {back}")).await?;
    Ok(())
}
