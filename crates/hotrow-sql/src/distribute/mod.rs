//! `hotrow migrate --distribute`: makes the shards of a distributed hotrow schema on a cluster of Citus, and lets calls go there.
//!
//! Counters, sales and queues are divided by the hash of their names into a fixed number of shards, and feeds by that of the
//! user. A shard is a schema with all tables of these areas, which Citus keeps on one node and moves as a whole. Everything that
//! belongs to one name is therefore on one node: ledger, requests, buyers, reservations, orders. So is everything of one user:
//! posts, followers, inbox. A post reaches the followers in other shards by fan-out (`feeds.rs`). Rows that the coordinator's own
//! tables have are moved to the shards in the last step.
//!
//! Each step is a transaction and can be repeated, so a run that was interrupted is completed by the next one.

mod dispatch;
mod feeds;
mod shard;

use tokio_postgres::{Client, GenericClient, Transaction};

use crate::Error;
use crate::functions::{Distribute, Grant, functions};
use crate::generate::grants;
use crate::install::{INSTALLER_LOCK, become_owner};
use crate::migrations::REVOKE;

use dispatch::Dispatcher;
pub use shard::schema;

/// The number of shards, unless the installer chooses another one.
pub const SHARDS: i32 = 8;

/// The most shards. The maintenance visits each of them.
pub const SHARDS_MAX: i32 = 64;

/// All functions that a distributed hotrow schema replaces.
pub(crate) fn dispatchers() -> Vec<Dispatcher> {
    let mut all = dispatch::dispatchers();
    all.extend(feeds::calls());
    all
}

/// The number of shards of the installed hotrow schema; None if its calls do not go to shards.
pub async fn shards(client: &impl GenericClient) -> Result<Option<i32>, Error> {
    let there = client.query_one("select to_regclass('hotrow.distribution') is not null", &[]).await?;
    if !there.get::<_, bool>(0) {
        return Ok(None);
    }
    let row = client.query_opt("select shards from hotrow.distribution where in_use", &[]).await?;
    Ok(row.map(|row| row.get(0)))
}

/// Distributes the installed hotrow schema. Returns the number of shards, which is that of the first run. `role` is the
/// group role.
pub async fn distribute(client: &mut Client, role: &str, shards: i32) -> Result<i32, Error> {
    let transaction = begin(client).await?;
    check_cluster(&transaction).await?;
    transaction.batch_execute(include_str!("../../sql/citus/begin.sql")).await?;
    let choose = "insert into hotrow.distribution (shards) values ($1) on conflict do nothing";
    transaction.execute(choose, &[&shards]).await?;
    let shards: i32 = transaction.query_one("select shards from hotrow.distribution", &[]).await?.get(0);
    transaction.commit().await?;
    for number in 0..shards {
        make_tables(client, number).await?;
        make_functions(client, number).await?;
    }
    share(client).await?;
    let transaction = begin(client).await?;
    transaction
        .batch_execute(&include_str!("../../sql/citus/shards.sql").replace("SHARDS", &shards.to_string()))
        .await?;
    transaction.batch_execute(include_str!("../../sql/citus/feed_parts.sql")).await?;
    transaction.batch_execute(include_str!("../../sql/citus/move.sql")).await?;
    for dispatcher in dispatchers() {
        transaction.batch_execute(&dispatcher.text).await?;
    }
    transaction.batch_execute(REVOKE).await?;
    transaction.batch_execute(&grants(Grant::Public, "public")).await?;
    transaction.batch_execute("grant execute on function hotrow.distribution_of(text) to public").await?;
    let quoted = "select quote_ident(rolname) from pg_roles where rolname = $1";
    if let Some(row) = transaction.query_opt(quoted, &[&role]).await? {
        transaction.batch_execute(&grants(Grant::Group, row.get(0))).await?;
    }
    transaction.batch_execute(include_str!("../../sql/citus/close.sql")).await?;
    transaction.commit().await?;
    Ok(shards)
}

/// A step. Only one installer works at a time.
async fn begin(client: &mut Client) -> Result<Transaction<'_>, Error> {
    let transaction = client.transaction().await?;
    transaction
        .batch_execute(
            "set local search_path = pg_catalog, pg_temp; set local client_min_messages = error; \
             set local citus.multi_shard_modify_mode = 'sequential'",
        )
        .await?;
    transaction.batch_execute(&format!("select pg_advisory_xact_lock({INSTALLER_LOCK})")).await?;
    become_owner(&transaction).await?;
    Ok(transaction)
}

