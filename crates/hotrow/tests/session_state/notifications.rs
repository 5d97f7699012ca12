//! Clients tell their own notifications from those of others by the process ID that they got at login. The other tests
//! of notifications are in `tests/listen`.

use hotrow_testkit::raw::{Message, Raw, query, tags};

use crate::Stage;

/// Linux gives no process a higher ID.
const PID_MAX: u32 = 1 << 22;

/// The process ID in a message: that of BackendKeyData, or that of a notification's sender.
fn process_id(replies: &[Message], tag: u8) -> u32 {
    let message = replies.iter().find(|message| message.tag == tag).unwrap_or_else(|| panic!("{replies:?}"));
    u32::from_be_bytes(message.body[..4].try_into().unwrap())
}

#[tokio::test]
async fn a_clients_own_notifications_have_its_process_id() {
    let stage = Stage::new(&[]).await;
    let (mut listener, hello) = Raw::login_with(stage.gateway.port(), &[]).await;
    let (mut other, others_hello) = Raw::login_with(stage.gateway.port(), &[]).await;
    let own = process_id(&hello, b'K');
    assert_eq!(tags(&listener.query("listen own").await), "CZ");
    let replies = listener.query("notify own, 'to myself'").await;
    assert_eq!(tags(&replies), "CAZ");
    assert_eq!(process_id(&replies, b'A'), own);
    assert_eq!(replies[1].body[4..], *b"own\0to myself\0");

    assert_eq!(tags(&other.query("notify own, 'from afar'").await), "CZ");
    let from_afar = listener.message().await.unwrap();
    assert_eq!(from_afar.body[4..], *b"own\0from afar\0");
    assert_ne!(process_id(&[from_afar], b'A'), own);
    assert_ne!(process_id(&others_hello, b'K'), own);
}

#[tokio::test]
async fn the_process_id_of_a_client_belongs_to_no_server_process() {
    let stage = Stage::new(&[]).await;
    let (mut client, hello) = Raw::login_with(stage.gateway.port(), &[]).await;
    let own = process_id(&hello, b'K');
    assert!(own > PID_MAX, "{own} may belong to another process");
    let text = format!("select pg_terminate_backend({own})");
    client.send(&query(&text)).await;
    let replies = client.until_ready(1).await;
    assert_eq!(tags(&replies), "TNDCZ", "the warning that the process does not exist");
    assert_eq!(replies[2].values(), [Some(b"f".to_vec())]);
}
