//! Broken messages after a successful login: 08P01 and the connection is closed, or the server's error if the server
//! reads the broken part.

use hotrow_testkit::raw::{Message, Raw, bind, execute, frame, parse, query, sync, tags};
use hotrow_testkit::{connect, describe, server};

use crate::bad_input::Stage;

/// The last message before the connection is closed.
async fn last_message(raw: &mut Raw) -> Message {
    raw.until_closed().await.pop().expect("an error before the end")
}

#[tokio::test]
async fn invalid_frames_close_the_connection_with_a_reason() {
    let stage = Stage::new(&["--message-bytes-max", "70000"]).await;
    let header = |tag: u8, length: u32| [&[tag][..], &length.to_be_bytes()].concat();
    let broken_bind =
        |body: &[u8]| [parse("", "update t set n = $1 where id = 1"), frame(b'B', body), sync()].concat();
    let cases = [
        ("an unknown tag", frame(b'y', b"what")),
        ("a server's tag", frame(b'Z', b"I")),
        ("a zero byte", vec![0, 0, 0, 0, 4]),
        ("a length that is too short for itself", header(b'Q', 3)),
        ("a length of 0", header(b'S', 0)),
        ("2 GB", header(b'Q', 0x7fff_ffff)),
        ("a negative length", header(b'P', 0xffff_ffff)),
        ("more than is allowed", header(b'Q', 80_000)),
        ("a large Sync", header(b'S', 20_000)),
        ("a large Execute", header(b'E', 20_000)),
        ("a Query without end", frame(b'Q', b"select 1")),
        ("a Query with bytes after its end", frame(b'Q', b"select 1\0more")),
        ("an empty Parse", [frame(b'P', b""), sync()].concat()),
        ("a Parse with missing types", [frame(b'P', b"\0select 1\0\0\x05"), sync()].concat()),
        ("an empty Bind", broken_bind(b"")),
        ("a Bind with fewer values than announced", broken_bind(b"\0\0\0\0\0\x02\0\0\0\x011\0\0")),
        ("a Bind with a value longer than itself", broken_bind(b"\0\0\0\0\0\x01\0\0\xff\xff1\0\0")),
        ("a Bind with a length below -1", broken_bind(b"\0\0\0\0\0\x01\xff\xff\xff\xfe\0\0")),
        ("a Bind with bytes after its end", broken_bind(b"\0\0\0\0\0\x01\0\0\0\x011\0\0more")),
        ("a Describe of neither", [frame(b'D', b"X\0"), sync()].concat()),
        ("a Close of neither", [frame(b'C', b"X\0"), sync()].concat()),
        (
            "an Execute without a row limit",
            [parse("", "select 1"), bind("", "", &[]), frame(b'E', b"\0"), sync()].concat(),
        ),
    ];
    for (what, bytes) in cases {
        let mut raw = stage.raw().await;
        raw.send(&bytes).await;
        let error = last_message(&mut raw).await;
        assert_eq!(
            (error.tag, error.field(b'V'), error.field(b'C')),
            (b'E', Some("FATAL".into()), Some("08P01".into())),
            "{what}: {error:?}"
        );
        assert!(!error.field(b'M').unwrap().is_empty() && error.field(b'H').is_some(), "{what}: {error:?}");
        stage.others_are_unaffected(what).await;
    }
}

#[tokio::test]
async fn pending_answers_are_sent_before_the_reason() {
    let stage = Stage::new(&[]).await;
    let mut raw = stage.raw().await;
    let update = query("update t set n = n + 1 where id = 2 returning n");
    raw.send(&[update.clone(), update, query("select 7"), frame(b'y', b"")].concat()).await;
    assert_eq!(tags(&raw.until_closed().await), "TDCZTDCZTDCZE");
}

