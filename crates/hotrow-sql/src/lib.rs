//! The schema pack: counters, sales, queues and feeds as SQL functions in the schema `hotrow`, and their installer. The
//! functions are written in SQL only, and nothing here knows the gateway.
//!
//! The functions need nothing but PostgreSQL 14 or later, and clients can call them directly. Through the gateway,
//! concurrent calls of one function become one call of its batch twin, if the function has a merge rule.
//!
//! | file | contents |
//! |---|---|
//! | `sql/base/0001_settings.sql` | settings, and checks of arguments |
//! | `sql/base/0002_requests.sql` | request IDs and their recorded answers |
//! | `sql/base/0010_merge_rules.sql` | merge rules: which calls can be merged |
//! | `sql/base/0027_keep.sql` | the upkeep of the whole pack as one call, `keep` |
//! | `sql/base/0028_marks.sql` | the marks of lanes: `open_mark`, `take_mark` |
//! | `sql/base/bootstrap.sql`, `sql/base/revoke.sql` | statements that run each time, before and after the migrations |
//! | `sql/base/trust.sql` | the query whether the installer can trust the schema |
//! | `sql/counters/0003_history.sql` | ledger and command log: a ring of parts |
//! | `sql/counters/0004_command_log.sql` | the value of a counter that keeps commands only |
//! | `sql/counters/0005_counters.sql` | `create_counter`, `increment`, `drain`, `counter` |
//! | `sql/counters/0011_rotation.sql` | the rotation of ledger and command log |
//! | `sql/sales/0006_sales.sql` | `create_sale`, `restock`, `sale`, and the release of expired holds |
//! | `sql/sales/0007_reserve.sql`, `sql/sales/0008_reserve_all.sql` | `reserve`, `reserve_all` |
//! | `sql/sales/0009_reservations.sql` | `confirm`, `cancel`, `extend`, `expire_holds` |
//! | `sql/queues/0012_queues.sql` | tables of queues; `create_queue`, `drop_queue`, `pause`, `resume` |
//! | `sql/queues/0013_queue_state.sql` | the state of a queue's shard, and the changes that time makes to it |
//! | `sql/queues/0014_enqueue.sql` | `enqueue`, `enqueue_all` |
//! | `sql/queues/0015_hand_out.sql` | which orders a take gets |
//! | `sql/queues/0016_take.sql` | `take`, and how its callers wait |
//! | `sql/queues/0017_complete.sql` | `complete`, `complete_all`, `fail`, `release` |
//! | `sql/queues/0018_extend_redrive.sql` | `extend_lease`, `redrive` |
//! | `sql/queues/0019_queue_upkeep.sql` | `queue_stats`, `list_queues`, `find_order`, `list_orders`; the ring of orders |
//! | `sql/feeds/0020_feeds.sql` | tables of feeds and their partitions |
//! | `sql/feeds/0021_push.sql` | entries of inboxes, and `push` |
//! | `sql/feeds/0022_consume.sql` | `consume`, `peek`, `unread`, `mark_read_up_to`, `past`, rankings |
//! | `sql/feeds/0023_follow.sql` | `follow`, `unfollow`, `mute` |
//! | `sql/feeds/0024_post.sql` | `post`, `fan_out` |
//! | `sql/feeds/0025_feed_keeping.sql` | `trim_feeds`: deletes old entries and posts |
//! | `sql/*/functions.toml` | the manifests: parameters, grant, merge rule and places of each function |
//! | `src/migrations.rs` | the list of the SQL files |
//! | `src/functions.rs` | the manifests, read |
//! | `src/generate.rs` | the grants and merge rules made from the manifests |
//! | `src/install.rs` | runs missing migrations, or lists them |
//! | `src/compare.rs` | compares an installation with this program |
//! | `src/error.rs` | errors of the installer |

mod compare;
mod error;
mod functions;
mod generate;
mod install;
mod migrations;

pub use compare::{Difference, differences};
pub use error::Error;
pub use functions::{Function, Grant, Merge, Place, functions};
pub use install::{DEFAULT_ROLE, GroupRole, Installed, State, check, migrate, plan};
pub use migrations::{MIGRATIONS, Migration};
