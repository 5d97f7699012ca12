//! Tests that bytes that have left the writer's buffer have left the process, even if the other side does not
//! read.

use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::{PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, ServerConfig, ServerConnection};
use tokio::net::TcpListener;

use super::*;
use crate::net::{ReadHalf, WriteHalf};

const PATIENCE: Duration = Duration::from_secs(10);

/// The writing half of one end, the reading half of the other, and the halves that share their states.
async fn wire() -> ((TlsReadHalf, WriteHalf), (ReadHalf, TlsWriteHalf)) {
    let key = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let certificate = key.cert.der().clone();
    let mut roots = RootCertStore::empty();
    roots.add(certificate.clone()).unwrap();
    let provider = || Arc::new(rustls::crypto::ring::default_provider());
    let server =
        ServerConfig::builder_with_provider(provider()).with_safe_default_protocol_versions().unwrap();
    let der = PrivateKeyDer::try_from(key.signing_key.serialize_der()).unwrap();
    let server = server.with_no_client_auth().with_single_cert(vec![certificate], der).unwrap();
    let client =
        ClientConfig::builder_with_provider(provider()).with_safe_default_protocol_versions().unwrap();
    let client = client.with_root_certificates(roots).with_no_client_auth();
    let server = Connection::Server(ServerConnection::new(Arc::new(server)).unwrap());
    let name = ServerName::try_from("localhost").unwrap();
    let client = Connection::Client(ClientConnection::new(Arc::new(client), name).unwrap());

    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (one, other) = tokio::join!(TcpStream::connect(listener.local_addr().unwrap()), listener.accept());
    let (one, other) = (one.unwrap().into_split(), other.unwrap().0.into_split());
    let (one, other) =
        tokio::join!(handshake(client, one, &[], |_| ()), handshake(server, other, &[], |_| ()));
    let ((client, ()), (server, ())) = (one.unwrap(), other.unwrap());
    ((server.0, WriteHalf::Tls(server.1)), (ReadHalf::Tls(client.0), client.1))
}

#[tokio::test]
async fn an_empty_buffer_has_been_sent() {
    let ((_read, write), (mut read, _write)) = wire().await;
    let (mut buffer, mut put) = (BytesMut::new(), 0);
    loop {
        buffer.extend_from_slice(&[7; 1_000]);
        put += 1_000;
        if !write.try_drain(&mut buffer).unwrap() {
            break;
        }
        assert!(buffer.is_empty());
    }
    // No more bytes are written, but bytes that have left the buffer must arrive.
    let (mut input, gone) = (BytesMut::new(), put - buffer.len());
    while input.len() < gone {
        let filled = tokio::time::timeout(PATIENCE, read.fill(&mut input)).await;
        assert!(filled.expect("the bytes are on their way").unwrap() > 0);
    }
    assert!(!buffer.is_empty() && input.len() == gone);
    // Bytes that are still in the buffer arrive with the next write, once.
    buffer.extend_from_slice(&[8; 200_000]);
    let (written, ()) = tokio::join!(write.drain(&mut buffer), async {
        while input.len() < put + 200_000 {
            tokio::time::timeout(PATIENCE, read.fill(&mut input)).await.unwrap().unwrap();
        }
    });
    written.unwrap();
    assert!(buffer.is_empty() && input.len() == put + 200_000);
    assert!(input[..put].iter().all(|byte| *byte == 7) && input[put..].iter().all(|byte| *byte == 8));
}

#[tokio::test]
async fn a_cancelled_read_loses_no_bytes() {
    let ((_read, write), (mut read, _write)) = wire().await;
    let mut input = BytesMut::new();
    for number in 0..200_usize {
        let nothing = tokio::time::timeout(Duration::ZERO, read.fill(&mut input)).await;
        assert!(nothing.is_err());
        write.drain(&mut BytesMut::from(&vec![number as u8; 1 + number * 200][..])).await.unwrap();
        let end = input.len() + 1 + number * 200;
        while input.len() < end {
            tokio::select! {
                biased;
                filled = read.fill(&mut input) => assert!(filled.unwrap() > 0),
                () = tokio::task::yield_now() => {}
            }
        }
        assert!(input[end - 1 - number * 200..].iter().all(|byte| usize::from(*byte) == number));
        input.clear();
    }
}