#[tokio::test]
async fn statements_before_a_message_that_cannot_be_read_are_run_and_answered() {
    let stage = Stage::new(&[]).await;
    let passed = "update t set n = n + 1 where id = 1 and pg_sleep(0.05) is not null";
    for head in [query(passed), [parse("", passed), bind("", "", &[]), execute("", 0), sync()].concat()] {
        let before: i32 =
            hotrow_testkit::value(&stage.direct, "select n from t where id = 1").await.parse().unwrap();
        let mut raw = stage.raw().await;
        raw.send(&[head, frame(b'y', b"what")].concat()).await;
        let replies = raw.until_closed().await;
        let tags = tags(&replies);
        assert!(tags.ends_with("CZE"), "{replies:?}");
        let after = hotrow_testkit::value(&stage.direct, "select n from t where id = 1").await;
        assert_eq!(after, (before + 1).to_string());
    }
}

#[tokio::test]
async fn a_password_message_after_the_login_closes_the_connection_as_on_the_server() {
    let stage = Stage::new(&[]).await;
    let password = frame(b'p', b"secret\0");
    let update = query("update t set n = n + 0 where id = 2 returning n");
    let cases = [
        ("alone", password.clone()),
        ("after a query", [update, password.clone()].concat()),
        ("after a Parse", [parse("", "select 1"), password.clone()].concat()),
        ("in a transaction", [query("begin"), password.clone()].concat()),
        ("after an error, before the Sync", [parse("", "select"), bind("", "", &[]), password].concat()),
    ];
    for (what, bytes) in cases {
        let mut seen = Vec::new();
        for port in [server().port(), stage.gateway.port()] {
            let mut raw = Raw::login(port, &[("options", &format!("-c search_path={}", stage.schema))]).await;
            raw.send(&bytes).await;
            let messages = raw.until_closed().await;
            let fields = |message: &Message| [b'S', b'C', b'M'].map(|code| message.field(code));
            let last = messages.last().map(|message| (message.tag, fields(message)));
            seen.push((tags(&messages), last));
        }
        assert_eq!(seen[1], seen[0], "{what}");
        let expected =
            ["FATAL", "08P01", "invalid frontend message type 112"].map(|text| Some(text.to_owned()));
        assert_eq!(seen[0].1, Some((b'E', expected)), "{what}");
        stage.others_are_unaffected(what).await;
    }
}

#[tokio::test]
async fn a_bind_with_formats_for_other_values_gets_the_servers_error() {
    let stage = Stage::new(&[]).await;
    let two_for_one = frame(b'B', b"\0\0\0\x02\0\0\0\0\0\x01\0\0\0\x011\0\0");
    let unit = |first: Vec<u8>| [first, two_for_one.clone(), execute("", 0), sync()].concat();
    let packed = parse("", "update t set n = $1 where id = 1");
    let cases = [
        ("in a unit", unit(packed.clone())),
        ("twice", [unit(packed.clone()), unit(packed.clone())].concat()),
        ("in a transaction", [query("begin"), unit(packed)].concat()),
        ("of a statement without parameters", unit(parse("", "select"))),
    ];
    for (what, bytes) in cases {
        let mut seen = Vec::new();
        for port in [server().port(), stage.gateway.port()] {
            let mut raw = Raw::login(port, &[("options", &format!("-c search_path={}", stage.schema))]).await;
            raw.send(&[bytes.clone(), frame(b'X', b"")].concat()).await;
            let messages = raw.until_closed().await;
            let errors: Vec<_> = messages
                .iter()
                .filter(|message| message.tag == b'E')
                .map(|message| [b'S', b'C', b'M'].map(|code| message.field(code)))
                .collect();
            seen.push((tags(&messages), errors));
        }
        assert_eq!(seen[1], seen[0], "{what}");
        assert!(seen[0].1[0][1].as_deref() == Some("08P01"), "{what}: {seen:?}");
        stage.others_are_unaffected(what).await;
    }
}

