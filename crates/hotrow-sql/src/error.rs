//! Errors of installing or comparing the hotrow schema. Errors raised by its functions are not here.

/// The reason why nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The server is too old.
    #[error("the server is PostgreSQL {found}; the hotrow schema needs 14 or later: upgrade the server")]
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
        "the schema hotrow belongs to {owner}, which could run code with the rights of this login: log in as {owner}"
    )]
    Owner {
        /// The owner.
        owner: String,
    },
    /// A role other than the schema's owner has created an object in the schema, or can do so.
    #[error(
        "the schema hotrow belongs to {owner}, but {thing}. Code of another role could run with the owner's rights: drop it, \
         change its owner or revoke that right, then try again"
    )]
    Foreign {
        /// The schema's owner.
        owner: String,
        /// The object or right that was found.
        thing: String,
    },
    /// The session's current role is not the role that has logged in.
    #[error(
        "the session acts as {role} because of a setting of the database, of the login or of the URL: remove the setting role, \
         and log in as the role that will own the hotrow schema"
    )]
    ActsAs {
        /// The current role.
        role: String,
    },
    /// The schema does not exist, and this role cannot create it.
    #[error(
        "the role cannot create the schema: have an administrator run `create schema hotrow authorization ROLE;` with its name, then migrate again"
    )]
    Schema,
    /// The hotrow schema cannot be distributed here.
    #[error(
        "the hotrow schema cannot be distributed: {0}. Connect to the coordinator of a cluster of Citus 12 or later"
    )]
    NoCluster(&'static str),
    /// The server refuses a shard.
    #[error("{schema}: {}", explain(.source))]
    Shard {
        /// The shard's schema.
        schema: String,
        /// The server's error.
        source: tokio_postgres::Error,
    },
    /// The name of a shard's schema is taken.
    #[error(
        "the schema {schema} belongs to another role than the schema hotrow: drop it or rename it, then try again"
    )]
    ShardOwner {
        /// The schema.
        schema: String,
    },
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
