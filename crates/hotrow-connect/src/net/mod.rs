//! TCP and Unix sockets, plain or under TLS, split into halves. Does not know PostgreSQL's protocol.

pub mod stream;
mod timeouts;
pub mod tls;

use std::io;
use std::path::PathBuf;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::BytesMut;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt, ReadBuf};
use tokio::net::{TcpStream, UnixStream, tcp, unix};

/// Where something listens.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Address {
    /// A host name or address, and a port.
    Tcp(String, u16),
    /// A socket's path.
    Unix(PathBuf),
}

impl Address {
    /// The host's name or address; none for a Unix socket.
    pub fn host(&self) -> Option<&str> {
        match self {
            Address::Tcp(host, _) => Some(host),
            Address::Unix(_) => None,
        }
    }
}

impl std::fmt::Display for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Address::Tcp(host, port) if host.contains(':') => write!(f, "[{host}]:{port}"),
            Address::Tcp(host, port) => write!(f, "{host}:{port}"),
            Address::Unix(path) => write!(f, "{}", path.display()),
        }
    }
}

#[derive(Debug)]
pub enum ReadHalf {
    Tcp(tcp::OwnedReadHalf),
    Unix(unix::OwnedReadHalf),
    /// TCP under TLS.
    Tls(stream::TlsReadHalf),
}

/// The half that is written, from any task that has a reference.
#[derive(Debug)]
pub enum WriteHalf {
    Tcp(tcp::OwnedWriteHalf),
    Unix(unix::OwnedWriteHalf),
    /// TCP under TLS.
    Tls(stream::TlsWriteHalf),
}

pub async fn connect(address: &Address) -> io::Result<(ReadHalf, WriteHalf)> {
    match address {
        Address::Tcp(host, port) => {
            let stream = TcpStream::connect((host.as_str(), *port)).await?;
            timeouts::set(&stream);
            Ok(tcp_halves(stream))
        }
        Address::Unix(path) => Ok(unix_halves(UnixStream::connect(path).await?)),
    }
}

/// Splits a TCP connection; small writes go out at once.
pub fn tcp_halves(stream: TcpStream) -> (ReadHalf, WriteHalf) {
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "no TCP_NODELAY");
    }
    let (read, write) = stream.into_split();
    (ReadHalf::Tcp(read), WriteHalf::Tcp(write))
}

/// Splits a Unix connection.
pub fn unix_halves(stream: UnixStream) -> (ReadHalf, WriteHalf) {
    let (read, write) = stream.into_split();
    (ReadHalf::Unix(read), WriteHalf::Unix(write))
}

impl AsyncRead for ReadHalf {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            ReadHalf::Tcp(half) => Pin::new(half).poll_read(context, buffer),
            ReadHalf::Unix(half) => Pin::new(half).poll_read(context, buffer),
            ReadHalf::Tls(half) => half.poll_read(context, buffer),
        }
    }
}

impl ReadHalf {
    /// Appends received bytes to `buffer`, and waits for the first one. 0 means the end. Cancel safe.
    pub async fn fill(&mut self, buffer: &mut BytesMut) -> io::Result<usize> {
        buffer.reserve(READ_BYTES_MIN);
        self.read_buf(buffer).await
    }
}

/// The least room for one read.
const READ_BYTES_MIN: usize = 8 << 10;

impl WriteHalf {
    /// Writes as much of `buffer` as the socket takes now, and removes it. Returns whether all bytes were taken. Under
    /// TLS a part of the remaining bytes may be encrypted already: the next call has to begin with these bytes.
    pub fn try_drain(&self, buffer: &mut BytesMut) -> io::Result<bool> {
        while !buffer.is_empty() {
            let written = match self {
                WriteHalf::Tcp(half) => half.try_write(buffer),
                WriteHalf::Unix(half) => half.try_write(buffer),
                WriteHalf::Tls(half) => return half.try_drain(buffer),
            };
            match written {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) if count == buffer.len() => buffer.clear(),
                Ok(count) => bytes::Buf::advance(buffer, count),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }

    /// Waits until the socket takes bytes again.
    pub async fn writable(&self) -> io::Result<()> {
        match self {
            WriteHalf::Tcp(half) => half.writable().await,
            WriteHalf::Unix(half) => half.writable().await,
            WriteHalf::Tls(half) => half.writable().await,
        }
    }

    /// The same for polling.
    pub fn poll_writable(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            WriteHalf::Tcp(half) => half.as_ref().poll_write_ready(context),
            WriteHalf::Unix(half) => half.as_ref().poll_write_ready(context),
            WriteHalf::Tls(half) => half.poll_writable(context),
        }
    }

    /// Writes all of `buffer`.
    pub async fn drain(&self, buffer: &mut BytesMut) -> io::Result<()> {
        while !self.try_drain(buffer)? {
            self.writable().await?;
        }
        Ok(())
    }

    /// Writes all of these bytes, under TLS from a copy.
    pub async fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            WriteHalf::Tcp(half) => half.write_all(bytes).await,
            WriteHalf::Unix(half) => half.write_all(bytes).await,
            WriteHalf::Tls(_) => self.drain(&mut BytesMut::from(bytes)).await,
        }
    }

    /// Writes no more. The other side sees the end.
    pub async fn shutdown(&mut self) -> io::Result<()> {
        match self {
            WriteHalf::Tcp(half) => half.shutdown().await,
            WriteHalf::Unix(half) => half.shutdown().await,
            WriteHalf::Tls(half) => half.shutdown().await,
        }
    }
}
