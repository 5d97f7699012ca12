//! The rights that a session keeps, as letters in the fingerprint of a connection. No I/O.

use std::ops::Range;

/// The letters of each of the two parts: the rights of the login, and those on databases.
const RIGHTS_LETTERS: usize = 16;
/// Where they are in the fingerprint.
pub const RIGHTS: Range<usize> = 1..1 + 2 * RIGHTS_LETTERS;

/// The rights of a session. It keeps those that it has got at its login, and when it entered its database. They are as they were
/// last seen before that, if the session's own question finds them unchanged.
pub struct Rights {
    at_login: String,
    in_database: String,
}

impl Rights {
    /// Those of a session that has logged in.
    pub fn of(known: Option<&str>) -> Self {
        let (at_login, in_database) =
            known.unwrap_or_default().split_at_checked(RIGHTS_LETTERS).unwrap_or_default();
        Rights { at_login: at_login.to_owned(), in_database: in_database.to_owned() }
    }

    /// Whether they are those in the fingerprint of a connection that logs in now.
    pub fn are(&self, fingerprint: &str) -> bool {
        let rights = Rights::of(fingerprint.get(RIGHTS));
        !rights.at_login.is_empty()
            && (&self.at_login, &self.in_database) == (&rights.at_login, &rights.in_database)
    }

    /// The session has entered a database, and has got the rights on it.
    pub fn enter(&mut self, known: Option<&str>) {
        self.in_database = Rights::of(known).in_database;
    }
}
