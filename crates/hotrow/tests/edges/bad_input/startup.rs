//! Messages before the login: requests for encryption, broken and foreign packets, unknown users and databases.

use hotrow_testkit::raw::{Message, Raw, frame, startup};
use hotrow_testkit::server;

use crate::bad_input::Stage;

const SSL: [u8; 8] = [0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x2f];
const GSS: [u8; 8] = [0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x30];
const USER: [(&str, &str); 2] = [("user", "postgres"), ("database", "postgres")];

async fn replies(port: u16, bytes: &[u8]) -> Vec<Message> {
    let mut raw = Raw::open(port).await;
    raw.send(bytes).await;
    raw.until_closed().await
}

#[tokio::test]
async fn requests_for_encryption_are_declined_and_the_client_may_continue() {
    let stage = Stage::new(&[]).await;
    let mut raw = Raw::open(stage.gateway.port()).await;
    for request in [SSL, GSS] {
        raw.send(&request).await;
        assert_eq!(raw.byte().await, Some(b'N'));
    }
    raw.send(&startup(0x0003_0000, &USER)).await;
    assert_eq!(raw.until_ready(1).await.last().unwrap().body, b"I");
    assert_eq!(raw.query("select 1").await.len(), 4);
}

#[tokio::test]
async fn packets_that_are_not_startup_messages_are_rejected() {
    let stage = Stage::new(&[]).await;
    let port = stage.gateway.port();
    for (what, bytes) in [
        ("a length of 3", vec![0, 0, 0, 3]),
        ("a length of 0", vec![0; 8]),
        ("2 GB", vec![0x7f, 0xff, 0xff, 0xff, 0, 3, 0, 0]),
        ("HTTP", b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n".to_vec()),
        ("TLS without asking", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03".to_vec()),
        ("parameters without end", [&[0, 0, 0, 13, 0, 3, 0, 0][..], b"user\0"].concat()),
        ("a Query without login", frame(b'Q', b"select 1\0")),
    ] {
        let replies = replies(port, &bytes).await;
        assert_eq!(replies.len(), 1, "{what}: {replies:?}");
        assert_eq!(replies[0].field(b'C').as_deref(), Some("08P01"), "{what}: {replies:?}");
        stage.others_are_unaffected(what).await;
    }
    let old = replies(port, &startup(0x0002_0000, &USER)).await;
    assert_eq!(old[0].field(b'C').as_deref(), Some("0A000"), "{old:?}");
    let unnamed = replies(port, &startup(0x0003_0000, &[])).await;
    assert_eq!(unnamed[0].field(b'C').as_deref(), Some("28000"), "{unnamed:?}");
    for cut in [1, 4, 7, 12] {
        let mut raw = Raw::open(port).await;
        raw.send(&startup(0x0003_0000, &USER)[..cut]).await;
    }
    assert_eq!(replies(port, &frame(b'X', b"")).await, [], "a Terminate is not answered");
    stage.others_are_unaffected("clients that disconnect before they begin").await;
}

#[tokio::test]
async fn rejections_by_the_server_at_login_are_passed_on() {
    let stage = Stage::new(&[]).await;
    for (what, parameters, code) in [
        ("no such database", vec![("user", "postgres"), ("database", "nowhere")], "3D000"),
        ("no such user", vec![("user", "nobody"), ("database", "postgres")], "28000"),
        ("no such database by default", vec![("user", "nobody")], "28000"),
        ("no such setting", vec![("user", "postgres"), ("database", "postgres"), ("nothing", "x")], "42704"),
        (
            "an invalid setting",
            vec![("user", "postgres"), ("database", "postgres"), ("TimeZone", "Atlantis")],
            "22023",
        ),
    ] {
        let packet = startup(0x0003_0000, &parameters);
        let (directly, through) =
            (replies(server().port(), &packet).await, replies(stage.gateway.port(), &packet).await);
        let error = directly.iter().find(|message| message.tag == b'E').unwrap();
        assert_eq!(error.field(b'C').as_deref(), Some(code), "{what}");
        assert_eq!(through.last(), Some(error), "{what}");
        stage.others_are_unaffected(what).await;
    }
}

#[tokio::test]
async fn replication_is_rejected_with_a_hint() {
    let stage = Stage::new(&[]).await;
    for value in ["true", "database", "on"] {
        let replies = replies(
            stage.gateway.port(),
            &startup(0x0003_0000, &[&USER[..], &[("replication", value)]].concat()),
        )
        .await;
        assert_eq!(replies[0].field(b'C').as_deref(), Some("0A000"), "{replies:?}");
        assert!(replies[0].field(b'H').unwrap().contains("server itself"), "{replies:?}");
    }
    let mut raw = Raw::login(stage.gateway.port(), &[("replication", "false")]).await;
    assert_eq!(raw.query("select 1").await.len(), 4);
}

#[tokio::test]
async fn a_cancel_request_with_a_wrong_key_has_no_effect() {
    let stage = Stage::new(&[]).await;
    let (mut raw, greeting) = Raw::login_with(stage.gateway.port(), &[]).await;
    let key = greeting.iter().find(|message| message.tag == b'K').unwrap().body.clone();
    raw.send(&hotrow_testkit::raw::query("select 'slept' from pg_sleep(1)")).await;
    for wrong in [[&key[..4], &[0; 4]].concat(), vec![0xff; 8]] {
        let packet = [&[0, 0, 0, 16, 0x04, 0xd2, 0x16, 0x2e][..], &wrong].concat();
        assert!(
            replies(stage.gateway.port(), &packet).await.is_empty(),
            "a client does not learn whether a key was correct"
        );
    }
    assert_eq!(hotrow_testkit::raw::tags(&raw.until_ready(1).await), "TDCZ");
    stage.others_are_unaffected("wrong cancel requests").await;
}
