//! The schema pack: counters and sales as SQL functions in the schema `hotrow`, and their installer. What the functions
//! do is in `sql/*.sql`; no statement of theirs is written in Rust, and nothing here knows the gateway.
//!
//! The functions need nothing but PostgreSQL 14 or later and work for direct callers too. Through the gateway,
//! concurrent calls of one function become one call of its `_batch` twin, where a merge rule says so.
//!
//! | file | holds |
//! |---|---|
//! | `sql/0001_settings.sql` | settings, and how arguments are refused |
//! | `sql/0002_requests.sql` | request ids and their recorded answers |
//! | `sql/0003_history.sql` | ledger and command log: a ring of parts |
//! | `sql/0004_command_log.sql` | the value of a counter that is only a log |
//! | `sql/0005_counters.sql` | increment, drain, counter |
//! | `sql/0006_sales.sql` | sales, restock, what has expired |
//! | `sql/0007_reserve.sql`, `sql/0008_reserve_all.sql` | reserving |
//! | `sql/0009_reservations.sql` | confirm, cancel, extend |
//! | `sql/0010_merge_rules.sql` | which calls may be merged |
//! | `sql/0011_rotation.sql` | how ledger and command log forget |
//! | `sql/0020_feeds.sql` | feeds: their tables and partitions |
//! | `sql/0021_push.sql` | entries of inboxes, and `push` |
//! | `sql/0022_consume.sql` | what readers do: `consume`, `peek`, `unread`, `mark_read_up_to`, `past`, rankings |
//! | `sql/0023_follow.sql` | `follow`, `unfollow`, `mute` |
//! | `sql/0024_post.sql` | `post` and `fan_out` |
//! | `sql/0025_feed_keeping.sql` | what feeds forget by age |
//! | `sql/0026_feed_rules.sql` | merge rules of feeds |
//! | `sql/trust.sql` | whether the installer may use what is in the schema |
//! | `sql/bootstrap.sql`, `sql/grants.sql`, `sql/group_grants.sql` | what runs each time, before and after |
//! | `migrations.rs` | the list of them |
//! | `install.rs` | runs what is missing, says what would run |
//! | `compare.rs` | what is not as this program installs it |

mod compare;
mod error;
mod install;
mod migrations;

pub use compare::{Difference, differences};
pub use error::Error;
pub use install::{DEFAULT_ROLE, GroupRole, Installed, State, check, migrate, plan};
pub use migrations::{MIGRATIONS, Migration};
