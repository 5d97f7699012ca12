//! A client's first bytes: grants or declines requests for encryption until the startup packet arrives.

use std::time::Duration;

use bytes::{Buf, BytesMut};
use hotrow_connect::net::{ReadHalf, WriteHalf};
use hotrow_core::limits;
use hotrow_wire::SqlState;
use hotrow_wire::backend::Problem;
use hotrow_wire::frontend;
use hotrow_wire::startup::{self, Packet};

use crate::net::peer::Peer;
use crate::net::tls::Server;

/// The answers to a request for encryption.
const ENCRYPTION: &[u8] = b"S";
const NO_ENCRYPTION: &[u8] = b"N";
/// The first byte of a TLS handshake. No startup packet is long enough to begin with it.
const TLS_HANDSHAKE: u8 = 0x16;

/// A connection whose client has sent its startup packet.
pub struct Opened {
    /// The startup packet.
    pub packet: Packet,
    pub read: ReadHalf,
    /// The half that is written.
    pub write: WriteHalf,
    /// Bytes that were read after the packet.
    pub input: BytesMut,
    /// The client's end of the connection.
    pub peer: Peer,
}

/// Reads up to the first packet that is not a request for encryption. None if the client has left or was rejected.
pub async fn open(tls: Option<&Server>, read: ReadHalf, write: WriteHalf, peer: Peer) -> Option<Opened> {
    let tls = tls.filter(|_| matches!(read, ReadHalf::Tcp(_)));
    let mut opening = Opening { tls, read, write, input: BytesMut::new(), peer, asked: Vec::new() };
    loop {
        match startup::split(&opening.input, limits::STARTUP_BYTES_MAX) {
            _ if opening.begins_tls() => opening = opening.direct_tls().await?,
            Ok(Some((packet, length))) => {
                opening.input.advance(length);
                match packet {
                    Packet::Ssl | Packet::GssEnc if !opening.asked.contains(&packet) => {
                        opening = opening.asks_for_encryption(packet).await?;
                    }
                    // A second request, or one under TLS, is not a request for encryption: PostgreSQL reports its code
                    // as an unsupported version.
                    Packet::Ssl => {
                        return Some(opening.with(Packet::Unsupported { major: 1234, minor: 5679 }));
                    }
                    Packet::GssEnc => {
                        return Some(opening.with(Packet::Unsupported { major: 1234, minor: 5680 }));
                    }
                    packet => return Some(opening.with(packet)),
                }
            }
            Ok(None) => match opening.read.fill(&mut opening.input).await {
                Ok(1..) => {}
                Ok(0) | Err(_) => return None,
            },
            // A Terminate as the first message: PostgreSQL does not answer it either, and drivers would take an answer
            // for a failure.
            Err(_) if opening.input.starts_with(&[frontend::tag::TERMINATE]) => return None,
            Err(error) => {
                let hint = "Use a client for PostgreSQL's protocol, version 3.";
                return opening.refuse(error.to_string(), hint).await;
            }
        }
    }
}

/// Sends a client an error before its connection is closed.
pub async fn send_away(write: &WriteHalf, problem: &Problem) {
    let mut out = BytesMut::new();
    problem.put(&mut out);
    let _ =
        tokio::time::timeout(Duration::from_millis(limits::STARTUP_TIMEOUT_MS), write.drain(&mut out)).await;
}

struct Opening<'a> {
    /// TLS for clients that ask for it.
    tls: Option<&'a Server>,
    read: ReadHalf,
    write: WriteHalf,
    input: BytesMut,
    peer: Peer,
    /// The requests that were answered.
    asked: Vec<Packet>,
}

impl Opening<'_> {
    fn with(self, packet: Packet) -> Opened {
        let Opening { read, write, input, peer, .. } = self;
        Opened { packet, read, write, input, peer }
    }

    /// Whether the client begins with TLS without asking, which PostgreSQL 17 and later allow.
    fn begins_tls(&self) -> bool {
        self.tls.is_some()
            && self.asked.is_empty()
            && self.peer.tls.is_none()
            && self.input.first() == Some(&TLS_HANDSHAKE)
    }

    async fn direct_tls(mut self) -> Option<Self> {
        let first = std::mem::take(&mut self.input);
        self.begin_tls(&first).await
    }

    async fn asks_for_encryption(mut self, request: Packet) -> Option<Self> {
        if request == Packet::Ssl && self.tls.is_some() {
            if !self.input.is_empty() {
                // An attacker between client and gateway could have inserted these bytes, which would count as the
                // client's bytes under TLS.
                let hint = "The client is faulty, or an attacker between the client and the gateway has inserted the data.";
                return self.refuse("received unencrypted data after SSL request", hint).await;
            }
            self.write.drain(&mut BytesMut::from(ENCRYPTION)).await.ok()?;
            return self.begin_tls(&[]).await;
        }
        self.write.drain(&mut BytesMut::from(NO_ENCRYPTION)).await.ok()?;
        self.asked.push(request);
        Some(self)
    }

    async fn begin_tls(self, first: &[u8]) -> Option<Self> {
        let Opening { tls, read, write, input, mut peer, .. } = self;
        match tls?.accept(read, write, first).await {
            Ok((read, write, seen)) => {
                peer.tls = Some(seen);
                let asked = vec![Packet::Ssl, Packet::GssEnc];
                Some(Opening { tls: None, read, write, input, peer, asked })
            }
            Err(error) => {
                let address = peer.address.map(|address| address.to_string()).unwrap_or_default();
                tracing::info!(address, %error, "a client's TLS handshake failed");
                None
            }
        }
    }

    async fn refuse<T>(self, message: impl Into<String>, hint: &'static str) -> Option<T> {
        send_away(&self.write, &Problem::fatal(SqlState::ProtocolViolation, message, hint)).await;
        None
    }
}