async fn check_cluster(transaction: &Transaction<'_>) -> Result<(), Error> {
    let citus = transaction
        .query_one("select exists (select from pg_extension where extname = 'citus')", &[])
        .await?;
    if !citus.get::<_, bool>(0) {
        return Err(Error::NoCluster("the database does not have the extension citus"));
    }
    if transaction
        .query_opt("select from pg_proc where proname = 'citus_schema_distribute'", &[])
        .await?
        .is_none()
    {
        return Err(Error::NoCluster("the extension citus is older than 12"));
    }
    let facts = "select (select groupid = 0 from pg_dist_local_group), \
        exists (select from pg_dist_node where noderole = 'primary' and isactive and shouldhaveshards and metadatasynced)";
    let row = transaction.query_one(facts, &[]).await?;
    match (row.get(0), row.get(1)) {
        (false, _) => Err(Error::NoCluster("this server is not the coordinator")),
        (true, false) => Err(Error::NoCluster("the cluster has no active node that can have shards")),
        (true, true) => Ok(()),
    }
}

/// The schema of a shard with its tables, in one transaction.
async fn make_tables(client: &mut Client, number: i32) -> Result<(), Error> {
    let schema = schema(number);
    let transaction = begin(client).await?;
    let owner = "select n.nspowner = h.nspowner from pg_namespace n, pg_namespace h where n.nspname = $1 and h.nspname = 'hotrow'";
    match transaction.query_opt(owner, &[&schema]).await?.map(|row| row.get(0)) {
        None => {
            let failed = |source| Error::Shard { schema: schema.clone(), source };
            transaction.batch_execute(&shard::tables(number)).await.map_err(failed)?;
            // Settings that were changed before apply to the shards too. Each shard has its own ring and secret.
            let settings = format!(
                "update {schema}.setting s set request_retention = h.request_retention, \
                 history_retention = h.history_retention, snapshot_every = h.snapshot_every, inbox_length = h.inbox_length, \
                 inbox_age = h.inbox_age from hotrow.setting h;
                 select citus_schema_distribute('{schema}')"
            );
            transaction.batch_execute(&settings).await.map_err(failed)?;
        }
        Some(true) => {}
        Some(false) => return Err(Error::ShardOwner { schema }),
    }
    // The only table without a primary key. Citus moves a shard while clients write it only if changes of all rows can be
    // replicated.
    transaction.batch_execute(&format!("alter table {schema}.feed_sweep replica identity full")).await?;
    Ok(transaction.commit().await?)
}

async fn make_functions(client: &mut Client, number: i32) -> Result<(), Error> {
    let transaction = begin(client).await?;
    let text = functions_of_shard(&transaction, number).await?;
    let failed = |source| Error::Shard { schema: schema(number), source };
    transaction.batch_execute(&text).await.map_err(failed)?;
    Ok(transaction.commit().await?)
}

/// The statements that create the views and functions of a shard.
async fn functions_of_shard(client: &impl GenericClient, number: i32) -> Result<String, Error> {
    let rows = client.query(include_str!("../../sql/citus/names.sql"), &[&schema(number)]).await?;
    let names = shard::Names { tables: rows.iter().map(|row| (row.get(0), row.get(1))).collect() };
    Ok(shard::functions(number, &names))
}

/// The schemas of a distributed hotrow schema beside `hotrow`, each with the statements that create its functions.
pub(crate) async fn functions_by_schema(
    client: &impl GenericClient,
    shards: i32,
) -> Result<Vec<(String, String)>, Error> {
    let mut all = Vec::new();
    for number in 0..shards {
        all.push((schema(number), functions_of_shard(client, number).await?));
    }
    Ok(all)
}

/// Gives every node what a lane of the gateway asks there: the merge rules and the distribution.
async fn share(client: &mut Client) -> Result<(), Error> {
    let transaction = begin(client).await?;
    for function in functions() {
        let Some(distribute) = &function.distribute else { continue };
        let key = match distribute {
            Distribute::By(key) => Some(key.as_str()),
            _ => None,
        };
        let note = "insert into hotrow.distributed_function (name, key_parameter) values ($1, $2) \
            on conflict (name) do update set key_parameter = excluded.key_parameter";
        transaction.execute(note, &[&function.name, &key]).await?;
    }
    let share = "select create_reference_table(c.oid) from pg_class c where c.oid = any (array['hotrow.merge_rule', \
        'hotrow.distributed_function']::regclass[]) and not exists (select from pg_dist_partition p where p.logicalrelid = c.oid)";
    transaction.batch_execute(share).await?;
    let functions = "select create_distributed_function(p.oid::regprocedure) from pg_proc p \
        where p.pronamespace = 'hotrow'::regnamespace and p.proname in \
        ('signature', 'misfit', 'fitting_rules', 'merge_rules', 'null_argument', 'bad_argument', 'check_batch', 'check_pairs')";
    transaction.batch_execute(functions).await?;
    Ok(transaction.commit().await?)
}
