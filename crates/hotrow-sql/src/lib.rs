//! The hotrow schema: counters, sales, queues and feeds as SQL functions in the schema `hotrow`, and their installer. The
//! functions are written in SQL only, and nothing here knows the gateway.
//!
//! The functions need nothing but PostgreSQL 14 or later, and clients can call them directly. Through the gateway,
//! concurrent calls of one function become one call of its batch function, if the function has a merge rule.
//!
//! | file | contents |
//! |---|---|
//! | `sql/*/0*.sql` | the migrations; `build.rs` lists them |
//! | `sql/base/bootstrap.sql`, `sql/base/revoke.sql` | statements that run each time, before and after the migrations |
//! | `sql/base/trust.sql` | the query whether the installer can trust the schema |
//! | `sql/*/functions.toml` | the manifests: grant, merge rule and places of each function |
//! | `src/migrations.rs` | the migrations and the other SQL files, with their contents |
//! | `src/text.rs` | the text of a migration for the hotrow schema in one schema and for a distributed one |
//! | `src/head.rs` | the heads of functions in the migrations: parameters, results and options |
//! | `src/functions.rs` | the manifests, read |
//! | `src/generate.rs` | the grants and merge rules made from the manifests |
//! | `src/install.rs` | runs missing migrations, or lists them |
//! | `src/compare.rs` | compares an installation with this program |
//! | `distribute` | makes the shards of a distributed hotrow schema on a cluster of Citus |
//! | `src/distribute/shard.rs` | the text of one shard, made from the migrations |
//! | `src/distribute/dispatch.rs` | the functions that find the shard of a call |
//! | `src/distribute/feeds.rs` | the functions of feeds that need several shards |
//! | `sql/citus/begin.sql`, `sql/citus/close.sql` | the first and the last step of the distribution |
//! | `sql/citus/gate.sql` | the way into a shard |
//! | `sql/citus/names.sql` | the query for a shard's tables on its node |
//! | `sql/citus/move.sql` | moves rows that existed before the distribution |
//! | `sql/citus/feed_calls.sql`, `sql/citus/feed_parts.sql` | the functions of feeds that need several shards, and their steps |
//! | `sql/citus/feed_shard.sql` | the parts of these functions that a shard runs |
//! | `sql/citus/digest.sql` | the query that compares the functions of the nodes |
//! | `sql/citus/shards.sql` | functions that find the shard of a name, and the distribution for the gateway |
//! | `src/error.rs` | errors of the installer |

mod compare;
mod distribute;
mod error;
mod functions;
mod generate;
mod head;
mod install;
mod migrations;
mod text;

pub use compare::{Difference, differences};
pub use distribute::{SHARDS, SHARDS_MAX, distribute, schema as shard_schema, shards};
pub use error::Error;
pub use functions::{Counterpart, Distribute, Function, Grant, MergeRule, Operation, REQUEST_ID, functions};
pub use head::Parameter;
pub use install::{DEFAULT_ROLE, GroupRole, Installed, State, check, migrate, plan};
pub use migrations::{MIGRATIONS, Migration};
