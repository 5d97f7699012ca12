//! The setting `hotrow.reads` of a session, what runs on replicas, and what stays on the primary.

use std::time::Duration;

use hotrow_postgres::PrivateServer;
use hotrow_testkit::{Gateway, config, connect, patient, rows, sqlstate};

use crate::{Stage, read};

async fn value(client: &tokio_postgres::Client) -> String {
    rows(client, "show hotrow.reads").await.unwrap()[0][0].clone().unwrap()
}

#[tokio::test]
#[ignore = "long: make test-all"]
async fn the_setting_is_the_gateways_own() {
    let stage = Stage::new(&[]).await;
    let client = connect(&stage.gateway.config()).await;
    assert_eq!(value(&client).await, "primary");
    client.batch_execute("set hotrow.reads = replica").await.unwrap();
    assert_eq!(value(&client).await, "replica");
    let error = client.batch_execute("set hotrow.reads = nearest").await.unwrap_err();
    let error = error.as_db_error().unwrap();
    assert_eq!((error.code().code(), error.hint()), ("22023", Some("Available values: replica, primary.")));
    assert_eq!(value(&client).await, "replica");
    let prepared = client.execute("set hotrow.reads = nearest", &[]).await.unwrap_err();
    assert_eq!(prepared.code().map(|code| code.code()), Some("22023"));
    client.batch_execute("begin; select 1").await.unwrap();
    let within = client.batch_execute("set local hotrow.reads = nearest").await.unwrap_err();
    let within = within.as_db_error().unwrap();
    assert_eq!((within.code().code(), within.hint()), ("22023", Some("Available values: replica, primary.")));
    let failed = client.batch_execute("select 1").await.unwrap_err();
    assert_eq!(failed.code().map(|code| code.code()), Some("25P02"));
    client.batch_execute("rollback").await.unwrap();
    assert_eq!(value(&client).await, "replica");
    for reset in ["reset all", "discard all", "reset hotrow.reads"] {
        client.batch_execute("set hotrow.reads = replica").await.unwrap();
        client.batch_execute(reset).await.unwrap();
        assert_eq!(value(&client).await, "primary", "{reset}");
    }

    let at_start = connect(stage.gateway.config().options("-c hotrow.reads=replica -c work_mem=1MB")).await;
    assert_eq!(value(&at_start).await, "replica");
    assert_eq!(rows(&at_start, "show work_mem").await.unwrap()[0][0].as_deref(), Some("1MB"));
    at_start.batch_execute("set hotrow.reads to primary").await.unwrap();
    at_start.batch_execute("reset hotrow.reads").await.unwrap();
    assert_eq!(value(&at_start).await, "replica", "as at the start");

    let wrong = stage.gateway.config().options("-c hotrow.reads=nearest").clone();
    let Err(error) = wrong.connect(tokio_postgres::NoTls).await else { panic!("the value is wrong") };
    assert_eq!(error.code().map(|code| code.code()), Some("22023"));
}

#[tokio::test]
async fn only_reads_by_key_outside_of_transactions_run_on_replicas() {
    // The read waits until a replica has the client's own update, however busy the machine is.
    let options = ["--replica-wait-ms", "20000", "--replica-lag-max-ms", "86400000"];
    let stage = Stage::new(&patient(&options)).await;
    let client = stage.reader().await;
    let before = stage.replica_reads();
    for text in [
        "begin; select n from item where id = 1; commit",
        "select count(*) from item",
        "select n from item where id = 1 for update",
        "select pg_is_in_recovery()",
        "update item set n = 1 where id = 1 returning n",
    ] {
        client.batch_execute(text).await.unwrap();
    }
    client.batch_execute("begin isolation level repeatable read").await.unwrap();
    read(&client, 1).await;
    client.batch_execute("commit").await.unwrap();
    assert_eq!(stage.replica_reads(), before);
    read(&client, 1).await;
    assert_eq!(stage.replica_reads(), before + 1);
}

#[tokio::test]
#[ignore = "long: make test-all"]
async fn a_replica_with_other_settings_serves_nothing() {
    let stage = Stage::new(&[]).await;
    let client = stage.reader().await;
    let [other, _] = &stage.standbys;
    other.query("alter system set extra_float_digits = 0").unwrap();
    other.query("select pg_reload_conf()").unwrap();
    stage
        .wait_for("it is left out", || async {
            read(&client, 1).await;
            stage.shown().await.iter().any(|shown| shown.state == "other settings than the primary")
        })
        .await;
    // It is asked every 250 ms.
    for _ in 0..100 {
        read(&client, 1).await;
        assert!(stage.serving().await < 2, "its settings are still other ones");
        tokio::time::sleep(Duration::from_millis(10)).await; // four questions come in this time
    }
    other.query("alter system reset extra_float_digits").unwrap();
    other.query("select pg_reload_conf()").unwrap();
    stage
        .wait_for("it serves again", || async {
            read(&client, 1).await;
            stage.serving().await == 2
        })
        .await;
}

/// The gateway answers these modes only if the server is a primary.
#[tokio::test]
#[ignore = "long: make test-all"]
async fn a_standby_refuses_modes_of_transactions_as_directly() {
    let primary = PrivateServer::builder().label("primary").start().unwrap();
    let standby = primary.standby().unwrap();
    let gateway = Gateway::in_front_of(&standby.url(), &[]);
    let (client, direct) = (connect(&gateway.config()).await, connect(&config(standby.port())).await);
    for (begin, refused) in [
        ("begin", false),
        ("begin isolation level repeatable read, read only", false),
        ("begin isolation level serializable", true),
        ("start transaction read write", true),
    ] {
        let mut answers = Vec::new();
        for session in [&direct, &client] {
            answers.push(session.batch_execute(begin).await.map_err(|error| sqlstate(&error).to_owned()));
            session.batch_execute("rollback").await.unwrap();
        }
        assert_eq!(answers[0], answers[1], "{begin}");
        assert_eq!(answers[0].is_err(), refused, "{begin}");
    }
}

#[tokio::test]
#[ignore = "long: make test-all"]
async fn a_table_that_replicas_do_not_have_is_read_from_the_primary() {
    let stage = Stage::new(&[]).await;
    let client = stage.reader().await;
    client
        .batch_execute("create unlogged table here_only (id int primary key, n int); insert into here_only values (1, 5)")
        .await
        .unwrap();
    let before = stage.replica_reads();
    for _ in 0..20 {
        let row = client.query_one("select n from here_only where id = $1", &[&1]).await.unwrap();
        assert_eq!(row.get::<_, i32>(0), 5);
    }
    assert_eq!(stage.replica_reads(), before);
}
