//! The client's role: its settings and rights hold for packed statements and for others.

use hotrow_testkit::{connect, sqlstate, until, value};
use tokio_postgres::Client;

use crate::Stage;

async fn role(stage: &Stage, name: &str, more: &str) -> (String, Client) {
    let role = format!("{}_{name}", stage.schema);
    let sql = format!(
        "create role {role} login; grant usage on schema {0} to {role}; grant all on all tables in schema {0} to {role}; {1}",
        stage.schema,
        more.replace("$role", &role)
    );
    stage.direct.batch_execute(&sql).await.unwrap();
    let client = connect(stage.gateway.config_in(&stage.schema).user(&role)).await;
    assert_eq!(value(&client, "select current_user").await, role);
    (role, client)
}

#[tokio::test]
async fn a_serializable_role_packs_nothing() {
    let stage = Stage::new(&[]).await;
    let (_, client) =
        role(&stage, "strict", "alter role $role set default_transaction_isolation = 'serializable'").await;
    for _ in 0..3 {
        assert!(!stage.packs(&client).await);
    }
    assert_eq!(value(&client, "select n from t where id = 1").await, "3");
    assert_eq!(stage.gateway.metric("packed_reads_total"), 0);
    assert_eq!(value(&client, "show transaction_isolation").await, "serializable");
    assert!(stage.packs(&stage.client().await).await, "other clients' updates are packed");
}

#[tokio::test]
async fn a_client_that_starts_serializable_packs_nothing() {
    let stage = Stage::new(&[]).await;
    let mut config = stage.gateway.config();
    config.options(format!("-c search_path={} -c default_transaction_isolation=serializable", stage.schema));
    let client = connect(&config).await;
    assert!(!stage.packs(&client).await);
    assert_eq!(value(&client, "show transaction_isolation").await, "serializable");
}

#[tokio::test]
async fn each_role_has_its_own_rights() {
    let stage = Stage::new(&[]).await;
    let (_, client) =
        role(&stage, "reader", &format!("revoke update on {}.t from $role", stage.schema)).await;
    assert!(stage.packs(&stage.client().await).await, "another role has the right");
    assert_eq!(sqlstate(&client.simple_query(crate::UPDATE).await.unwrap_err()), "42501");
    assert_eq!(value(&client, "select n from t where id = 1").await, "1");
}

#[tokio::test]
async fn row_security_shows_each_role_its_rows() {
    let stage = Stage::new(&[]).await;
    let (ann, anns) = role(&stage, "ann", "").await;
    let (bob, bobs) = role(&stage, "bob", "").await;
    let sql = format!(
        "create table own (id int primary key, owner text, n int);
         insert into own values (1, '{ann}', 0), (2, '{bob}', 0);
         alter table own enable row level security;
         create policy own on own using (owner = current_user);
         grant all on own to {ann}, {bob}"
    );
    stage.direct.batch_execute(&sql).await.unwrap();
    for round in 1..=3_u64 {
        for (client, visible, hidden) in [(&anns, 1, 2), (&bobs, 2, 1)] {
            let update = "update own set n = n + 1 where id = $1 returning n";
            assert_eq!(client.query_one(update, &[&visible]).await.unwrap().get::<_, i32>(0), round as i32);
            assert_eq!(client.execute(update, &[&hidden]).await.unwrap(), 0);
            assert_eq!(
                value(client, &format!("select count(*) from own where id in ({visible}, {hidden})")).await,
                "1"
            );
            assert!(client.query("select n from own where id = $1", &[&hidden]).await.unwrap().is_empty());
            let foreign = client.execute("insert into own values (3, 'somebody', 0)", &[]).await.unwrap_err();
            assert_eq!(sqlstate(&foreign), "42501");
        }
    }
    assert_eq!(value(&stage.direct, "select sum(n) from own").await, "6");
}

