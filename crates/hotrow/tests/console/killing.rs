//! KILL and KILL_CLIENT disconnect clients, whatever they do.

use hotrow_testkit::{rows, sqlstate, until, value};
use tokio_postgres::Client;

use crate::Stage;

/// Waits until the client gets its error. A statement under way may be cancelled first.
async fn is_disconnected(client: &Client) {
    until("the client is disconnected", || async {
        match client.simple_query("select 1").await {
            Ok(_) => false,
            Err(error) => {
                assert!(error.is_closed() || ["57P01", "57014"].contains(&sqlstate(&error)), "{error:?}");
                client.is_closed()
            }
        }
    })
    .await;
}

/// A name that no other test on the same server gives to its clients.
fn target(stage: &Stage) -> String {
    format!("target of {}", stage.schema)
}

/// Gives the client its name, and returns its process ID.
async fn process_id(stage: &Stage, client: &Client, console: &Client) -> String {
    client.batch_execute(&format!("set application_name = '{}'", target(stage))).await.unwrap();
    let clients = rows(console, "show clients").await.unwrap();
    let row = clients.iter().find(|row| row[4].as_ref() == Some(&target(stage))).unwrap();
    row[0].clone().unwrap()
}

#[tokio::test]
async fn kill_client_disconnects_one_client_in_any_state() {
    let stage = Stage::new("lanes = 1\n", &[]).await;
    let (console, other) = (stage.console().await, stage.client().await);
    let unknown = console.simple_query("kill_client 17").await.unwrap_err();
    assert_eq!(sqlstate(&unknown), "42704");
    for state in ["idle", "in a transaction", "waiting for a lock"] {
        let client = stage.client().await;
        let id = process_id(&stage, &client, &console).await;
        if state != "idle" {
            client.batch_execute("begin; update t set n = 99 where id = 1").await.unwrap();
        }
        if state == "waiting for a lock" {
            stage.direct.batch_execute("begin; update t set n = n where id = 2").await.unwrap();
            let kill = async {
                until("its statement runs", || async {
                    let clients = rows(&console, "show clients").await.unwrap();
                    clients
                        .iter()
                        .any(|row| row[0].as_ref() == Some(&id) && row[7].as_deref() == Some("active"))
                })
                .await;
                console.simple_query(&format!("kill_client {id}")).await.unwrap();
            };
            let (statement, ()) = tokio::join!(client.simple_query("update t set n = 98 where id = 2"), kill);
            statement.unwrap_err();
            stage.direct.batch_execute("rollback").await.unwrap();
        } else {
            console.simple_query(&format!("kill_client {id}")).await.unwrap();
        }
        is_disconnected(&client).await;
    }
    let connected =
        format!("select count(*) from pg_stat_activity where application_name = '{}'", target(&stage));
    until("the transactions are rolled back", async || value(&stage.direct, &connected).await == "0").await;
    assert_eq!(
        value(&other, "update t set n = n + 1 where id = 1 returning n").await,
        "1",
        "others continue"
    );
}

#[tokio::test]
async fn kill_disconnects_all_clients_of_a_database_and_new_ones_wait_for_resume() {
    let stage = Stage::new("", &[]).await;
    let console = stage.console().await;
    let clients = [stage.client().await, stage.client().await];
    clients[0].batch_execute("begin; update t set n = 5 where id = 1").await.unwrap();
    clients[1].simple_query("update t set n = n + 1 where id = 2").await.unwrap();
    let nowhere = console.simple_query("kill nowhere").await.unwrap_err();
    assert_eq!(sqlstate(&nowhere), "3D000");
    console.simple_query("kill postgres").await.unwrap();
    for client in &clients {
        is_disconnected(client).await;
    }
    let config = stage.gateway.config_in(&stage.schema);
    let late = tokio::spawn(async move {
        let client = hotrow_testkit::connect(&config).await;
        value(&client, "select n from t where id = 1").await
    });
    let paused = rows(&console, "show databases").await.unwrap();
    assert_eq!(paused[0][11].as_deref(), Some("1"), "{paused:?}");
    console.simple_query("resume postgres").await.unwrap();
    assert_eq!(late.await.unwrap(), "0", "the transaction was rolled back");
}

#[tokio::test]
async fn the_statement_of_a_killed_client_ends_at_the_server() {
    let stage = Stage::new("", &[]).await;
    let console = stage.console().await;
    for turn in 0..20 {
        let client = stage.client().await;
        let id = process_id(&stage, &client, &console).await;
        let sleep = format!("select pg_sleep(600), 'killed {turn}'");
        let running = "select count(*) from pg_stat_activity where state = 'active' and query like ";
        let running = format!("{running} 'select pg_sleep(600), ''killed {turn}%'");
        let kill = async {
            until("its statement runs", || async { value(&stage.direct, &running).await == "1" }).await;
            match turn % 2 {
                0 => console.simple_query(&format!("kill_client {id}")).await.unwrap(),
                _ => console.simple_query("kill postgres").await.unwrap(),
            };
        };
        let (statement, ()) = tokio::join!(client.simple_query(&sleep), kill);
        statement.unwrap_err();
        until("its statement has ended", || async { value(&stage.direct, &running).await == "0" }).await;
        is_disconnected(&client).await;
        if turn % 2 == 1 {
            console.simple_query("resume postgres").await.unwrap();
        }
    }
}
