//! SETs that the gateway answers, because the server has run the same text before: what the session finds, and what its client
//! is told, is what the server would do now.

use std::time::Duration;

use hotrow_postgres::PrivateServer;
use hotrow_testkit::raw::{Raw, bind, execute, parse, query, sync};
use hotrow_testkit::{Gateway, PATIENT_LANES, connect, server, until};

use crate::settings::{UPDATE, databases, session, session_of};

/// The first statements of frameworks, some with several in one text. The gateway sends them to the server once and answers
/// later sessions itself, with the same reports of changed parameters.
#[tokio::test]
async fn sets_that_another_session_has_sent_need_no_connection() {
    let rails = [
        "SET client_min_messages TO 'warning'",
        "SET standard_conforming_strings = on",
        "SET intervalstyle = iso_8601",
        "SET SESSION timezone TO 'Asia/Tokyo'",
    ];
    let laravel = ["set names 'utf8'", "set time zone 'Asia/Tokyo'", "set search_path to \"public\""];
    let sequelize = "SET standard_conforming_strings=off; SET client_min_messages TO warning; \
                     SET TIME ZONE INTERVAL '+03:00' HOUR TO MINUTE";
    let (_client, [direct, through]) = databases().await;
    let gateway = Gateway::start(&PATIENT_LANES);
    for start in [&rails[..], &laravel, &[sequelize], &["set intervalstyle = sql_standard; selct"]] {
        for round in 0..4 {
            let passed = gateway.metric("passed_through_units_total");
            let mut both = [session(server().port(), &direct).await, session(gateway.port(), &through).await];
            let extended = round == 3 && start.len() > 1;
            for text in start {
                let messages = match extended {
                    true => [parse("", text), bind("", "", &[]), execute("", 0), sync()].concat(),
                    false => query(text),
                };
                let mut answers = Vec::new();
                for raw in &mut both {
                    raw.send(&messages).await;
                    answers.push(raw.until_ready(1).await);
                }
                assert_eq!(answers[1], answers[0], "round {round}: {text}");
            }
            let passed = gateway.metric("passed_through_units_total") - passed;
            let is_known = round > 0 && !extended && !start[0].contains("selct");
            assert!(passed == 0 || !is_known, "{passed} units pass in round {round}: {start:?}");
            let shows = ["client_min_messages", "standard_conforming_strings", "intervalstyle", "timezone"];
            let shows = shows.iter().chain(&["search_path", "client_encoding"]);
            for text in shows.map(|name| format!("show {name}")).chain([UPDATE.to_owned()]) {
                let [directly, through] = both.each_mut().map(|raw| raw.query(&text));
                assert_eq!(through.await, directly.await, "round {round}, {start:?}: {text}");
            }
        }
    }
}

/// A reload of the server's configuration changes the settings that a session has not set itself, and no others.
#[tokio::test]
async fn a_set_to_the_servers_default_outlives_a_change_of_the_default() {
    let server = PrivateServer::builder().label("reload").start().unwrap();
    let gateway = Gateway::in_front_of(&server.url(), &[]);
    let mut direct = session(server.port(), "postgres").await;
    let mut default = session(gateway.port(), "postgres").await;
    let mut own = session(gateway.port(), "postgres").await;
    let work_mem = async |session: &mut Raw| shown(session, "work_mem").await;
    for _ in 0..3 {
        default.query("set work_mem = '4MB'").await; // the server's default
        own.query("set work_mem = '5MB'").await;
    }
    direct.query("alter system set work_mem = '8MB'").await;
    direct.query("select pg_reload_conf()").await;
    until("the server has read its configuration", async || {
        work_mem(&mut session(server.port(), "postgres").await).await == b"8MB"
    })
    .await;
    assert_eq!(work_mem(&mut default).await, b"4MB", "the session has set it");
    default.query("set work_mem = '4MB'").await;
    assert_eq!(work_mem(&mut default).await, b"4MB", "the value is no longer the default");
    let mut newer = session(gateway.port(), "postgres").await;
    newer.query("set work_mem = '4MB'").await;
    assert_eq!(work_mem(&mut newer).await, b"4MB", "another session has the same settings");
    own.query("set work_mem = '5MB'").await;
    assert_eq!(work_mem(&mut own).await, b"5MB");
}

/// Texts whose outcome depends on settings that the pool has from the server's configuration are not known.
#[tokio::test]
async fn a_text_that_other_settings_decide_about_goes_to_the_server() {
    let server = PrivateServer::builder().label("texts").start().unwrap();
    let gateway = Gateway::in_front_of(&server.url(), &[]);
    let texts = [
        r"set search_path = 'a\\b', 'c'",
        r"set jit = off; set search_path = 'a\'",
        "set time zone interval '-3 hours 30 minutes'",
        "set time zone interval '-03:30' hour to minute",
    ];
    let other = connect(&hotrow_testkit::config_in(server.port(), "public")).await;
    for style in ["postgres", "sql_standard"] {
        let change = format!("alter system set intervalstyle = {style}");
        other.batch_execute(&change).await.unwrap();
        other.batch_execute("select pg_reload_conf()").await.unwrap();
        for port in [server.port(), gateway.port()] {
            until("new sessions have the changed defaults", async || {
                shown(&mut session(port, "postgres").await, "intervalstyle").await == style.as_bytes()
            })
            .await;
        }
        for text in texts.iter().cycle().take(2 * texts.len()) {
            let mut answers = Vec::new();
            for port in [server.port(), gateway.port()] {
                let mut raw = session(port, "postgres").await;
                let mut answer = raw.query(text).await;
                answer.retain(|message| message.tag != b'S'); // the gateway may tell a change of the configuration late
                answers.push((
                    answer,
                    shown(&mut raw, "timezone").await,
                    shown(&mut raw, "search_path").await,
                ));
            }
            assert_eq!(answers[1], answers[0], "{text} under {style}");
        }
        // The second round has another meaning of backslashes too.
        other.batch_execute("alter system set standard_conforming_strings = off").await.unwrap();
    }
}

