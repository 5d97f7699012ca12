//! Changes of the server's own configuration while clients are connected: the gateway asks the server again.

use std::time::Instant;

use hotrow_postgres::PrivateServer;
use hotrow_testkit::raw::{Message, Raw, tags};
use hotrow_testkit::{Gateway, PATIENCE, PATIENT_LANES, config, connect, until, value};
use tokio_postgres::{Client, NoTls};

/// A backslash and a letter, or one character, depending on the server's configuration.
const UPDATE: &str = r"update t set v = 'a\tb' where id = 1 returning length(v)";

async fn set(direct: &Client, setting: &str) {
    direct.batch_execute(&format!("alter system set {setting}")).await.unwrap();
    direct.batch_execute("select pg_reload_conf()").await.unwrap();
}

/// The value of a setting that is reported to a new client.
async fn reported(gateway: &Gateway, setting: &str) -> String {
    let (_client, connection) = gateway.config().connect(NoTls).await.unwrap();
    connection.parameter(setting).unwrap_or_default().to_owned()
}

async fn stage(label: &'static str) -> (PrivateServer, Client, Gateway) {
    let start = move || PrivateServer::builder().label(label).start().unwrap();
    let server = tokio::task::spawn_blocking(start).await.unwrap();
    let direct = connect(&config(server.port())).await;
    direct
        .batch_execute("create table t (id int primary key, v text); insert into t values (1, '')")
        .await
        .unwrap();
    let gateway = Gateway::in_front_of(&server.url(), &PATIENT_LANES);
    (server, direct, gateway)
}

#[tokio::test]
async fn literals_are_read_by_the_reloaded_configuration() {
    let (_server, direct, gateway) = stage("confliteral").await;
    let client = connect(&gateway.config()).await;
    for _ in 0..3 {
        assert_eq!(value(&client, UPDATE).await, "4");
    }
    assert!(gateway.metric("packed_units_total") > 0);
    set(&direct, "standard_conforming_strings = off").await;
    until("a backslash is an escape", || async { value(&client, UPDATE).await == "3" }).await;
    let packed = gateway.metric("packed_units_total");
    for _ in 0..3 {
        assert_eq!(value(&client, UPDATE).await, "3");
    }
    assert_eq!(gateway.metric("packed_units_total"), packed, "nothing is packed");
    assert_eq!(value(&client, "show hotrow.pack").await, "off");
    set(&direct, "standard_conforming_strings = on").await;
    until("a backslash is a character", || async {
        drop(connect(&gateway.config()).await); // no lane exists that could notice
        value(&client, UPDATE).await == "4" && gateway.metric("packed_units_total") > packed
    })
    .await;
}

#[tokio::test]
async fn new_clients_get_the_reloaded_configuration() {
    let (_server, direct, gateway) = stage("confparameters").await;
    assert_eq!(reported(&gateway, "DateStyle").await, "ISO, MDY");
    for (setting, wanted) in [("datestyle = 'SQL, DMY'", "SQL, DMY"), ("datestyle = 'ISO, DMY'", "ISO, DMY")]
    {
        set(&direct, setting).await;
        until("a new client gets the value", || async { reported(&gateway, "DateStyle").await == wanted })
            .await;
    }
}

#[tokio::test]
async fn a_client_of_lanes_gets_changed_parameters() {
    let (_server, direct, gateway) = stage("confclients").await;
    let mut client = Raw::login(gateway.port(), &[]).await;
    let is_status = |message: &&Message| message.tag == b'S';
    for _ in 0..3 {
        assert_eq!(client.query(UPDATE).await.iter().filter(is_status).count(), 0);
    }
    assert!(gateway.metric("packed_units_total") > 0);
    set(&direct, "datestyle = 'SQL, DMY'").await;
    let deadline = Instant::now() + PATIENCE;
    let status = loop {
        assert!(Instant::now() < deadline, "no change was reported");
        let replies = client.query(UPDATE).await;
        let tags: Vec<_> =
            replies.iter().map(|message| char::from(message.tag)).filter(|tag| *tag != 'S').collect();
        assert_eq!(tags, ['T', 'D', 'C', 'Z']);
        if let Some(status) = replies.iter().find(is_status) {
            break status.clone();
        }
    };
    assert_eq!(status.body, b"DateStyle\0SQL, DMY\0");
    until("lanes work again", || async {
        let before = gateway.metric("packed_units_total");
        let again = connect(&gateway.config()).await;
        value(&again, UPDATE).await;
        gateway.metric("packed_units_total") > before
    })
    .await;
    let replies = client.query(UPDATE).await;
    let again: Vec<_> =
        replies.iter().filter(is_status).map(|message| String::from_utf8_lossy(&message.body)).collect();
    assert_eq!(again, [""; 0], "the change is reported once");
}

