//! The client's name, `application_name`: the name from login or the last one that was set, after RESET too, and never
//! another client's.

use hotrow_testkit::raw::{Message, Raw, bind, execute, parse, query, startup, sync};
use hotrow_testkit::{connect, server, value};

use crate::Stage;

/// The names that these replies report to the client.
fn reported(replies: &[Message]) -> Vec<String> {
    let of_name = |message: &&Message| message.tag == b'S' && message.body.starts_with(b"application_name\0");
    let value = |message: &Message| {
        String::from_utf8_lossy(message.body.split(|byte| *byte == 0).nth(1).unwrap_or_default()).into_owned()
    };
    replies.iter().filter(of_name).map(value).collect()
}

async fn shown(raw: &mut Raw) -> String {
    let replies = raw.query("show application_name").await;
    String::from_utf8_lossy(replies[1].values()[0].as_deref().unwrap_or_default()).into_owned()
}

/// A login with these parameters, directly or through the gateway, and the names that the replies report.
async fn begin(port: u16, parameters: &[(&str, &str)]) -> (Raw, Vec<String>) {
    let mut raw = Raw::open(port).await;
    raw.send(&startup(
        0x0003_0000,
        &[&[("user", "postgres"), ("database", "postgres")], parameters].concat(),
    ))
    .await;
    let replies = raw.until_ready(1).await;
    (raw, reported(&replies))
}

#[tokio::test]
async fn a_reset_restores_the_clients_own_name() {
    let stage = Stage::new(&[]).await;
    for own in [&[("application_name", "own")][..], &[("options", "-c application_name=own")], &[]] {
        for reset in [
            "reset application_name",
            "set application_name to default",
            "set session application_name = DEFAULT",
            "reset all",
            "discard all",
        ] {
            let mut both = Vec::new();
            for port in [server().port(), stage.gateway.port()] {
                let (mut other, _) = begin(port, &[("application_name", "secret")]).await;
                other.query("begin; select 1").await;
                let (mut raw, mut seen) = begin(port, own).await;
                other.query("commit").await;
                for text in ["set application_name = 'given'", reset, "begin", "commit"] {
                    seen.extend(reported(&raw.query(text).await));
                    seen.push(shown(&mut raw).await);
                }
                if reset != "discard all" {
                    let block = [
                        "begin",
                        "set application_name = 'given'",
                        reset,
                        "rollback",
                        "begin",
                        reset,
                        "commit",
                    ];
                    for text in block {
                        seen.extend(reported(&raw.query(text).await));
                        seen.push(shown(&mut raw).await);
                    }
                }
                both.push(seen);
            }
            assert_eq!(both[1], both[0], "{own:?} {reset}");
        }
    }
}

#[tokio::test]
async fn statements_sent_after_a_reset_without_waiting_see_the_clients_own_name() {
    let stage = Stage::new(&[]).await;
    let (mut other, _) = begin(stage.gateway.port(), &[("application_name", "secret")]).await;
    other.query("begin; select 1").await;
    let (mut raw, _) = begin(stage.gateway.port(), &[("application_name", "own")]).await;
    other.query("commit").await;
    let texts = ["begin", "reset application_name", "show application_name", "commit"];
    raw.send(&texts.map(query).concat()).await;
    let replies = raw.until_ready(texts.len()).await;
    let row = replies.iter().find(|message| message.tag == b'D').unwrap();
    assert_eq!(row.values(), [Some(b"own".to_vec())]);
    assert_eq!(reported(&replies), Vec::<String>::new(), "the name has not changed");
    let replies = raw.query("reset application_name; show application_name").await;
    let row = replies.iter().find(|message| message.tag == b'D').unwrap();
    assert_eq!(
        row.values(),
        [Some(b"".to_vec())],
        "restored only at the end of one text: see docs/differences.md"
    );
    assert_eq!(shown(&mut raw).await, "own");
}

