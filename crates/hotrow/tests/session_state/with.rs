//! Statements with WITH that change rows of several tables: they are packed, and judged again at once when any of their
//! tables changes.

use hotrow_testkit::{connect, value};

use crate::Stage;

const TABLES: &str = "
    create table stock (id int primary key, n int not null default 0);
    create table total (id int primary key, n int not null default 0);
    create table log (id int, n int);
    insert into stock values (1), (2);
    insert into total values (1), (2)";
const LOGGED: &str = "with a as (update stock set n = n + 1 where id = 1 returning id, n) \
    insert into log select id, n from a";
const BOTH: &str =
    "with a as (update stock set n = n + 1 where id = 1) update total set n = n + 1 where id = 1";

#[tokio::test]
async fn statements_with_with_are_packed_with_all_their_rows() {
    let stage = Stage::new(&[]).await;
    stage.direct.batch_execute(TABLES).await.unwrap();
    let client = connect(&stage.gateway.config_in(&stage.schema)).await;
    for sql in [
        LOGGED,
        BOTH,
        "with a as (delete from total where id = 2 returning *) select * from a",
        "with total as (update stock set n = n + 1 where id = 2 returning n) select n from total",
        "begin; with a as (update stock set n = n + 1 where id = 2) update total set n = 9 where id = 1; commit",
    ] {
        assert!(stage.lane_runs(&client, sql).await, "{sql}");
    }
    for sql in [
        "with a as (update stock set n = n + 1 where id = 1) update stock set n = n + 1 where id = 2",
        "with a as (update stock set n = n + 1 where id = 1 returning n) select (select n from a)",
    ] {
        assert!(!stage.lane_runs(&client, sql).await, "{sql}");
    }
}

/// The second table of the text is that of the statement behind WITH, the first one that of a part.
#[tokio::test]
async fn a_change_of_any_table_of_the_statement_is_noticed_at_once() {
    let stage = Stage::new(&[]).await;
    stage.direct.batch_execute(TABLES).await.unwrap();
    let harmful = "create table seen (id int);
        create function note() returns trigger language plpgsql as
            $$ begin insert into seen values (new.id); return null; end $$";
    stage.direct.batch_execute(harmful).await.unwrap();
    let client = connect(&stage.gateway.config_in(&stage.schema)).await;
    for table in ["stock", "total"] {
        stage.lane_runs(&client, BOTH).await;
        assert!(stage.lane_runs(&client, BOTH).await, "before {table} is changed");
        let trigger =
            format!("create trigger note after update on {table} for each row execute function note()");
        stage.direct.batch_execute(&trigger).await.unwrap();
        assert!(!stage.lane_runs(&client, BOTH).await, "after {table} is changed");
        stage.direct.batch_execute(&format!("drop trigger note on {table}")).await.unwrap();
        client.batch_execute("create table if not exists known (id int)").await.unwrap(); // drops earlier verdicts
    }
    assert_eq!(value(&stage.direct, "select count(*) || ' ' || max(id) from seen").await, "2 1");
    assert_eq!(
        value(&stage.direct, "select t.n - s.n from stock s join total t using (id) where id = 1").await,
        "0"
    );
}
