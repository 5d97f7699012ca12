//! The migrations, in order, as text. Never when they run: that is `install.rs`.

/// One numbered file of the pack. It runs once in each database, and never changes after it has been released.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Migration {
    /// Its number: migrations run in this order.
    pub number: i32,
    /// What it holds.
    pub name: &'static str,
    /// Its statements.
    pub sql: &'static str,
}

macro_rules! migrations {
    ($($number:literal $name:literal;)*) => {
        &[$(Migration {
            number: $number,
            name: $name,
            sql: include_str!(concat!("../sql/", $name, ".sql")),
        }),*]
    };
}

/// All migrations, oldest first.
pub const MIGRATIONS: &[Migration] = migrations! {
    1 "0001_settings";
    2 "0002_requests";
    3 "0003_history";
    4 "0004_command_log";
    5 "0005_counters";
    6 "0006_sales";
    7 "0007_reserve";
    8 "0008_reserve_all";
    9 "0009_reservations";
    10 "0010_merge_rules";
    11 "0011_rotation";
    12 "0012_queues";
    13 "0013_queue_state";
    14 "0014_enqueue";
    15 "0015_hand_out";
    16 "0016_take";
    17 "0017_complete";
    18 "0018_extend_redrive";
    19 "0019_queue_upkeep";
    20 "0020_feeds";
    21 "0021_push";
    22 "0022_consume";
    23 "0023_follow";
    24 "0024_post";
    25 "0025_feed_keeping";
    26 "0026_feed_rules";
    27 "0027_keep";
    28 "0028_marks";
};

/// What runs before the first of them, each time.
pub(crate) const BOOTSTRAP: &str = include_str!("../sql/bootstrap.sql");

/// What is asked about the schema before anything in it is used.
pub(crate) const TRUST: &str = include_str!("../sql/trust.sql");

/// What runs after the last of them, each time: what anybody may call.
pub(crate) const GRANTS: &str = include_str!("../sql/grants.sql");

/// The same for the group role, whose quoted name stands for `:role`.
pub(crate) const GROUP_GRANTS: &str = include_str!("../sql/group_grants.sql");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers_agree_and_rise() {
        assert!(MIGRATIONS.windows(2).all(|pair| pair[0].number < pair[1].number));
        for migration in MIGRATIONS {
            assert!(migration.name.starts_with(&format!("{:04}_", migration.number)), "{}", migration.name);
        }
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/sql");
        let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
        let numbered = files.filter(|name| name.to_string_lossy().starts_with('0')).count();
        assert_eq!(numbered, MIGRATIONS.len(), "a file in sql/ is not in the list");
    }
}
