//! The list of the migrations and of the other SQL files. The installer (`install.rs`) decides when they run.

/// A numbered SQL file of the pack. It runs once in each database. After a release it does not change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Migration {
    /// The number. Migrations run in the order of their numbers.
    pub number: i32,
    /// The file's name without its ending, under which the migration is recorded.
    pub name: &'static str,
    pub(crate) file: &'static str,
}

macro_rules! migrations {
    ($($number:literal $area:literal $name:literal;)*) => {
        &[$(Migration {
            number: $number,
            name: $name,
            file: include_str!(concat!("../sql/", $area, "/", $name, ".sql")),
        }),*]
    };
}

/// All migrations, in order. The number 26 is not used again, because a database can have recorded it.
pub const MIGRATIONS: &[Migration] = migrations! {
    1 "base" "0001_settings";
    2 "base" "0002_requests";
    3 "counters" "0003_history";
    4 "counters" "0004_command_log";
    5 "counters" "0005_counters";
    6 "sales" "0006_sales";
    7 "sales" "0007_reserve";
    8 "sales" "0008_reserve_all";
    9 "sales" "0009_reservations";
    10 "base" "0010_merge_rules";
    11 "counters" "0011_rotation";
    12 "queues" "0012_queues";
    13 "queues" "0013_queue_state";
    14 "queues" "0014_enqueue";
    15 "queues" "0015_hand_out";
    16 "queues" "0016_take";
    17 "queues" "0017_complete";
    18 "queues" "0018_extend_redrive";
    19 "queues" "0019_queue_upkeep";
    20 "feeds" "0020_feeds";
    21 "feeds" "0021_push";
    22 "feeds" "0022_consume";
    23 "feeds" "0023_follow";
    24 "feeds" "0024_post";
    25 "feeds" "0025_feed_keeping";
    27 "base" "0027_keep";
    28 "base" "0028_marks";
};

/// Runs before the first migration, each time.
pub(crate) const BOOTSTRAP: &str = include_str!("../sql/base/bootstrap.sql");

/// A query about the schema. It runs before anything in the schema is used.
pub(crate) const TRUST: &str = include_str!("../sql/base/trust.sql");

/// Runs after the last migration and before the grants, each time.
pub(crate) const REVOKE: &str = include_str!("../sql/base/revoke.sql");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers_agree_and_increase() {
        assert!(MIGRATIONS.windows(2).all(|pair| pair[0].number < pair[1].number));
        for migration in MIGRATIONS {
            assert!(migration.name.starts_with(&format!("{:04}_", migration.number)), "{}", migration.name);
        }
    }

    #[test]
    fn every_numbered_file_is_in_the_list() {
        let files = |folder: &str| std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let mut numbered = Vec::new();
        for area in files(concat!(env!("CARGO_MANIFEST_DIR"), "/sql")) {
            for file in files(area.to_str().unwrap()) {
                let name = file.file_stem().unwrap().to_str().unwrap().to_owned();
                if name.starts_with('0') {
                    numbered.push(name);
                }
            }
        }
        numbered.sort();
        let listed: Vec<_> = MIGRATIONS.iter().map(|migration| migration.name).collect();
        assert_eq!(numbered, listed, "a file in sql/ is not in the list");
    }
}