#[tokio::test]
async fn text_that_is_not_utf8_gets_the_servers_error() {
    let stage = Stage::new(&[]).await;
    let cases: [(&str, Vec<u8>); 4] = [
        ("in a Query", frame(b'Q', b"update t set label = '\xff' where id = 1\0")),
        (
            "in a Parse",
            [
                frame(b'P', b"\0update t set label = '\xc3\x28' where id = 1\0\0\0"),
                bind("", "", &[]),
                execute("", 0),
                sync(),
            ]
            .concat(),
        ),
        (
            "in a value",
            [
                parse("", "update t set label = $1 where id = 1"),
                frame(b'B', b"\0\0\0\0\0\x01\0\0\0\x02\xc3\x28\0\0"),
                execute("", 0),
                sync(),
            ]
            .concat(),
        ),
        (
            "a zero byte in a value",
            [
                parse("", "update t set label = $1 where id = 1"),
                frame(b'B', b"\0\0\0\0\0\x01\0\0\0\x01\0\0\0"),
                execute("", 0),
                sync(),
            ]
            .concat(),
        ),
    ];
    for (what, bytes) in cases {
        let mut replies = Vec::new();
        for port in [server().port(), stage.gateway.port()] {
            let mut raw = Raw::login(port, &[("options", &format!("-c search_path={}", stage.schema))]).await;
            raw.send(&bytes).await;
            let mut all = raw.until_ready(1).await;
            all.extend(raw.query("select n from t where id = 2").await);
            replies.push(all);
        }
        assert_eq!(replies[1], replies[0], "{what}");
        assert!(
            replies[0].iter().any(|message| message.field(b'C').as_deref() == Some("22021")),
            "{what}: {replies:?}"
        );
        stage.others_are_unaffected(what).await;
    }
}

#[tokio::test]
async fn incomplete_messages_have_no_effect() {
    let stage = Stage::new(&[]).await;
    let whole =
        [parse("", "update t set n = 1000 where id = 2"), bind("", "", &[]), execute("", 0), sync()].concat();
    for cut in (1..whole.len()).step_by(7) {
        let mut raw = stage.raw().await;
        raw.send(&whole[..cut]).await;
        drop(raw);
    }
    stage.others_are_unaffected("messages cut short").await;
    assert_eq!(crate::bad_input::value(&stage.direct, "select n from t where id = 2").await, "0");

    // The same bytes one by one have the same effect as in one write.
    let mut raw = stage.raw().await;
    for byte in &whole {
        raw.send(&[*byte]).await;
    }
    assert_eq!(tags(&raw.until_ready(1).await), "12CZ");
    assert_eq!(crate::bad_input::value(&stage.direct, "select n from t where id = 2").await, "1000");
}

#[tokio::test]
async fn random_bytes_affect_no_other_client() {
    let stage = Stage::new(&[]).await;
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut random = move |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as usize % below
    };
    for round in 0..120 {
        // Complete messages with broken contents get further than noise.
        let mut bytes: Vec<u8> = (0..random(200) + 1).map(|_| random(256) as u8).collect();
        if round % 2 == 0 {
            bytes = frame(b"QPBDECSHFdcfp"[random(13)], &bytes);
            bytes.extend(frame(b'X', b""));
        }
        let mut raw = if round % 3 == 0 { Raw::open(stage.gateway.port()).await } else { stage.raw().await };
        let _ = raw.try_send(&bytes).await; // the gateway may close the connection in between
        drop(raw);
    }
    stage.others_are_unaffected("noise").await;
    assert!(!stage.gateway.log().contains("panicked"), "{}", stage.gateway.log());
}

/// The stack of another thread than the main one is as large as the gateway makes it.
#[tokio::test]
async fn deeply_nested_statements_are_analysed_in_every_thread() {
    let stage = Stage::new(&["--workers", "2"]).await;
    for depth in [10, 20, 39, 100, 1000] {
        for (head, part) in [("select ", "not "), ("update t set n = n where id = 3 and ", "not ")] {
            let statement = format!("{head}{}true", part.repeat(depth));
            for _ in 0..4 {
                let client = connect(&stage.gateway.config_in(&stage.schema)).await;
                client.simple_query(&statement).await.unwrap_or_else(|error| panic!("{}", describe(&error)));
            }
        }
        stage.others_are_unaffected("a deeply nested statement").await;
    }
}
