//! The migrations and the other SQL files. The installer (`install.rs`) decides when they run.

use crate::text::{Pack, text};
use std::borrow::Cow;

/// A numbered SQL file of the hotrow schema. It runs once in each database. After a release it does not change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Migration {
    /// The number. Migrations run in the order of their numbers.
    pub number: i32,
    /// The file's name without its ending, under which the migration is recorded.
    pub name: &'static str,
    /// The folder of the file.
    pub(crate) area: &'static str,
    /// The file's text for both packs.
    pub(crate) source: &'static str,
}

impl Migration {
    /// The file's text for a pack.
    pub(crate) fn text(&self, pack: Pack) -> Cow<'static, str> {
        text(self.source, pack)
    }
}

/// All migrations, in order, with their contents. `build.rs` lists the numbered files of `sql/`.
pub const MIGRATIONS: &[Migration] = include!(concat!(env!("OUT_DIR"), "/migrations.rs"));

/// Runs before the first migration, each time.
pub(crate) const BOOTSTRAP: &str = include_str!("../sql/base/bootstrap.sql");

/// A query about the schema. It runs before anything in the schema is used.
pub(crate) const TRUST: &str = include_str!("../sql/base/trust.sql");

/// Runs after the last migration and before the grants, each time.
pub(crate) const REVOKE: &str = include_str!("../sql/base/revoke.sql");

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers of earlier migrations, which a database can have recorded.
    const RETIRED: [i32; 2] = [26, 28];

    #[test]
    fn every_migration_has_a_number_of_its_own() {
        assert!(
            MIGRATIONS.windows(2).all(|pair| pair[0].number < pair[1].number),
            "two files have one number"
        );
        for migration in MIGRATIONS {
            assert!(migration.name.starts_with(&format!("{:04}_", migration.number)), "{}", migration.name);
            assert!(
                !RETIRED.contains(&migration.number),
                "{} has a number that was used before",
                migration.name
            );
        }
    }
}