#[tokio::test]
async fn names_are_reported_as_the_server_stores_them() {
    let stage = Stage::new(&[]).await;
    let role = format!("{}_named", stage.schema);
    let sql = format!("create role {role} login; alter role {role} set application_name = 'by role'");
    stage.direct.batch_execute(&sql).await.unwrap();
    let long = "n".repeat(65);
    for (parameters, expected) in [
        (vec![("application_name", long.as_str())], &long[..63]),
        (vec![("APPLICATION_NAME", "upper")], "upper"),
        (vec![("application_name", "one"), ("Application_Name", "two")], "two"),
        (vec![("options", "-c application_name=options"), ("application_name", "packet")], "packet"),
        (vec![("user", role.as_str())], "by role"),
        (vec![("user", role.as_str()), ("application_name", "mine")], "mine"),
        (vec![("user", role.as_str()), ("application_name", "")], ""),
    ] {
        for port in [server().port(), stage.gateway.port()] {
            let (mut raw, reported) = begin(port, &parameters).await;
            assert_eq!(reported, [expected], "{parameters:?}");
            assert_eq!(shown(&mut raw).await, expected, "{parameters:?}");
        }
    }
    let strange = [("application_name", "h\u{e9}\u{1}")];
    let (direct, through) =
        (begin(server().port(), &strange).await, begin(stage.gateway.port(), &strange).await);
    assert_eq!(through.1, direct.1);
}

#[tokio::test]
async fn a_client_that_resets_its_name_is_packed() {
    let stage = Stage::new(&[]).await;
    let client = connect(stage.gateway.config_in(&stage.schema).application_name("own")).await;
    for reset in ["set application_name to default", "reset application_name", "discard all"] {
        client.batch_execute("set application_name = 'given'").await.unwrap();
        client.batch_execute(reset).await.unwrap();
        assert!(stage.packs(&client).await, "{reset}");
        assert_eq!(value(&client, "show application_name").await, "own");
    }
}

/// The gateway restores the name within the transaction.
#[tokio::test]
async fn a_name_that_is_restored_in_a_transaction_leaves_its_portal() {
    let stage = Stage::new(&[]).await;
    let by_name =
        |text| [parse("reset", text), bind("reset", "reset", &[]), execute("reset", 0), sync()].concat();
    for own in ["own", r"o'w\n"] {
        for reset in ["reset application_name", "set application_name to default", "reset all"] {
            let mut both = Vec::new();
            for port in [server().port(), stage.gateway.port()] {
                let (mut raw, _) = begin(port, &[("application_name", own)]).await;
                let rows =
                    [parse("", "select generate_series(1, 9)"), bind("", "", &[]), execute("", 1), sync()];
                let mut seen = Vec::new();
                for messages in [
                    query("begin"),
                    rows.concat(),
                    by_name(reset),
                    [execute("", 2), sync()].concat(),
                    query("show application_name"),
                    query("commit"),
                    query("begin"),
                    query(reset),
                    query("set transaction isolation level repeatable read"),
                    query("show application_name"),
                    query("commit"),
                ] {
                    raw.send(&messages).await;
                    seen.extend(raw.until_ready(1).await);
                }
                both.push(seen);
            }
            assert_eq!(both[1], both[0], "{own} {reset}");
        }
    }
}

#[tokio::test]
async fn a_name_that_is_restored_in_a_transaction_takes_no_snapshot() {
    let stage = Stage::new(&[]).await;
    let client = stage.named("own").await;
    for reset in ["reset application_name", "reset all"] {
        client.batch_execute("begin isolation level repeatable read").await.unwrap();
        client.batch_execute(reset).await.unwrap();
        let table = format!("{}.t", stage.schema);
        stage.direct.batch_execute(&format!("update {table} set n = n + 1 where id = 1")).await.unwrap();
        let same = format!("select n::text from {table} where id = 1");
        assert_eq!(value(&client, &same).await, value(&stage.direct, &same).await, "{reset}");
        client.batch_execute("commit").await.unwrap();
    }
}
