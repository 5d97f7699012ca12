//! Who listens keeps a connection. Clients tell their own notifications from those of others by the process id that they
//! were told at log-in.

use hotrow_testkit::raw::{Message, Raw, query, tags};

use crate::Stage;

/// No Linux gives a process a higher number.
const PID_MAX: u32 = 1 << 22;

/// The process id in a message: that of BackendKeyData, or who has sent a notification.
fn process_id(said: &[Message], tag: u8) -> u32 {
    let message = said.iter().find(|message| message.tag == tag).unwrap_or_else(|| panic!("{said:?}"));
    u32::from_be_bytes(message.body[..4].try_into().unwrap())
}

#[tokio::test]
async fn a_clients_own_notifications_bear_its_process_id() {
    let stage = Stage::new(&[]).await;
    let (mut listener, hello) = Raw::log_in_with(stage.gateway.port(), &[]).await;
    let (mut other, others_hello) = Raw::log_in_with(stage.gateway.port(), &[]).await;
    let own = process_id(&hello, b'K');
    assert_eq!(tags(&listener.query("listen own").await), "CZ");
    let said = listener.query("notify own, 'to myself'").await;
    assert_eq!(tags(&said), "CAZ");
    assert_eq!(process_id(&said, b'A'), own);
    assert_eq!(said[1].body[4..], *b"own\0to myself\0");

    assert_eq!(tags(&other.query("notify own, 'from afar'").await), "CZ");
    let from_afar = listener.message().await.unwrap();
    assert_eq!(from_afar.body[4..], *b"own\0from afar\0");
    assert_ne!(process_id(&[from_afar], b'A'), own);
    assert_ne!(process_id(&others_hello, b'K'), own);
}

#[tokio::test]
async fn the_process_id_a_client_is_told_is_no_backends() {
    let stage = Stage::new(&[]).await;
    let (mut client, hello) = Raw::log_in_with(stage.gateway.port(), &[]).await;
    let told = process_id(&hello, b'K');
    assert!(told > PID_MAX, "{told} may be another's");
    let text = format!("select pg_terminate_backend({told})");
    client.send(&query(&text)).await;
    let said = client.until_ready(1).await;
    assert_eq!(tags(&said), "TNDCZ", "a warning that there is no such process");
    assert_eq!(said[2].values(), [Some(b"f".to_vec())]);
}
