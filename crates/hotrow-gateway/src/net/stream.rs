//! A TCP connection under TLS, split into halves that share one state of rustls. Knows records, no messages of
//! PostgreSQL's and no certificates.

#[cfg(test)]
mod tests;

use std::future::poll_fn;
use std::io::{self, BufRead, IoSlice, Read, Write};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, ready};

use bytes::{Buf, BytesMut};
use hotrow_core::limits;
use rustls::Connection;
use tokio::io::{AsyncRead, ReadBuf};
use tokio::net::{TcpStream, tcp};

/// What both halves work on.
#[derive(Debug)]
struct State {
    connection: Connection,
    /// Bytes at the front of the writer's buffer whose records the socket has not taken whole. They stay in the buffer
    /// until then, so that a buffer which is empty has gone.
    encrypted: usize,
}

/// The half that is read.
#[derive(Debug)]
pub struct TlsReadHalf {
    half: tcp::OwnedReadHalf,
    state: Arc<Mutex<State>>,
}

/// The half that is written. Dropped, it says goodbye as TLS wants it.
#[derive(Debug)]
pub struct TlsWriteHalf {
    half: tcp::OwnedWriteHalf,
    state: Arc<Mutex<State>>,
}

/// Why there is no TLS.
#[derive(Debug, thiserror::Error)]
pub enum HandshakeError {
    /// The network, or the other side has hung up.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// One side does not like what the other one says.
    #[error(transparent)]
    Tls(#[from] rustls::Error),
    /// It says that it speaks another protocol, or none.
    #[error("the other side did not say that it speaks PostgreSQL's protocol (ALPN)")]
    NoProtocol,
    /// It talks and talks.
    #[error("more than {} bytes", limits::TLS_HANDSHAKE_BYTES_MAX)]
    TooLong,
}

/// Both halves of a connection under TLS.
pub type TlsHalves = (TlsReadHalf, TlsWriteHalf);

/// Agrees on keys over a plain connection of which `first` has been read already. `look` is shown the outcome.
pub async fn handshake<T>(
    mut connection: Connection,
    (mut read, write): (tcp::OwnedReadHalf, tcp::OwnedWriteHalf),
    mut first: &[u8],
    look: impl FnOnce(&Connection) -> T,
) -> Result<(TlsHalves, T), HandshakeError> {
    connection.set_buffer_limit(None); // `try_drain` sees to it that little is there
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
            let _ = flush(&mut connection, write.as_ref()); // the alert that says why
            return Err(error.into());
        }
    }
    let seen = look(&connection);
    let state = Arc::new(Mutex::new(State { connection, encrypted: 0 }));
    let halves = (TlsReadHalf { half: read, state: state.clone() }, TlsWriteHalf { half: write, state });
    Ok((halves, seen))
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().expect("no holder of a lock panics")
}

impl TlsReadHalf {
    /// As [`AsyncRead::poll_read`]. What was received and is not yet decrypted stays in the state: cancel safe.
    pub fn poll_read(&mut self, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let mut state = lock(&self.state);
        let connection = &mut state.connection;
        loop {
            if take_plaintext(connection, buffer)? {
                return Poll::Ready(Ok(()));
            }
            ready!(receive(connection, &mut self.half, context))?;
            let outcome = connection.process_new_packets();
            // Reading may have something to say: an alert, new keys. What the socket does not take now goes with
            // what is written next.
            if connection.wants_write() {
                flush(connection, self.half.as_ref())?;
            }
            outcome.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        }
    }
}

/// Moves what is decrypted to `buffer`; whether there was something, or is the end.
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
            Err(_) if buffer.filled().len() > before => break, // it shows again at the next call
            Err(error) => return Err(error),
        };
        reader.consume(count);
    }
    Ok(buffer.filled().len() > before)
}

impl TlsWriteHalf {
    /// See [`super::WriteHalf::try_drain`].
    pub fn try_drain(&self, buffer: &mut BytesMut) -> io::Result<bool> {
        let mut state = lock(&self.state);
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

impl Drop for TlsWriteHalf {
    fn drop(&mut self) {
        if let Ok(mut state) = self.state.lock() {
            state.connection.send_close_notify();
            // Whoever does not read any more misses it.
            let _ = flush(&mut state.connection, self.half.as_ref());
        }
    }
}

/// Writes the records that wait; whether the socket has taken all of them.
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

/// Takes in some of what has come; nothing is the end.
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

/// The socket as rustls writes to it: what it does not take now would block.
struct Outgoing<'a>(&'a TcpStream);

impl Write for Outgoing<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.try_write(bytes)
    }

    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        match slices {
            [one] => self.0.try_write(one), // the usual case, and cheaper
            slices => self.0.try_write_vectored(slices),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The socket as rustls reads from it. Where it would block, the task is woken when something comes.
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
