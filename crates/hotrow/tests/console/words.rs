//! The console's commands, by simple and extended queries, by psql, and by messages that no driver sends.

use std::process::Command;

use hotrow_testkit::raw::{Raw, bind, close, describe, execute, parse, sync, tags};
use hotrow_testkit::{connect, needed_tool, rows, sqlstate, try_connect, until, value};

use crate::Stage;

fn fields(row: &[Option<String>]) -> Vec<&str> {
    row.iter().map(|value| value.as_deref().unwrap_or("(null)")).collect()
}

#[tokio::test]
async fn commands_in_any_case_and_several_in_one_text_are_run() {
    let stage = Stage::new("", &[]).await;
    let console = stage.console().await;
    for text in ["SHOW VERSION", "show version;", " Show   Version ; "] {
        assert!(value(&console, text).await.starts_with("hotrow 0."), "{text}");
    }
    let both = rows(&console, "begin; show version; show help").await.unwrap();
    assert_eq!(fields(&both[1])[0], "SHOW KEYS");
    assert!(both.iter().any(|row| fields(row)[0] == "PAUSE [database]"), "{both:?}");
    assert!(rows(&console, "commit").await.unwrap().is_empty());
    assert!(rows(&console, "").await.unwrap().is_empty());
}

#[tokio::test]
async fn an_unknown_command_gets_the_list_of_commands_and_the_session_continues() {
    let stage = Stage::new("", &[]).await;
    let console = stage.console().await;
    for text in ["show tables", "select 1", "SHOW", "pause a b", "reload now", "update t set n = 1"] {
        for error in [console.simple_query(text).await.err(), console.query(text, &[]).await.err()] {
            let error = error.unwrap_or_else(|| panic!("{text} was answered"));
            assert_eq!(sqlstate(&error), "42601", "{text}");
            let hint = error.as_db_error().unwrap().hint().unwrap();
            assert!(
                hint.contains("SHOW KEYS | CLIENTS | LANES | REPLICAS | UNITS | STATEMENTS")
                    && hint.contains("PAUSE"),
                "{hint}"
            );
        }
    }
    let unknown = console.simple_query("pause nowhere").await.unwrap_err();
    assert_eq!(sqlstate(&unknown), "3D000");
    assert!(value(&console, "show version").await.starts_with("hotrow"));
}

#[tokio::test]
async fn drivers_that_prepare_and_request_binary_values_can_read_the_answers() {
    let stage = Stage::new("", &[]).await;
    let client = stage.client().await;
    let console = stage.console().await;
    let statement = console.prepare("show clients").await.unwrap();
    assert!(statement.params().is_empty());
    let columns: Vec<&str> = statement.columns().iter().map(|column| column.name()).collect();
    assert_eq!(columns[..4], ["process_id", "session", "user", "database"]);
    for _ in 0..2 {
        let rows = console.query(&statement, &[]).await.unwrap();
        assert_eq!(rows.len(), 1);
        assert_eq!(rows[0].get::<_, &str>("user"), "postgres");
        assert_eq!(rows[0].get::<_, Option<&str>>("backend_pid"), None);
    }
    assert_eq!(console.execute("SET extra_float_digits = 3", &[]).await.unwrap(), 0);
    drop(client);
}

#[tokio::test]
async fn all_messages_of_the_extended_protocol_are_answered() {
    let stage = Stage::new("", &[]).await;
    let mut raw = Raw::login(stage.gateway.port(), &[("database", "hotrow")]).await;
    let joined = |parts: &[Vec<u8>]| parts.concat();
    raw.send(&joined(&[
        parse("s", "show help"),
        describe(b'S', "s"),
        bind("", "s", &[]),
        describe(b'P', ""),
        execute("", 2),
    ]))
    .await;
    raw.send(&joined(&[execute("", 0), execute("", 0), sync()])).await;
    let replies = raw.until_ready(1).await;
    let reply_tags = tags(&replies);
    assert!(reply_tags.starts_with("1tT2TDDsDDD") && reply_tags.ends_with("DCCZ"), "{reply_tags}");
    raw.send(&joined(&[bind("", "nothing", &[]), execute("", 0), parse("", "show help"), sync()])).await;
    let replies = raw.until_ready(1).await;
    assert_eq!(tags(&replies), "EZ", "messages after an error are ignored up to Sync");
    assert_eq!(replies[0].field(b'C').as_deref(), Some("26000"));
    raw.send(&joined(&[close(b'S', "s"), describe(b'S', "s"), sync()])).await;
    assert_eq!(tags(&raw.until_ready(1).await), "3EZ");
    raw.send(&joined(&[parse("", ""), bind("", "", &[]), describe(b'P', ""), execute("", 0), sync()])).await;
    assert_eq!(tags(&raw.until_ready(1).await), "12nIZ");
    assert_eq!(raw.query("begin").await.last().unwrap().body, b"T");
    assert_eq!(raw.query("rollback").await.last().unwrap().body, b"I");
    assert_eq!(tags(&raw.query("").await), "IZ");
    for index in 0..200 {
        raw.send(&parse(&format!("s{index}"), "show help")).await;
    }
    raw.send(&sync()).await;
    let replies = raw.until_ready(1).await;
    assert_eq!(replies[99].field(b'C').as_deref(), Some("53400"));
    raw.send(b"\xff\0\0\0\x04").await;
    let replies = raw.until_closed().await;
    assert_eq!(replies[0].field(b'C').as_deref(), Some("08P01"));
}

