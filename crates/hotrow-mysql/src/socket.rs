//! Whole packets on a socket, during a log-in. It can go on under TLS.

use std::io;

use bytes::BytesMut;
use hotrow_connect::net::stream::HandshakeError;
use hotrow_connect::net::tls::client::{Client, ConnectError};
use hotrow_connect::net::{self, Address, ReadHalf, WriteHalf};
use hotrow_gateway::tls::Server;
use hotrow_mysql_wire::WireError;
use hotrow_mysql_wire::packet::{self, Packet};
use tokio::net::TcpStream;

use crate::limits;

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
    /// Of a client.
    pub fn accepted(stream: TcpStream) -> Self {
        let (read, write) = net::tcp_halves(stream);
        Socket { read, write, arrived: BytesMut::new() }
    }

    /// Connects to a server.
    pub async fn connect(host: &str, port: u16) -> io::Result<Self> {
        let (read, write) = net::connect(&Address::Tcp(host.to_owned(), port)).await?;
        Ok(Socket { read, write, arrived: BytesMut::new() })
    }

    /// Goes on under TLS, for which the client has asked. It may have begun already.
    pub async fn serve_tls(self, tls: &Server) -> Result<Self, HandshakeError> {
        let (read, write, ..) = tls.handshake(self.read, self.write, &self.arrived).await?;
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

    /// The next packet of a log-in. Cancel safe.
    pub async fn next(&mut self) -> Result<Packet, SocketError> {
        loop {
            if let Some(packet) = packet::take(&mut self.arrived, limits::LOG_IN_PACKET_BYTES_MAX)? {
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
