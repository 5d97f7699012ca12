//! Tables that change under the gateway, by a client's DDL or behind its back: answers stay the server's, and what was
//! decided from the catalogue is decided again.

use std::time::{Duration, Instant};

use crate::Stage;
use crate::support::{sqlstate, until, value};

/// Looks at the catalogue again five times a second.
const OFTEN: &[&str] = &["--catalogue-age-ms", "200"];
/// And is believed to have done so after this.
const SOON: Duration = Duration::from_secs(3);

#[tokio::test]
async fn columns_that_are_added_are_seen_at_once() {
    let stage = Stage::new(&[]).await;
    let (client, other) = (stage.client().await, stage.client().await);
    let read = client.prepare("select * from t where id = $1").await.unwrap();
    let insert = client.prepare("insert into t values ($1, $2) returning *").await.unwrap();
    assert_eq!(client.query_one(&read, &[&1]).await.unwrap().len(), 2);
    assert_eq!(client.query_one(&insert, &[&3, &0]).await.unwrap().len(), 2);
    assert_eq!(value(&other, "select * from t where id = 1").await, "1");

    client.batch_execute("alter table t add column label text default 'new'").await.unwrap();
    for (id, statement) in [(1, &read), (4, &insert)] {
        // The server refuses a plan whose columns have changed; a fresh one has the new column. Both are honest.
        let values: [&(dyn tokio_postgres::types::ToSql + Sync); 2] = [&id, &0];
        match client.query_one(statement, &values[..statement.params().len()]).await {
            Ok(row) => assert_eq!(row.get::<_, i32>(0), id),
            Err(error) => assert_eq!(sqlstate(&error), "0A000"),
        }
    }
    let again = client.prepare("select * from t where id = $1").await.unwrap();
    let row = client.query_one(&again, &[&1]).await.unwrap();
    assert_eq!((row.len(), row.get::<_, &str>(2)), (3, "new"));
    let rows = crate::support::rows(&other, "select * from t where id = 1").await.unwrap();
    assert_eq!(rows[0].len(), 3);
    assert!(stage.packs(&client).await && stage.packs(&other).await);
}

#[tokio::test]
async fn a_table_that_goes_and_comes_back_is_another() {
    let stage = Stage::new(&[]).await;
    let (client, other) = (stage.client().await, stage.client().await);
    let update = other.prepare("update t set n = n + 1 where id = 1 returning n").await.unwrap();
    assert_eq!(other.query_one(&update, &[]).await.unwrap().get::<_, i32>(0), 1);
    client.batch_execute("drop table t").await.unwrap();
    assert_eq!(sqlstate(&other.query_one(&update, &[]).await.unwrap_err()), "42P01");
    assert_eq!(sqlstate(&other.simple_query(crate::UPDATE).await.unwrap_err()), "42P01");
    client
        .batch_execute("create table t (id int primary key, n int); insert into t values (1, 10)")
        .await
        .unwrap();
    assert_eq!(other.query_one(&update, &[]).await.unwrap().get::<_, i32>(0), 11);
    until("it is packed again", async || stage.packs(&client).await).await;
}

#[tokio::test]
async fn a_trigger_that_somebody_adds_is_noticed() {
    let stage = Stage::new(OFTEN).await;
    let client = stage.client().await;
    assert!(stage.packs(&client).await);
    let trigger = "create table seen (backend int, name text);
        create function watch() returns trigger language plpgsql as $$
            begin insert into seen values (pg_backend_pid(), current_setting('application_name')); return new; end $$;
        create trigger watch after update on t for each row execute function watch()";
    stage.direct.batch_execute(trigger).await.unwrap();
    let since = Instant::now();
    until("updates are no longer packed", async || !stage.packs(&client).await).await;
    assert!(since.elapsed() < SOON, "{:?}", since.elapsed());
    let all = value(&stage.direct, "select count(*) = (select n - 1 from t where id = 1) from seen").await;
    assert_eq!(all, "t", "the trigger has run for each update since");
    stage.direct.batch_execute("drop trigger watch on t").await.unwrap();
    until("they are packed again", async || stage.packs(&client).await).await;
}

#[tokio::test]
async fn a_unique_index_that_somebody_drops_is_noticed() {
    let stage = Stage::new(OFTEN).await;
    let client = stage.client().await;
    stage
        .direct
        .batch_execute("create table u (code text unique, n int); insert into u values ('a', 0)")
        .await
        .unwrap();
    let update = "update u set n = n + 1 where code = 'a'";
    let packs = async || {
        let before = stage.gateway.metric("packed_units_total");
        client.simple_query(update).await.unwrap();
        stage.gateway.metric("packed_units_total") > before
    };
    assert!(packs().await);
    stage
        .direct
        .batch_execute("alter table u drop constraint u_code_key; insert into u values ('a', 100)")
        .await
        .unwrap();
    let since = Instant::now();
    until("it is no longer packed", async || !packs().await).await;
    assert!(since.elapsed() < SOON, "{:?}", since.elapsed());
    assert_eq!(client.execute(update, &[]).await.unwrap(), 2, "both rows");
    stage.direct.batch_execute("delete from u where n > 50; create unique index on u (code)").await.unwrap();
    until("it is packed again", async || packs().await).await;
}