#[tokio::test]
async fn psql_can_read_the_answers() {
    let stage = Stage::new("", &[]).await;
    let psql = needed_tool("psql");
    let port = stage.gateway.port().to_string();
    let run = move || {
        let args =
            ["-h", "127.0.0.1", "-p", &port, "-U", "postgres", "-d", "hotrow", "-At", "-c", "show version;"];
        Command::new(psql).args(args).env("LC_ALL", "C").output().unwrap()
    };
    let output = tokio::task::spawn_blocking(run).await.unwrap();
    assert!(String::from_utf8_lossy(&output.stdout).starts_with("hotrow 0."), "{output:?}");
    assert!(output.stderr.is_empty(), "{output:?}");
}

#[tokio::test]
async fn show_config_shows_the_settings_in_force_and_hides_the_password() {
    let port = hotrow_testkit::server().port();
    let url = format!("postgres://postgres:Geheim@127.0.0.1:{port}/postgres");
    let stage = Stage::in_front_of(&url, "lanes = 3\n[[pool]]\nuser = \"ann\"\nlanes = 1\n", &[]).await;
    let console = stage.console().await;
    let setting = |name: &'static str| {
        let console = &console;
        async move {
            let rows = rows(console, "show config").await.unwrap();
            let row = rows.iter().find(|row| row[0].as_deref() == Some(name)).unwrap().clone();
            fields(&row).into_iter().map(str::to_owned).collect::<Vec<_>>()
        }
    };
    assert_eq!(setting("lanes").await, ["lanes", "3", "4", "with a reload"]);
    assert_eq!(setting("[[pool]]").await[1], "user ann");
    let upstream = setting("upstream").await;
    assert!(upstream[1].contains(&port.to_string()) && !upstream[1].contains("Geheim"), "{upstream:?}");
    std::fs::write(stage.file(), "lanes = 2\nworkers = 5\n").unwrap();
    console.simple_query("reload").await.unwrap();
    assert_eq!(setting("lanes").await[1], "2");
    assert_eq!(setting("workers").await[1..2], ["1"], "the value from the start is in force");
    std::fs::write(stage.file(), "lanes = 0\n").unwrap();
    let error = console.simple_query("reload").await.unwrap_err();
    assert!(error.as_db_error().unwrap().message().contains("hotrow.toml:1: lanes is 0"), "{error:?}");
    assert_eq!(setting("lanes").await[1], "2");
}

#[tokio::test]
async fn shutdown_waits_for_open_transactions() {
    let mut stage = Stage::new("", &[]).await;
    let (console, client) = (stage.console().await, stage.client().await);
    client.batch_execute("begin; update t set n = 7 where id = 1").await.unwrap();
    console.simple_query("SHUTDOWN").await.unwrap();
    until("no client is accepted", || async { try_connect(&stage.gateway.config()).await.is_err() }).await;
    client.batch_execute("commit").await.unwrap();
    assert!(stage.gateway.wait().success());
    assert_eq!(value(&stage.direct, "select n from t where id = 1").await, "7");
}

#[tokio::test]
async fn only_the_database_named_hotrow_is_the_console() {
    let stage = Stage::new("", &[]).await;
    let mut config = stage.gateway.config();
    config.user("nobody_at_the_server").dbname("hotrow");
    assert!(value(&connect(&config).await, "show version").await.starts_with("hotrow"));
    let client = stage.client().await;
    assert_eq!(value(&client, "show server_version_num").await.len(), 6);
}

#[tokio::test]
async fn the_access_file_has_to_name_the_console() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("hba.conf");
    std::fs::write(&file, "host all all 127.0.0.1/32 trust\n").unwrap();
    let stage = Stage::new("", &["--hba-file", file.to_str().unwrap()]).await;
    assert_eq!(value(&stage.client().await, "select 1").await, "1");
    let mut config = stage.gateway.config();
    config.dbname("hotrow");
    let refused = try_connect(&config).await.err().unwrap();
    assert_eq!(sqlstate(&refused), "28000", "`all` does not include the console");
    std::fs::write(&file, "host hotrow ann 127.0.0.1/32 trust\nhost all all 127.0.0.1/32 trust\n").unwrap();
    stage.gateway.signal(nix::sys::signal::Signal::SIGHUP);
    config.user("ann");
    until("the access file is read again", || async { try_connect(&config).await.is_ok() }).await;
    config.user("bob");
    assert_eq!(sqlstate(&try_connect(&config).await.err().unwrap()), "28000");
}
