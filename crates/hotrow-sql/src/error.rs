//! Why the pack can't be installed or looked at. Never what its functions refuse: that is for their callers.

/// Why nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The server is too old.
    #[error("the server is PostgreSQL {found}; the schema pack needs 14 or later: upgrade the server")]
    ServerTooOld {
        /// What it says it is.
        found: String,
    },
    /// A later program has installed more than this one knows.
    #[error("the database has migration {found}, this program knows {known}: use the newer program")]
    Newer {
        /// The last that is installed.
        found: i32,
        /// The last that is known.
        known: i32,
    },
    /// The schema belongs to another role, whose code would run under the rights of this one.
    #[error(
        "the schema hotrow belongs to {owner}, which could run code of its own under this login's rights: log in as {owner}"
    )]
    Owner {
        /// The owner.
        owner: String,
    },
    /// Somebody else than the schema's owner has put something into it, or could.
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
    /// The session has another role than the one that has logged in.
    #[error(
        "the session acts as {role} because of a setting of the database, of the login or of the URL: remove the setting role, \
         and log in as the role that is to own the schema pack"
    )]
    ActsAs {
        /// As whom.
        role: String,
    },
    /// The schema is missing and this role may not make it.
    #[error(
        "the role may not create the schema: have an administrator run `create schema hotrow authorization ROLE;` with its name, then migrate again"
    )]
    Schema,
    /// The server refuses a migration.
    #[error("{name}: {}", explain(.source))]
    Migration {
        /// Which one.
        name: &'static str,
        /// What it says.
        source: tokio_postgres::Error,
    },
    /// The connection is lost, or the server refuses something else.
    #[error("the server: {}", explain(.0))]
    Server(#[from] tokio_postgres::Error),
}

/// The server's own words, which the driver's error keeps to itself.
fn explain(error: &tokio_postgres::Error) -> String {
    match error.as_db_error() {
        Some(said) => {
            let hint = said.hint().map(|hint| format!(" ({hint})")).unwrap_or_default();
            format!("{} [{}]{hint}", said.message(), said.code().code())
        }
        None => error.to_string(),
    }
}
