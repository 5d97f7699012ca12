//! Invalid messages during authentication: no other client is affected, and none of them logs a client in.

use crate::{Gateway, Stage, login};
use hotrow_testkit::raw::{Message, Raw, frame, query, startup};

fn start(user: &str) -> Vec<u8> {
    startup(0x0003_0000, &[("user", user), ("database", "postgres")])
}

/// Starts a login that is answered by a request for SASL, sends `bytes`, and returns the replies.
async fn answered(gateway: &Gateway, user: &str, bytes: &[u8]) -> Vec<Message> {
    let mut raw = Raw::open(gateway.port()).await;
    raw.send(&start(user)).await;
    let request = raw.message().await.unwrap();
    assert_eq!(request.body, b"\0\0\0\x0aSCRAM-SHA-256\0\0", "only the mechanism that works without TLS");
    // The gateway may close the connection before the client has sent all bytes.
    let _ = raw.try_send(bytes).await;
    raw.until_closed().await
}

fn initial(message: &[u8]) -> Vec<u8> {
    let length = u32::try_from(message.len()).unwrap().to_be_bytes();
    frame(b'p', &[b"SCRAM-SHA-256\0", &length[..], message].concat())
}

#[tokio::test]
async fn invalid_messages_instead_of_a_proof_are_rejected() {
    let stage = Stage::new().await;
    let ann = stage.role("ann", "scram-sha-256", "anns password").await;
    let gateway = stage.gateway("host all all all scram-sha-256", &[]);
    for (what, bytes) in [
        ("a query", query("select 1")),
        ("nothing", frame(b'p', b"")),
        ("a password", frame(b'p', b"anns password\0")),
        ("another mechanism", frame(b'p', b"SCRAM-SHA-1\0\0\0\0\x0cn,,n=,r=abcd")),
        (
            "binding without TLS",
            frame(b'p', b"SCRAM-SHA-256-PLUS\0\0\0\0\x24p=tls-server-end-point,,n=,r=abcdefg"),
        ),
        ("a length beyond the end", frame(b'p', b"SCRAM-SHA-256\0\x7f\xff\xff\xffn,,n=,r=abcd")),
        ("no nonce", initial(b"n,,n=,r=")),
        ("another user's authority", initial(b"n,a=gate,n=,r=abcd")),
        ("no text", initial(b"n,,n=,r=\xff\xfe\0")),
        ("a long nonce that never ends", [&b"p\x7f\xff\xff\xff"[..], &[b'x'; 20_000]].concat()),
        ("a length of 0", b"p\0\0\0\0".to_vec()),
        ("a broken proof", [initial(b"n,,n=,r=abcd"), frame(b'p', b"c=biws,r=abcd,p=AAAA")].concat()),
        ("noise", (0..9000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect()),
    ] {
        let replies = answered(&gateway, &ann, &bytes).await;
        let code = replies.last().unwrap().field(b'C').unwrap();
        assert_eq!(code, "08P01", "{what}: {replies:?}");
        assert!(replies.iter().all(|message| !message.body.starts_with(&[0; 4])), "{what}: {replies:?}");
        assert_eq!(login(gateway.port(), &ann, "anns password").await.as_ref(), Ok(&ann), "after {what}");
    }
}

#[tokio::test]
async fn a_proof_cannot_be_sent_twice() {
    use postgres_protocol::authentication::sasl::{ChannelBinding, ScramSha256};
    let stage = Stage::new().await;
    let ann = stage.role("ann", "scram-sha-256", "anns password").await;
    let gateway = stage.gateway("host all all all scram-sha-256", &[]);
    let mut scram = ScramSha256::new(b"anns password", ChannelBinding::unsupported());
    let first = initial(scram.message());
    let mut raw = Raw::open(gateway.port()).await;
    raw.send(&start(&ann)).await;
    raw.message().await.unwrap();
    raw.send(&first).await;
    let challenge = raw.message().await.unwrap();
    scram.update(&challenge.body[4..]).unwrap();
    let proof = frame(b'p', scram.message());
    raw.send(&proof).await;
    assert_eq!(raw.until_ready(1).await[0].body[..4], [0, 0, 0, 12]);
    // The same bytes on a new connection, where the server's part of the nonce differs.
    let replies = answered(&gateway, &ann, &[first, proof].concat()).await;
    assert_eq!(replies.last().unwrap().field(b'C').as_deref(), Some("08P01"), "{replies:?}");
}

#[tokio::test]
async fn the_last_of_repeated_users_or_databases_counts() {
    let stage = Stage::new().await;
    let ann = stage.role("ann", "scram-sha-256", "anns password").await;
    let users = stage.file("users.txt", &format!("\"{ann}\" \"anns password\""));
    let list = format!(
        "host postgres {ann} all trust\nhost hotrow all all scram-sha-256\nhost all all all scram-sha-256"
    );
    let gateway = stage.gateway(&list, &["--users-file", &users]);
    let (by_trust, request) = (b"\0\0\0\0", b"\0\0\0\x0a");
    for (parameters, first) in [
        (vec![("user", "gate"), ("user", &*ann), ("database", "postgres")], by_trust),
        (vec![("user", &*ann), ("user", "gate"), ("database", "postgres")], request),
        (vec![("user", &*ann), ("database", "hotrow"), ("database", "postgres")], by_trust),
        (vec![("user", &*ann), ("database", "postgres"), ("database", "hotrow")], request),
    ] {
        let mut raw = Raw::open(gateway.port()).await;
        raw.send(&startup(0x0003_0000, &parameters)).await;
        let message = raw.message().await.unwrap();
        assert_eq!((message.tag, &message.body[..4]), (b'R', &first[..]), "{parameters:?}: {message:?}");
        if first == by_trust {
            raw.until_ready(1).await;
            let answer = raw.query("select current_user, current_database()").await;
            let row = [ann.as_str(), "postgres"].map(|text| Some(text.as_bytes().to_vec()));
            assert_eq!(answer[1].values(), row, "{parameters:?}");
        }
    }
}

#[tokio::test]
#[ignore = "long: make test-all"]
async fn clients_that_never_answer_are_disconnected() {
    let stage = Stage::new().await;
    let ann = stage.role("ann", "scram-sha-256", "anns password").await;
    let gateway = stage.gateway("host all all all scram-sha-256", &["--clients-max", "3"]);
    let mut silent = Vec::new();
    for _ in 0..3 {
        let mut raw = Raw::open(gateway.port()).await;
        raw.send(&start(&ann)).await;
        raw.message().await.unwrap();
        silent.push(raw);
    }
    assert!(login(gateway.port(), &ann, "anns password").await.unwrap_err().starts_with("53300"));
    for mut raw in silent {
        // Sending a byte now and then does not help, because the timeout is for the whole login.
        let _ = raw.try_send(b"p").await;
        assert!(raw.until_closed().await.is_empty());
    }
    assert_eq!(login(gateway.port(), &ann, "anns password").await.as_ref(), Ok(&ann));
}
