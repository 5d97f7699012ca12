//! Pauses and changes of settings while lanes to nodes are open, and statements that run on no node.

use hotrow_testkit::{Gateway, config, connect, rows, sqlstate, until, value};

use crate::Stage;

const TABLES: &str = "create table accounts (id bigint primary key, n int not null);
    create table names (name text primary key, n int not null);
    create table codes (code varchar(3) primary key, n int not null);
    select create_distributed_table('accounts', 'id');
    select create_distributed_table('names', 'name');
    select create_distributed_table('codes', 'code');
    insert into accounts select id, 0 from generate_series(1, 20) id;
    insert into names select 'n' || id, 0 from generate_series(1, 20) id;
    insert into codes select 'n' || id, 0 from generate_series(1, 20) id";

impl Stage {
    /// Updates rows until lanes to nodes have committed more units than this.
    async fn use_nodes(&self, before: u64) {
        until("lanes to nodes commit", async || {
            self.update_accounts().await;
            self.units().await > before
        })
        .await;
    }

    async fn update_accounts(&self) {
        let client = self.client().await;
        for id in 1..20_i64 {
            client.execute("update accounts set n = n + 1 where id = $1", &[&id]).await.unwrap();
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pause_closes_all_connections_to_nodes() {
    let Some(stage) = Stage::new(TABLES).await else { return };
    stage.use_nodes(40).await;
    let console = connect(stage.gateway.config().dbname("hotrow")).await;
    console.batch_execute("pause").await.unwrap();
    for worker in &stage.cluster.workers {
        let there = connect(&config(worker.port())).await;
        until("a paused gateway has no connection to a node", async || {
            let left = "select application_name, query from pg_stat_activity
                         where application_name like 'hotrow%' and backend_type = 'client backend'";
            rows(&there, left).await.unwrap().is_empty()
        })
        .await;
    }
    console.batch_execute("resume").await.unwrap();
    stage.use_nodes(stage.units().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn lanes_to_nodes_stay_when_settings_change() {
    let Some(stage) = Stage::new(TABLES).await else { return };
    stage.use_nodes(400).await;
    let before = stage.units().await;
    for port in
        stage.cluster.workers.iter().map(|worker| worker.port()).chain([stage.cluster.coordinator.port()])
    {
        let there = connect(&config(port)).await;
        there.batch_execute("alter system set timezone = 'Asia/Tokyo'").await.unwrap();
        there.batch_execute("select pg_reload_conf()").await.unwrap();
    }
    until("clients get the new setting", async || {
        value(&stage.client().await, "show timezone").await == "Asia/Tokyo"
    })
    .await;
    // Other lanes would have no counts yet. Units of the old ones would not keep their order with new ones.
    until("lanes to nodes have gone on", async || {
        stage.update_accounts().await;
        let units = stage.units().await;
        assert!(units >= before, "the lanes were replaced");
        units > before + 100
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_value_that_is_converted_decides_on_no_node() {
    let Some(stage) = Stage::new(TABLES).await else { return };
    let client = stage.client().await;
    let run = async || {
        for number in 1..10 {
            for statement in [
                format!("update names set n = n + 1 where name = 'n{number}x'::varchar(2) returning name"),
                format!("update names set n = n + 1 where name = 'n{number}  '::char(4) returning name"),
                format!("insert into names values (00{number}, 1) on conflict (name) do update set n = 2"),
                format!(
                    "insert into codes values ('n{number}   ', 1) on conflict (code) do update set n = 2"
                ),
            ] {
                client.batch_execute(&statement).await.unwrap();
            }
        }
    };
    run().await;
    assert_eq!(stage.units().await, 0, "their rows can be on another node than the literal says");
    // When a statement on their table runs on its node, the nodes have also been asked about them.
    until("a lane to a node commits", async || {
        client.batch_execute("update names set n = n + 1 where name = 'n1'").await.unwrap();
        stage.units().await > 0
    })
    .await;
    let before = stage.units().await;
    for _ in 0..3 {
        run().await;
    }
    assert_eq!(stage.units().await, before, "their rows can be on another node than the literal says");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_privilege_that_only_the_coordinator_has_revoked_is_revoked() {
    let Some(stage) = Stage::new(TABLES).await else { return };
    stage
        .direct
        .batch_execute("create role app login; grant select, update on accounts to app")
        .await
        .unwrap();
    let client = connect(stage.gateway.config().user("app")).await;
    let update = "update accounts set n = n + 1 where id = 7";
    until("a lane to a node commits", async || {
        client.batch_execute(update).await.unwrap();
        stage.units().await > 3
    })
    .await;
    let revoke = "set citus.enable_ddl_propagation = off; revoke update on accounts from app; reset citus.enable_ddl_propagation";
    stage.direct.batch_execute(revoke).await.unwrap();
    until("the update is refused", async || match client.batch_execute(update).await {
        Ok(()) => false,
        Err(error) => sqlstate(&error) == "42501",
    })
    .await;
}

/// Until the lanes notice, their prepared statements are planned for a table of the coordinator.
#[tokio::test(flavor = "multi_thread")]
async fn statements_on_a_table_that_has_just_become_distributed_run_once() {
    let Some(stage) = Stage::new(TABLES).await else { return };
    let without_lanes = Gateway::in_front_of(&stage.cluster.coordinator.url(), &[]);
    let mut round = 0;
    for gateway in [&stage.gateway, &without_lanes] {
        for distributes in ["create_distributed_table($, 'id')", "create_distributed_table($, null)"] {
            for statement in [
                "update $ set n = n + 1 where id = 1 returning n",
                "insert into $ values (2, 7) returning n",
                "insert into $ values (1, 0) on conflict (id) do update set n = $.n + 1 returning n",
                "delete from $ where id = 1 returning n",
            ] {
                round += 1;
                let table = format!("late_{round}");
                let of_table = |text: &str| text.replace('$', &table);
                stage
                    .direct
                    .batch_execute(&of_table(
                        "create table $ (id bigint primary key, n int); insert into $ values (1, 0)",
                    ))
                    .await
                    .unwrap();
                let client = connect(&gateway.config()).await;
                for warm in 1..=5 {
                    for text in [
                        "update $ set n = n + 1 where id = 1 returning n",
                        "insert into $ values (2, 7) returning n",
                        "delete from $ where id = 2 returning n",
                        "insert into $ values (1, 0) on conflict (id) do update set n = $.n + 1 returning n",
                        "delete from $ where id = 3 returning n",
                    ] {
                        client
                            .simple_query(&of_table(text))
                            .await
                            .unwrap_or_else(|error| panic!("{warm}: {error}"));
                    }
                }
                let quoted = format!("'{table}'");
                stage
                    .direct
                    .batch_execute(&format!("select {}", distributes.replace('$', &quoted)))
                    .await
                    .unwrap();
                let told = value(&client, &of_table(statement)).await;
                let left = value(
                    &stage.direct,
                    &of_table("select string_agg(id || '=' || n, ' ' order by id) from $"),
                )
                .await;
                let due = match statement.split(' ').next().unwrap() {
                    "update" => ("11", "1=11"),
                    "delete" => ("10", ""),
                    _ if statement.contains("conflict") => ("11", "1=11"),
                    _ => ("7", "1=10 2=7"),
                };
                assert_eq!((told.as_str(), left.as_str()), due, "{statement} after {distributes}");
            }
        }
    }
}