/// The value of a setting.
async fn shown(raw: &mut Raw, name: &str) -> Vec<u8> {
    let answer = raw.query(&format!("show {name}")).await;
    let row = answer.iter().find(|message| message.tag == b'D').expect("a row");
    row.values().remove(0).expect("a value")
}

/// A client that logs in after a change of the server's configuration is not told the former values when it enters a pool.
#[tokio::test]
async fn a_session_that_enters_a_pool_is_told_no_former_value() {
    let server = PrivateServer::builder().label("told").start().unwrap();
    let gateway = Gateway::in_front_of(&server.url(), &[]);
    let (set, change) = ("set work_mem = '61MB'", "alter system set timezone = 'Asia/Tokyo'");
    for _ in 0..2 {
        session(gateway.port(), "postgres").await.query(set).await;
    }
    let other = connect(&hotrow_testkit::config_in(server.port(), "public")).await;
    other.batch_execute(change).await.unwrap();
    other.batch_execute("select pg_reload_conf()").await.unwrap();
    until("new sessions have the changed default", async || {
        shown(&mut session(gateway.port(), "postgres").await, "timezone").await == b"Asia/Tokyo"
    })
    .await;
    let mut raw = session(gateway.port(), "postgres").await;
    for text in [set, "select 1", "select 1", "show timezone"] {
        let told = raw.query(text).await.into_iter().filter(|message| message.tag == b'S');
        for message in told {
            assert!(message.body.ends_with(b"\0Asia/Tokyo\0"), "{text}: {message:?}");
        }
    }
}

/// A pool that a session enters knows what has changed for its role since.
#[tokio::test]
#[ignore = "long: make test-all"]
async fn a_role_that_becomes_serializable_is_not_packed_in_a_pool_that_it_enters() {
    let server = PrivateServer::builder().label("strict").start().unwrap();
    let gateway = Gateway::in_front_of(&server.url(), &PATIENT_LANES);
    let other = connect(&hotrow_testkit::config_in(server.port(), "public")).await;
    other
        .batch_execute("create role strict login; create table u (id int primary key, n int); insert into u values (1, 0); grant all on u to strict")
        .await
        .unwrap();
    let update = "update u set n = n + 1 where id = 1";
    let texts = ["set jit = off", update, update, update, update];
    let packed = async || {
        let before = gateway.metric("packed_units_total");
        let mut raw = session_of(gateway.port(), "postgres", "strict").await;
        for text in texts {
            assert_eq!(raw.query(text).await[0].tag, b'C', "{text}");
        }
        gateway.metric("packed_units_total") - before
    };
    until("updates are packed", async || packed().await == 4).await;
    // The checks of earlier logins are over before the change, and the last one is not recent after it.
    let checked = || tokio::time::sleep(Duration::from_millis(2 * hotrow_core::limits::LOGIN_AGE_MS));
    checked().await;
    let change = "alter role strict set default_transaction_isolation = 'serializable'";
    other.batch_execute(change).await.unwrap();
    checked().await;
    assert_eq!(packed().await, 0);
}

/// The modes of a transaction that is over are no settings of the session, although the server lists them.
#[tokio::test]
async fn the_modes_of_a_former_transaction_are_in_no_pool() {
    let server = PrivateServer::builder().label("modes").start().unwrap();
    let gateway = Gateway::in_front_of(&server.url(), &[]);
    let mut raw = session(gateway.port(), "postgres").await;
    for text in [
        "begin",
        "set transaction isolation level serializable",
        "select 1",
        "commit",
        "set session characteristics as transaction isolation level serializable",
        "set work_mem = '5MB'",
    ] {
        raw.query(text).await;
    }
    // The pool has to open another connection.
    session(gateway.port(), "hotrow").await.query("reconnect").await;
    let raw = tokio::sync::Mutex::new(raw);
    until("the session gets another connection", async || {
        let answer = raw.lock().await.query("show transaction_isolation").await;
        answer.iter().any(|message| message.tag == b'D' && message.body.ends_with(b"serializable"))
    })
    .await;
}

/// The server keeps the setting as one of the session although it has been reset, and the next client has the connection.
#[tokio::test]
async fn a_reset_before_a_set_local_leaves_no_setting_of_the_session() {
    let gateway = Gateway::start(&["--held-connections-max", "1"]);
    let mut first = session(gateway.port(), "postgres").await;
    for _ in 0..3 {
        first.query("reset work_mem").await;
    }
    for (reset, is_pipelined) in
        [("reset work_mem", false), ("reset all", false), ("reset work_mem", true), ("reset all", true)]
    {
        let texts = ["begin", "set local work_mem = default", reset, "set local work_mem = '1MB'", "commit"];
        let messages = texts.map(query);
        if is_pipelined {
            first.send(&messages.concat()).await;
            first.until_ready(texts.len()).await;
        } else {
            for message in &messages {
                first.send(message).await;
                first.until_ready(1).await;
            }
        }
        let mut second = session(gateway.port(), "postgres").await;
        second.query("begin").await;
        let source = second.query("select source from pg_settings where name = 'work_mem'").await;
        let source = source[1].values()[0].clone();
        assert_eq!(source.as_deref(), Some(&b"default"[..]), "{reset}, in one write: {is_pipelined}");
        second.query("commit").await;
    }
}
