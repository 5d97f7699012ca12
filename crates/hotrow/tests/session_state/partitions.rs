//! Partitioned tables: packed by a key that contains the partition key, and judged again at once when a partition changes.

use hotrow_testkit::{sqlstate, value};
use tokio_postgres::Client;

use crate::Stage;

const TABLES: &str = "
    create table p (id int primary key, n int default 0, note text) partition by range (id);
    create table low partition of p for values from (0) to (100);
    create table high partition of p for values from (100) to (200) partition by list (id);
    create table odd (note text, n int, id int not null);
    alter table high attach partition odd for values in (101, 103);
    insert into p values (1, 0), (2, 0), (101, 0), (103, 0)";

async fn stage() -> (Stage, Client) {
    let stage = Stage::new(&[]).await;
    stage.direct.batch_execute(TABLES).await.unwrap();
    let client = stage.client().await;
    (stage, client)
}

impl Stage {
    /// Whether a lane runs these statements. No other client may run statements.
    pub(crate) async fn lane_runs(&self, client: &Client, sql: &str) -> bool {
        let packed = || self.gateway.metric("packed_units_total") + self.gateway.metric("packed_reads_total");
        let before = packed();
        client.simple_query(sql).await.unwrap();
        packed() > before
    }
}

#[tokio::test]
async fn statements_by_key_are_packed() {
    let (stage, client) = stage().await;
    for sql in [
        "update p set n = n + 1 where id = 1",
        "update p set n = n + 1 where id in (1, 101, 150)",
        "insert into p values (3, 3)",
        "insert into p values (103, 1) on conflict (id) do update set n = p.n + excluded.n",
        "select n from p where id = 101",
        "delete from p where id = 2",
        "begin; update p set n = n + 1 where id = 1; update p set n = n + 1 where id = 103; commit",
    ] {
        assert!(stage.lane_runs(&client, sql).await, "{sql}");
    }
    let rows = value(&stage.direct, "select string_agg(id || ':' || n, ' ' order by id) from p").await;
    assert_eq!(rows, "1:3 3:3 101:1 103:2");
    let error = client.simple_query("insert into p values (500, 0)").await.unwrap_err();
    assert_eq!(sqlstate(&error), "23514", "no partition for the row");
}

#[tokio::test]
async fn a_row_that_moves_and_a_partition_itself_are_passed_through() {
    let (stage, client) = stage().await;
    for sql in [
        "update p set id = 5 where id = 2",
        "update p set id = 102 - 1, n = 7 where id = 500",
        "insert into p values (1, 1) on conflict (id) do update set id = 1",
        "update low set n = n + 1 where id = 1",
    ] {
        assert!(!stage.lane_runs(&client, sql).await, "{sql}");
    }
    let many = "create table many (id int primary key, n int default 0) partition by range (id);
        do $$ begin for i in 0..128 loop
            execute format('create table many%s partition of many for values from (%s) to (%s)', i, i, i + 1);
        end loop; end $$";
    stage.direct.batch_execute(many).await.unwrap();
    assert!(!stage.lane_runs(&client, "update many set n = n + 1 where id = 1").await, "129 partitions");
    client.batch_execute("drop table many0").await.unwrap();
    assert!(stage.lane_runs(&client, "update many set n = n + 1 where id = 1").await, "128 partitions");
}

/// Each change by an outsider, and its undoing. Right after the change, an update that it concerns is not packed.
#[tokio::test]
async fn a_change_of_a_partition_by_an_outsider_is_noticed_at_once() {
    let (stage, client) = stage().await;
    let tell = "create function tell() returns trigger language plpgsql as $$ begin new.n := pg_backend_pid(); return new; end $$;
        create table spare (id int not null, n int default 0, note text);
        insert into spare values (101, 0);
        create trigger tell before update on spare for each row execute function tell();
        create function quiet() returns trigger language plpgsql as $$ begin return new; end $$;
        create trigger quiet before update on low for each row execute function quiet()";
    stage.direct.batch_execute(tell).await.unwrap();
    for (id, change, undo) in [
        (
            1,
            "create trigger tell before update on low for each row execute function tell()",
            "drop trigger tell on low",
        ),
        (
            101,
            "create trigger tell before update on odd for each row execute function tell()",
            "drop trigger tell on odd",
        ),
        (
            101,
            "alter table odd add constraint tells check (n < pg_backend_pid() + 1000000000)",
            "alter table odd drop constraint tells",
        ),
        (1, "create rule tells as on update to low do also notify tells", "drop rule tells on low"),
        (1, "alter table low enable row level security", "alter table low disable row level security"),
        (
            1,
            "create or replace function quiet() returns trigger language plpgsql as $$ begin new.n := pg_backend_pid(); return new; end $$",
            "create or replace function quiet() returns trigger language plpgsql as $$ begin return new; end $$",
        ),
        (
            101,
            "alter table high detach partition odd; alter table high attach partition spare for values in (101, 103)",
            "alter table high detach partition spare; alter table high attach partition odd for values in (101, 103)",
        ),
    ] {
        let update = format!("update p set n = n + 1 where id = {id}");
        stage.lane_runs(&client, &update).await;
        assert!(stage.lane_runs(&client, &update).await, "before {change}");
        stage.direct.batch_execute(change).await.unwrap();
        assert!(!stage.lane_runs(&client, &update).await, "{change}");
        // DDL of a client of the gateway makes it query the catalog again.
        client.batch_execute(undo).await.unwrap();
    }
}
