//! The list of the migrations and of the other SQL files. The installer (`install.rs`) decides when they run.

use crate::text::{Pack, text};
use std::borrow::Cow;

/// A numbered SQL file of the pack. It runs once in each database. After a release it does not change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Migration {
    /// The number. Migrations run in the order of their numbers.
    pub number: i32,
    /// The file's name without its ending, under which the migration is recorded.
    pub name: &'static str,
    /// The folder of the file.
    pub(crate) area: &'static str,
    source: &'static str,
}

impl Migration {
    /// The file's text for a pack.
    pub(crate) fn text(&self, pack: Pack) -> Cow<'static, str> {
        text(self.source, pack)
    }
}

macro_rules! migrations {
    ($($number:literal $area:literal $name:literal;)*) => {
        &[$(Migration {
            number: $number,
            name: $name,
            area: $area,
            source: include_str!(concat!("../sql/", $area, "/", $name, ".sql")),
        }),*]
    };
}

/// All migrations, in order, with their contents. The numbers 26 and 28 are not used again, because a database can have
/// recorded them.
pub const MIGRATIONS: &[Migration] = migrations! {
    1 "base" "0001_settings"; // settings, and checks of arguments
    2 "base" "0002_requests"; // request IDs and their recorded answers
    3 "counters" "0003_history"; // ledger and command log: a ring of parts
    4 "counters" "0004_command_log"; // the value of a counter that keeps commands only
    5 "counters" "0005_counters"; // create_counter, increment, drain, counter
    6 "sales" "0006_sales"; // create_sale, restock, sale, and the release of expired holds
    7 "sales" "0007_reserve"; // reserve
    8 "sales" "0008_reserve_all"; // reserve_all
    9 "sales" "0009_reservations"; // confirm, cancel, extend, expire_holds
    10 "base" "0010_merge_rules"; // merge rules: which calls can be merged
    11 "counters" "0011_rotation"; // the rotation of ledger and command log
    12 "queues" "0012_queues"; // tables of queues; create_queue, drop_queue, pause, resume
    13 "queues" "0013_queue_state"; // the state of a queue's shard, and the changes that time makes to it
    14 "queues" "0014_enqueue"; // enqueue, enqueue_all
    15 "queues" "0015_hand_out"; // which orders a take gets
    16 "queues" "0016_take"; // take, and how its callers wait
    17 "queues" "0017_complete"; // complete, complete_all, fail, release
    18 "queues" "0018_extend_redrive"; // extend_lease, redrive
    19 "queues" "0019_queue_upkeep"; // queue_stats, list_queues, find_order, list_orders; the ring of orders
    20 "feeds" "0020_feeds"; // tables of feeds and their partitions
    21 "feeds" "0021_push"; // entries of inboxes, and push
    22 "feeds" "0022_consume"; // consume, peek, unread, mark_read_up_to, past, rankings
    23 "feeds" "0023_follow"; // follow, unfollow, mute
    24 "feeds" "0024_post"; // post, fan_out
    25 "feeds" "0025_feed_keeping"; // trim_feeds: deletes old entries and posts
    27 "base" "0027_keep"; // the upkeep of the whole pack as one call, keep
    29 "counters" "0029_list_counters"; // list_counters
    30 "sales" "0030_list_sales"; // list_sales
    31 "feeds" "0031_feed_stats"; // feed_stats
    32 "base" "0032_marks"; // the marks of lanes: open_mark, claim_mark
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
        let forgotten: Vec<_> = numbered.iter().filter(|name| !listed.contains(&name.as_str())).collect();
        assert!(
            forgotten.is_empty(),
            "no migration runs these files of crates/hotrow-sql/sql/: {forgotten:?}; add a line for each to MIGRATIONS in \
             crates/hotrow-sql/src/migrations.rs"
        );
        assert_eq!(numbered, listed, "two files in crates/hotrow-sql/sql/ have the same name");
    }
}
