//! Access to the console: administrators may run everything, readers may run SHOW, other users are rejected.

use hotrow_testkit::raw::{Raw, startup, tags};
use hotrow_testkit::{connect, server, sqlstate, try_connect, value};
use tokio_postgres::Client;

use crate::Stage;

const COMMANDS: [&str; 7] = [
    "pause nowhere",
    "resume nowhere",
    "reconnect nowhere",
    "kill nowhere",
    "kill_client 1",
    "reload",
    "shutdown",
];

async fn console(stage: &Stage, user: &str) -> Result<Client, tokio_postgres::Error> {
    try_connect(stage.gateway.config().user(user).dbname("hotrow")).await
}

async fn may_only_read(client: &Client) {
    assert!(value(client, "show version").await.starts_with("hotrow 0."));
    for command in COMMANDS {
        for error in [client.simple_query(command).await.err(), client.query(command, &[]).await.err()] {
            let error = error.unwrap_or_else(|| panic!("{command} was carried out"));
            assert_eq!(sqlstate(&error), "42501", "{command}: {error:?}");
            assert!(error.as_db_error().unwrap().hint().unwrap().contains("console_admins"), "{error:?}");
        }
    }
    assert!(value(client, "show version").await.starts_with("hotrow 0."), "the session continues");
}

#[tokio::test]
async fn other_local_users_may_read_and_the_gateways_own_user_may_run_commands() {
    let stage = Stage::new("", &[]).await;
    may_only_read(&console(&stage, "ann").await.unwrap()).await;
    let own = console(&stage, "postgres").await.unwrap();
    own.simple_query("reload").await.unwrap();
    let error = own.simple_query("pause nowhere").await.unwrap_err();
    assert_eq!(sqlstate(&error), "3D000", "the user has the right, and the database does not exist");
}

#[tokio::test]
async fn the_settings_name_other_users_and_a_reload_changes_them() {
    let stage = Stage::new("console_admins = \"ann\"\nconsole_readers = \"bob, carl\"\n", &[]).await;
    let ann = console(&stage, "ann").await.unwrap();
    let carl = console(&stage, "carl").await.unwrap();
    may_only_read(&carl).await;
    for user in ["postgres", "dora"] {
        let error = console(&stage, user).await.err().unwrap_or_else(|| panic!("{user} was let in"));
        assert_eq!(sqlstate(&error), "42501");
        let hint = error.as_db_error().unwrap().hint().unwrap();
        assert!(hint.contains("console_readers") && hint.contains("database"), "{hint}");
    }
    stage.reload("console_admins = \"carl\"\n").await;
    carl.simple_query("reload").await.unwrap();
    let error = ann.simple_query("reload").await.unwrap_err();
    assert_eq!(sqlstate(&error), "42501", "the right is checked for each command");
}

/// libpq sends the user's name as the database, as most drivers do. A client that sends no database means one of the
/// server.
#[tokio::test]
async fn a_user_named_like_the_console_reaches_it_only_by_naming_the_database() {
    let stage = Stage::new("", &[]).await;
    stage.direct.batch_execute("create role hotrow superuser login").await.unwrap();
    stage.direct.simple_query("create database hotrow").await.unwrap();
    for start in [&[("user", "hotrow")][..], &[("user", "hotrow"), ("database", "")]] {
        for port in [server().port(), stage.gateway.port()] {
            let mut raw = Raw::open(port).await;
            raw.send(&startup(0x0003_0000, start)).await;
            raw.until_ready(1).await;
            let replies = raw.query("select current_database()").await;
            assert_eq!(replies[1].values(), [Some(b"hotrow".to_vec())], "{start:?}");
        }
    }
    let console = connect(stage.gateway.config().user("hotrow").dbname("hotrow")).await;
    assert!(value(&console, "show version").await.starts_with("hotrow 0."));
    stage.direct.simple_query("drop database hotrow with (force)").await.unwrap();
    stage.direct.batch_execute("drop role hotrow").await.unwrap();
}

#[tokio::test]
async fn a_function_call_message_is_rejected_and_answered_completely() {
    let stage = Stage::new("", &[]).await;
    let mut raw = Raw::login(stage.gateway.port(), &[("database", "hotrow")]).await;
    raw.send(b"F\0\0\0\x0e\0\0\0\x01\0\0\0\0\0\0").await;
    assert_eq!(tags(&raw.until_ready(1).await), "EZ");
    assert_eq!(tags(&raw.query("show version").await), "TDCZ");
}
