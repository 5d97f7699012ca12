//! Whole packets on a socket, during a log-in.

use std::io;

use bytes::BytesMut;
use hotrow_mysql_wire::WireError;
use hotrow_mysql_wire::packet::{self, Packet};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
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
    pub stream: TcpStream,
    pub arrived: BytesMut,
}

impl Socket {
    /// Without delays of small packets.
    pub fn new(stream: TcpStream) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        Ok(Socket { stream, arrived: BytesMut::new() })
    }

    /// The next packet of a log-in. Cancel safe.
    pub async fn next(&mut self) -> Result<Packet, SocketError> {
        loop {
            if let Some(packet) = packet::take(&mut self.arrived, limits::LOG_IN_PACKET_BYTES_MAX)? {
                return Ok(packet);
            }
            if self.stream.read_buf(&mut self.arrived).await? == 0 {
                return Err(SocketError::Closed);
            }
        }
    }

    /// Sends a payload.
    pub async fn send(&mut self, sequence: u8, payload: &[u8]) -> Result<(), SocketError> {
        let mut out = BytesMut::new();
        packet::put(&mut out, sequence, payload);
        Ok(self.stream.write_all(&out).await?)
    }
}
