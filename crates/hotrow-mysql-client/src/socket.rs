//! Whole packets on a socket, to which TLS can be added during the login.

use std::io;

use bytes::BytesMut;
use hotrow_connect::net::tls::client::{Client, ConnectError};
use hotrow_connect::net::{self, Address, ReadHalf, WriteHalf};
use hotrow_mysql_wire::WireError;
use hotrow_mysql_wire::packet::{self, Packet};

/// The largest packet that is read: a client's attributes in a login have up to 64 KiB.
pub const PACKET_BYTES_MAX: usize = 128 << 10;

/// Why no packet can be read or written.
#[derive(Debug, thiserror::Error)]
pub enum SocketError {
    /// The operating system's error.
    #[error(transparent)]
    System(#[from] io::Error),
    /// The other side has closed the connection.
    #[error("the connection was closed")]
    Closed,
    /// Bytes that are not MySQL's protocol.
    #[error(transparent)]
    Wire(#[from] WireError),
}

/// A socket with the bytes that have arrived and are not read yet.
#[derive(Debug)]
pub struct Socket {
    pub read: ReadHalf,
    pub write: WriteHalf,
    pub arrived: BytesMut,
}

impl Socket {
    /// Connects to a server.
    pub async fn connect(host: &str, port: u16) -> io::Result<Self> {
        let (read, write) = net::connect(&Address::Tcp(host.to_owned(), port)).await?;
        Ok(Socket { read, write, arrived: BytesMut::new() })
    }

    /// Goes on under TLS with this server, which has been asked for it.
    pub async fn begin_tls(self, tls: &Client, host: &str) -> Result<Self, ConnectError> {
        if !self.arrived.is_empty() {
            return Err(ConnectError::Injected);
        }
        let ((read, write, _), _) = tls.handshake(self.read, self.write, host).await?;
        Ok(Socket { read, write, arrived: BytesMut::new() })
    }

    /// The next packet. Cancel safe.
    pub async fn next(&mut self) -> Result<Packet, SocketError> {
        loop {
            if let Some(packet) = packet::take(&mut self.arrived, PACKET_BYTES_MAX)? {
                return Ok(packet);
            }
            if self.read.fill(&mut self.arrived).await? == 0 {
                return Err(SocketError::Closed);
            }
        }
    }

    /// Sends a payload.
    pub async fn send(&mut self, sequence: u8, payload: &[u8]) -> Result<(), SocketError> {
        let mut out = BytesMut::new();
        packet::put(&mut out, sequence, payload);
        Ok(self.write.drain(&mut out).await?)
    }
}
