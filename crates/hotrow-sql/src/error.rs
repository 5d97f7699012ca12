//! Why the pack cannot be installed or compared. What its functions refuse is not here.

/// Why nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The server is too old.
    #[error("the server is PostgreSQL {found}; the schema pack needs 14 or later: upgrade the server")]
    ServerTooOld {
        /// Its version.
        found: String,
    },
    /// A newer program has installed migrations that this one does not know.
    #[error("the database has migration {found}, this program knows {known}: use the newer program")]
    Newer {
        /// The last migration that is installed.
        found: i32,
        /// The last migration that this program knows.
        known: i32,
    },
    /// The schema belongs to another role, whose code would run with the rights of this one.
    #[error(
        "the schema hotrow belongs to {owner}, which could run code of its own under this login's rights: log in as {owner}"
    )]
    Owner {
        /// The owner.
        owner: String,
    },
    /// A role other than the schema's owner has put something into the schema, or could.
    #[error(
        "the schema hotrow belongs to {owner}, but {thing}, so that code of others could run under the owner's rights: drop it, \
         change its owner or revoke that right, then try again"
    )]
    Foreign {
        /// The schema's owner.
        owner: String,
        /// What was found.
        thing: String,
    },
    /// The session's current role is not the role that has logged in.
    #[error(
        "the session acts as {role} because of a setting of the database, of the login or of the URL: remove the setting role, \
         and log in as the role that is to own the schema pack"
    )]
    ActsAs {
        /// The current role.
        role: String,
    },
    /// The schema does not exist, and this role cannot create it.
    #[error(
        "the role may not create the schema: have an administrator run `create schema hotrow authorization ROLE;` with its name, then migrate again"
    )]
    Schema,
    /// The server refuses a migration.
    #[error("{name}: {}", explain(.source))]
    Migration {
        /// The migration's name.
        name: &'static str,
        /// The server's error.
        source: tokio_postgres::Error,
    },
    /// The connection is lost, or the server refuses another statement.
    #[error("the server: {}", explain(.0))]
    Server(#[from] tokio_postgres::Error),
}

/// The server's own message, which the driver's error does not print.
fn explain(error: &tokio_postgres::Error) -> String {
    match error.as_db_error() {
        Some(said) => {
            let hint = said.hint().map(|hint| format!(" ({hint})")).unwrap_or_default();
            format!("{} [{}]{hint}", said.message(), said.code().code())
        }
        None => error.to_string(),
    }
}