/// Row security does not apply to the owner, whose statements are packed until that changes.
#[tokio::test]
async fn row_security_applies_to_an_owner_as_soon_as_it_is_forced_or_the_owner_is_another() {
    let stage = Stage::new(&[]).await;
    let (ann, anns) = role(&stage, "ann", "").await;
    let sql = format!(
        "create table own (id int primary key, owner text, n int);
         insert into own values (1, '{ann}', 0), (2, 'somebody', 0);
         grant all on own to {ann};
         alter table own owner to {ann};
         alter table own enable row level security;
         create policy own on own using (owner = current_user)"
    );
    stage.direct.batch_execute(&sql).await.unwrap();
    let update = "update own set n = n + 1 where id = 2";
    let before = stage.gateway.metric("packed_units_total");
    until("the owner's statement is packed", async || {
        assert_eq!(anns.execute(update, &[]).await.unwrap(), 1);
        stage.gateway.metric("packed_units_total") > before
    })
    .await;
    for (change, undo) in [
        (
            "alter table own force row level security".to_owned(),
            "alter table own no force row level security".to_owned(),
        ),
        (
            format!("alter table own owner to current_user; grant all on own to {ann}"),
            format!("alter table own owner to {ann}"),
        ),
    ] {
        let packed = stage.gateway.metric("packed_units_total");
        stage.direct.batch_execute(&change).await.unwrap();
        for _ in 0..3 {
            assert_eq!(anns.execute(update, &[]).await.unwrap(), 0, "{change}");
        }
        assert_eq!(stage.gateway.metric("packed_units_total"), packed, "{change}");
        stage.direct.batch_execute(&undo).await.unwrap();
        assert_eq!(anns.execute(update, &[]).await.unwrap(), 1, "{undo}");
    }
}

#[tokio::test]
async fn operators_of_a_database_owner_are_not_run_by_the_gateways_queries() {
    let stage = Stage::alone(&[]).await;
    let mut traps = "create schema evil; create table evil.caught (by text);
        grant usage on schema evil to public; grant insert on evil.caught to public;"
        .to_owned();
    for (number, (operator, left, right)) in [
        ("=", "oid", "oid"),
        ("=", "name", "name"),
        ("=", "\"char\"", "\"char\""),
        ("<>", "\"char\"", "\"char\""),
        ("<>", "name", "name"),
        ("=", "text", "text"),
        (">", "int2", "int2"),
    ]
    .into_iter()
    .enumerate()
    {
        traps += &format!(
            "create function evil.f{number}({left}, {right}) returns bool language plpgsql as $$
                begin insert into evil.caught values (current_user); return $1 operator(pg_catalog.{operator}) $2; end $$;
             create operator evil.{operator} (leftarg = {left}, rightarg = {right}, function = evil.f{number});"
        );
    }
    traps += "create function evil.volatile() returns int language plpgsql as $$ begin return 1; end $$";
    stage.direct.batch_execute(&traps).await.unwrap();
    let mut config = stage.config();
    config.options(format!("-c search_path=evil,{},pg_catalog", stage.schema));
    let client = connect(&config).await;
    for n in 1..=3 {
        assert_eq!(value(&client, super::UPDATE).await, n.to_string());
        assert_eq!(value(&client, "select evil.volatile()").await, "1");
    }
    assert!(stage.gateway.log().contains("decided: passed through"), "the gateway has read the catalog");
    assert_eq!(value(&stage.direct, "select count(*) from evil.caught").await, "0");
}

/// Connections with the old settings are replaced when a new client logs in.
#[tokio::test]
#[ignore = "long: make test-all"]
async fn new_clients_get_the_settings_that_a_role_and_its_database_have_now() {
    let stage = Stage::alone(&[]).await;
    let (database, role) = (&stage.database, format!("{}_role", stage.schema));
    let before = format!(
        "create table at (id int primary key, t timestamptz); insert into at values (1, '2020-01-01 00:00:00+00');
         create role {role} login; grant usage on schema {0} to {role};
         grant all on all tables in schema {0} to {role}",
        stage.schema
    );
    stage.direct.batch_execute(&before).await.unwrap();
    let new_client = async || connect(stage.config().user(&role)).await;
    let read = "select t from at where id = 1";
    let by_default = value(&stage.direct, read).await;
    let in_database = format!("role {role} in database {database}");
    for (whose, reset) in [
        (&format!("role {role}"), "reset timezone"),
        (&format!("database {database}"), "reset timezone"),
        (&format!("database {database}"), "set timezone to default"),
        (&in_database, "reset all"),
    ] {
        for (change, shown) in
            [("set timezone = 'Asia/Tokyo'", "2020-01-01 09:00:00+09"), (reset, by_default.as_str())]
        {
            let change = format!("alter {whose} {change}");
            stage.direct.batch_execute(&change).await.unwrap();
            let update = "update at set id = 1 where id = 1 returning t";
            until(&change, async || {
                let client = new_client().await;
                let passed = value(&client, "select t from at where id + 0 = 1").await;
                let packed = [value(&client, read).await, value(&client, update).await];
                passed == shown && packed == [shown, shown]
            })
            .await;
        }
    }
    for (change, packs) in
        [("set default_transaction_isolation = 'serializable'", false), ("reset all", true)]
    {
        let change = format!("alter role {role} {change}");
        stage.direct.batch_execute(&change).await.unwrap();
        until(&change, async || stage.packs(&new_client().await).await == packs).await;
    }
}
