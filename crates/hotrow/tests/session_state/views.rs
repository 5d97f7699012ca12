//! Simple views: statements on them are packed with the key of the table below, and judged again at once when a view or the
//! table changes.

use hotrow_testkit::{connect, rows, sqlstate, value};
use tokio_postgres::Client;

use crate::Stage;

/// `item` is in a schema that the client's role cannot use.
const TABLES: &str = "
    create schema $hidden;
    create table $hidden.item (id int primary key, n int default 0, note text);
    insert into $hidden.item values (1, 0), (2, 0), (3, 9);
    create view few as select note as text, id as no, n, n * 2 as twice from $hidden.item where n < 5;
    create view fewer as select n as amount, no as key from few with cascaded check option;
    create view barrier with (security_barrier) as select id, n from $hidden.item where note is null;
    create view joined as select i.id, i.n from $hidden.item i join t on t.id = i.id;
    create view triggered as select id, n from $hidden.item;
    create function nothing() returns trigger language plpgsql as $$ begin return null; end $$;
    create trigger nothing instead of update on triggered for each row execute function nothing();
    create view ruled as select id, n from $hidden.item;
    create rule ruled as on update to ruled do instead nothing;
    create view filled as select id, n, note from $hidden.item;
    alter view filled alter n set default 4;
    create role $role login;
    grant usage on schema $schema to $role;
    grant all on all tables in schema $schema to $role";

async fn stage() -> (Stage, Client) {
    let stage = Stage::new(&[]).await;
    let hidden = format!("{}_hidden", stage.schema);
    let role = format!("{}_role", stage.schema);
    let sql = TABLES.replace("$hidden", &hidden).replace("$role", &role).replace("$schema", &stage.schema);
    stage.direct.batch_execute(&sql).await.unwrap();
    let client = connect(stage.gateway.config_in(&stage.schema).user(&role)).await;
    (stage, client)
}

impl Stage {
    fn item(&self) -> String {
        format!("{}_hidden.item", self.schema)
    }
}

#[tokio::test]
async fn statements_by_key_through_simple_views_are_packed() {
    let (stage, client) = stage().await;
    for sql in [
        "update few set n = n + 1 where no = 1",
        "update few set n = twice + 1, text = 'x' where no in (1, 2) returning *",
        "update fewer set amount = amount + 1 where key = 1",
        "insert into few (no, n) values (4, 1) on conflict (no) do update set n = few.n + 1",
        "insert into few values ('y', 5, 1)",
        "insert into filled values (6, 1, 'z')",
        "delete from fewer where key = 5",
        "select * from few where no = 1",
        "update barrier set n = n + 1 where id = 4",
        "begin; update few set n = n + 1 where no = 2; update fewer set amount = amount + 1 where key = 2; commit",
    ] {
        assert!(stage.lane_runs(&client, sql).await, "{sql}");
    }
    let sql = format!("select string_agg(id || ':' || n, ' ' order by id) from {}", stage.item());
    assert_eq!(value(&stage.direct, &sql).await, "1:4 2:3 3:9 4:2 6:1");
    let error = client.simple_query("update fewer set amount = 7 where key = 1").await.unwrap_err();
    assert_eq!(sqlstate(&error), "44000", "the check option of the view");
    assert!(rows(&client, "update few set n = 0 where no = 3 returning n").await.unwrap().is_empty());
    let error = client.simple_query(&format!("select from {}", stage.item())).await.unwrap_err();
    assert_eq!(sqlstate(&error), "42501", "the role can use the table by its views only");
}

#[tokio::test]
async fn views_that_are_not_updated_as_their_table_are_passed_through() {
    let (stage, client) = stage().await;
    for sql in [
        "select n from joined where id = 1",
        "update triggered set n = n + 1 where id = 1",
        "update ruled set n = n + 1 where id = 1",
        "insert into filled (id) values (8)",
        "update filled set n = default where id = 1",
        "create temp view own as select * from fewer; update own set amount = 1 where key = 1; drop view own",
    ] {
        assert!(!stage.lane_runs(&client, sql).await, "{sql}");
    }
    let sql = format!("select string_agg(id || ':' || n, ' ' order by id) from {}", stage.item());
    assert_eq!(value(&stage.direct, &sql).await, "1:1 2:0 3:9 8:4");
}

/// Each change by an outsider. Right after the change, an update by the view is not packed, and has the effect that it has
/// directly.
#[tokio::test]
async fn a_change_of_a_view_or_its_table_by_an_outsider_is_noticed_at_once() {
    let (stage, client) = stage().await;
    let stage = &stage;
    let tell = "create function tell() returns trigger language plpgsql as $$ begin new.n := pg_backend_pid(); return new; end $$";
    stage.direct.batch_execute(tell).await.unwrap();
    let few = format!(
        "create or replace view few as select note as text, id as no, n, n * 2 as twice from {}",
        stage.item()
    );
    let none = format!(
        "create or replace view few as select note as text, id as no, n, n * 2 as twice from {} where pg_backend_pid() = 0",
        stage.item()
    );
    let other = format!(
        "create table {0}2 (id int primary key, n int, note text); insert into {0}2 values (1, 100);
         create or replace view few as select note as text, id as no, n, n * 2 as twice from {0}2",
        stage.item()
    );
    for (change, undo, again) in [
        (none, few.clone(), false),
        (
            format!(
                "create trigger tell before update on {} for each row execute function tell()",
                stage.item()
            ),
            format!("drop trigger tell on {}", stage.item()),
            false,
        ),
        (
            "create trigger tell instead of update on few for each row execute function tell()".to_owned(),
            "drop trigger tell on few".to_owned(),
            false,
        ),
        (
            "create rule tell as on update to few do instead nothing".to_owned(),
            "drop rule tell on few".to_owned(),
            false,
        ),
        (
            format!("alter table {} enable row level security", stage.item()),
            format!("alter table {} disable row level security", stage.item()),
            false,
        ),
        // The next update is packed with the other table's key.
        (other, few, true),
    ] {
        let update = "update fewer set amount = amount + 0 where key = 1";
        let update_below = "update few set n = n + 0 where no = 1";
        for sql in [update, update_below] {
            stage.lane_runs(&client, sql).await;
            assert!(stage.lane_runs(&client, sql).await, "before {change}: {sql}");
        }
        stage.direct.batch_execute(&change).await.unwrap();
        assert!(!stage.lane_runs(&client, update).await, "{update} after {change}");
        if again {
            assert!(stage.lane_runs(&client, update_below).await, "the other table's row");
            assert_eq!(value(&client, "select n from few where no = 1").await, "100");
        } else {
            assert!(!stage.lane_runs(&client, update_below).await, "{update_below} after {change}");
        }
        stage.direct.batch_execute(&undo).await.unwrap();
        connect(&stage.config()).await.batch_execute("create table if not exists changed ()").await.unwrap();
    }
}
