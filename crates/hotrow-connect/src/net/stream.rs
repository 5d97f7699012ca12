//! A TCP connection under TLS, split into halves that share one rustls state. Handles records; does not know
//! PostgreSQL's messages or certificates.

#[cfg(test)]
mod tests;

use std::future::poll_fn;
use std::io::{self, BufRead, IoSlice, Read, Write};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::{Buf, BytesMut};
use hotrow_core::limits;
use rustls::Connection;
use tokio::io::{AsyncRead, AsyncWriteExt, ReadBuf};
use tokio::net::{TcpStream, tcp};

use crate::lock::Lock;

/// The state that both halves share.
#[derive(Debug)]
struct State {
    connection: Connection,
    /// Bytes at the front of the writer's buffer whose records the socket has not taken completely. They stay in the
    /// buffer until then, so an empty buffer has been sent.
    encrypted: usize,
}

#[derive(Debug)]
pub struct TlsReadHalf {
    half: tcp::OwnedReadHalf,
    state: Arc<Lock<State>>,
}

/// The half that is written. When dropped, it sends the TLS close notification.
#[derive(Debug)]
pub struct TlsWriteHalf {
    half: tcp::OwnedWriteHalf,
    state: Arc<Lock<State>>,
}

/// Why a TLS handshake failed.
#[derive(Debug, thiserror::Error)]
pub enum HandshakeError {
    /// The network, or the other side has closed the connection.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// One side rejects the other's messages.
    #[error(transparent)]
    Tls(#[from] rustls::Error),
    /// The other side names another protocol, or none.
    #[error("the other side did not name PostgreSQL's protocol (ALPN)")]
    NoProtocol,
    #[error("the handshake has more than {} bytes", limits::TLS_HANDSHAKE_BYTES_MAX)]
    TooLong,
}

/// Both halves of a connection under TLS.
pub type TlsHalves = (TlsReadHalf, TlsWriteHalf);

/// Performs the handshake on a plain connection from which `first` has been read already. `look` inspects the outcome.
pub async fn handshake<T>(
    mut connection: Connection,
    (mut read, write): (tcp::OwnedReadHalf, tcp::OwnedWriteHalf),
    mut first: &[u8],
    look: impl FnOnce(&Connection) -> T,
) -> Result<(TlsHalves, T), HandshakeError> {
    connection.set_buffer_limit(None); // `try_drain` keeps the buffered amount small
    let mut total = first.len();
    loop {
        while !flush(&mut connection, write.as_ref())? {
            write.writable().await?;
        }
        if !connection.is_handshaking() && first.is_empty() {
            break;
        }
        let count = if first.is_empty() {
            poll_fn(|context| receive(&mut connection, &mut read, context)).await?
        } else {
            connection.read_tls(&mut first)?
        };
        if count == 0 {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
        }
        total += count;
        if total > limits::TLS_HANDSHAKE_BYTES_MAX {
            return Err(HandshakeError::TooLong);
        }
        if let Err(error) = connection.process_new_packets() {
            let _ = flush(&mut connection, write.as_ref()); // the alert with the reason
            return Err(error.into());
        }
    }
    let seen = look(&connection);
    let state = Arc::new(Lock::new(State { connection, encrypted: 0 }));
    let halves = (TlsReadHalf { half: read, state: state.clone() }, TlsWriteHalf { half: write, state });
    Ok((halves, seen))
}

impl TlsReadHalf {
    /// As [`AsyncRead::poll_read`]. Received bytes that are not decrypted yet stay in the state: cancel safe.
    pub fn poll_read(&mut self, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let mut state = self.state.lock();
        let connection = &mut state.connection;
        loop {
            if take_plaintext(connection, buffer)? {
                return Poll::Ready(Ok(()));
            }
            ready!(receive(connection, &mut self.half, context))?;
            let outcome = connection.process_new_packets();
            // Reading may produce output, such as an alert or new keys. Bytes that the socket does not take now are
            // sent with the next write.
            if connection.wants_write() {
                flush(connection, self.half.as_ref())?;
            }
            outcome.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        }
    }
}

/// Moves decrypted bytes to `buffer`. Returns whether there were any, or the end is reached.
fn take_plaintext(connection: &mut Connection, buffer: &mut ReadBuf<'_>) -> io::Result<bool> {
    let before = buffer.filled().len();
    while buffer.remaining() > 0 {
        let mut reader = connection.reader();
        let count = match reader.fill_buf() {
            Ok([]) => return Ok(true),
            Ok(chunk) => {
                let count = chunk.len().min(buffer.remaining());
                buffer.put_slice(&chunk[..count]);
                count
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
            Err(_) if buffer.filled().len() > before => break, // the next call shows it again
            Err(error) => return Err(error),
        };
        reader.consume(count);
    }
    Ok(buffer.filled().len() > before)
}

impl TlsWriteHalf {
    /// See [`super::WriteHalf::try_drain`].
    pub fn try_drain(&self, buffer: &mut BytesMut) -> io::Result<bool> {
        let mut state = self.state.lock();
        let State { connection, encrypted } = &mut *state;
        loop {
            if connection.wants_write() && !flush(connection, self.half.as_ref())? {
                return Ok(buffer.is_empty());
            }
            let gone = std::mem::take(encrypted).min(buffer.len());
            if gone == buffer.len() {
                buffer.clear();
                return Ok(true);
            }
            buffer.advance(gone);
            let part = &buffer[..buffer.len().min(limits::TLS_WRITE_BYTES)];
            connection.writer().write_all(part)?;
            *encrypted = part.len();
        }
    }

    /// See [`super::WriteHalf::writable`].
    pub async fn writable(&self) -> io::Result<()> {
        self.half.writable().await
    }

    /// See [`super::WriteHalf::poll_writable`].
    pub fn poll_writable(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.half.as_ref().poll_write_ready(context)
    }
}

impl TlsWriteHalf {
    /// See [`super::WriteHalf::shutdown`].
    pub async fn shutdown(&mut self) -> io::Result<()> {
        self.notify_close();
        self.half.shutdown().await
    }

    fn notify_close(&self) {
        if let Some(mut state) = self.state.lock_in_drop() {
            state.connection.send_close_notify();
            // A peer that no longer reads misses it.
            let _ = flush(&mut state.connection, self.half.as_ref());
        }
    }
}

impl Drop for TlsWriteHalf {
    fn drop(&mut self) {
        self.notify_close();
    }
}

/// Writes the waiting records. Returns whether the socket has taken all.
fn flush(connection: &mut Connection, socket: &TcpStream) -> io::Result<bool> {
    while connection.wants_write() {
        match connection.write_tls(&mut Outgoing(socket)) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
            Err(error) => return Err(error),
        }
    }
    Ok(true)
}

/// Receives bytes; 0 means the end.
fn receive(
    connection: &mut Connection,
    half: &mut tcp::OwnedReadHalf,
    context: &mut Context<'_>,
) -> Poll<io::Result<usize>> {
    match connection.read_tls(&mut Incoming { half, context }) {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Poll::Pending,
        result => Poll::Ready(result),
    }
}

/// The socket as rustls writes to it: returns `WouldBlock` if the socket takes no bytes now.
struct Outgoing<'a>(&'a TcpStream);

impl Write for Outgoing<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.try_write(bytes)
    }

    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        match slices {
            [one] => self.0.try_write(one), // the usual and cheaper case
            slices => self.0.try_write_vectored(slices),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The socket as rustls reads from it. If it would block, the task is woken when bytes arrive.
struct Incoming<'a, 'b> {
    half: &'a mut tcp::OwnedReadHalf,
    context: &'a mut Context<'b>,
}

impl Read for Incoming<'_, '_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let mut buffer = ReadBuf::new(bytes);
        match Pin::new(&mut *self.half).poll_read(self.context, &mut buffer) {
            Poll::Ready(result) => result.map(|()| buffer.filled().len()),
            Poll::Pending => Err(io::ErrorKind::WouldBlock.into()),
        }
    }
}