/// The settings that the server or the gateway reports in these replies.
fn statuses(replies: Vec<Message>) -> Vec<String> {
    let statuses = replies.into_iter().filter(|message| message.tag == b'S');
    statuses.map(|message| String::from_utf8_lossy(&message.body).into_owned()).collect()
}

#[tokio::test]
#[ignore = "long: make test-all"]
async fn a_change_that_another_clients_connection_has_reported_is_reported_with_that_connection() {
    let (_server, direct, gateway) = stage("confother").await;
    let (mut client, mut other) =
        (Raw::login(gateway.port(), &[]).await, Raw::login(gateway.port(), &[]).await);
    for client in [&mut client, &mut other] {
        client.query("select txid_current()").await;
    }
    set(&direct, "datestyle = 'SQL, DMY'").await;
    let deadline = Instant::now() + PATIENCE;
    while statuses(other.query("select txid_current()").await).is_empty() {
        assert!(Instant::now() < deadline, "the server does not report the change");
    }
    let mut told = statuses(client.query("begin").await);
    told.extend(statuses(client.query("select txid_current()").await));
    assert_eq!(told, ["DateStyle\0SQL, DMY\0"]);
}

#[tokio::test]
async fn a_change_that_the_clients_own_connection_reports_is_not_reported_again() {
    let (_server, direct, gateway) = stage("confheld").await;
    let mut client = Raw::login(gateway.port(), &[]).await;
    client.query("begin").await;
    client.query("select txid_current()").await;
    set(&direct, "datestyle = 'SQL, DMY'").await;
    let deadline = Instant::now() + PATIENCE;
    let mut told = Vec::new();
    while told.is_empty() {
        assert!(Instant::now() < deadline, "the server does not report the change");
        told.extend(statuses(client.query("select 1").await));
    }
    client.query("commit").await;
    until("the gateway knows of the change", || async {
        reported(&gateway, "DateStyle").await == "SQL, DMY"
    })
    .await;
    let packed = gateway.metric("packed_units_total");
    while gateway.metric("packed_units_total") == packed {
        assert!(Instant::now() < deadline, "nothing is packed");
        told.extend(statuses(client.query(UPDATE).await));
    }
    assert_eq!(told, ["DateStyle\0SQL, DMY\0"]);
}

#[tokio::test]
async fn an_isolation_level_that_prevents_packing_is_noticed_at_the_next_login() {
    let (_server, direct, gateway) = stage("confisolation").await;
    let client = connect(&gateway.config()).await;
    assert_eq!(value(&client, "show hotrow.pack").await, "on");
    set(&direct, "default_transaction_isolation = 'repeatable read'").await;
    until("nothing is packed", || async {
        drop(connect(&gateway.config()).await);
        value(&client, "show hotrow.pack").await == "off"
    })
    .await;
    assert_eq!(value(&client, "show transaction_isolation").await, "repeatable read");
}

#[tokio::test]
async fn a_warning_that_the_reloaded_configuration_hides_is_not_repeated() {
    let start = || PrivateServer::builder().label("confwarning").start().unwrap();
    let server = tokio::task::spawn_blocking(start).await.unwrap();
    let direct = connect(&config(server.port())).await;
    let gateway = Gateway::in_front_of(&server.url(), &["--catalog-age-ms", "100"]);
    let mut client = Raw::login(gateway.port(), &[]).await;
    for _ in 0..10 {
        assert_eq!(tags(&client.query("rollback").await), "NCZ");
    }
    for (level, expected) in [("error", "CZ"), ("warning", "NCZ")] {
        set(&direct, &format!("client_min_messages = {level}")).await;
        let deadline = Instant::now() + PATIENCE;
        while tags(&client.query("rollback").await) != expected {
            assert!(Instant::now() < deadline, "the earlier reply is repeated");
        }
    }
}
