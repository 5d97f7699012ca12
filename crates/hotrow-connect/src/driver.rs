//! A driver's client over a connection that is opened like the gateway's own, for commands that talk to the server
//! directly, with the same URL and TLS.

use std::future::{Ready, ready};
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use hotrow_core::limits;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::config::{SslMode, SslNegotiation};
use tokio_postgres::tls::{ChannelBinding, TlsConnect, TlsStream};
use tokio_postgres::{Client, Config};

use crate::config::conninfo;
use crate::config::{self, UpstreamError};
use crate::net::tls;
use crate::net::{ReadHalf, WriteHalf};
use crate::{connect, upstream};

/// Why there is no client.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Url(#[from] UpstreamError),
    /// The connection.
    #[error(transparent)]
    Open(#[from] upstream::Error),
    #[error("{}", std::error::Error::source(.0).map_or_else(|| .0.to_string(), ToString::to_string))]
    LogIn(#[from] tokio_postgres::Error),
}

/// Connects to the server of this URL: the first reachable host, or the first primary if one is required. If the
/// connection is lost, the query under way reports the error.
pub async fn connect(url: &str) -> Result<Client, Error> {
    let server = config::UpstreamConfig::for_command(url)?;
    connect_as(url, &server, &server.database).await
}

/// The same to another database than that of the URL.
pub async fn connect_to(url: &str, database: &str) -> Result<Client, Error> {
    connect_as(url, &config::UpstreamConfig::for_command(url)?, database).await
}

async fn connect_as(url: &str, server: &config::UpstreamConfig, database: &str) -> Result<Client, Error> {
    let (rest, _) = conninfo::split(url, &tls::client::TLS_PARAMETERS);
    let mut config: Config = rest.parse()?;
    config.user(&server.user).dbname(database);
    // TLS is set up before the driver gets the connection, so the driver must not ask for it.
    config.ssl_mode(SslMode::Require).ssl_negotiation(SslNegotiation::Direct);
    let mut failed = None;
    for address in server.hosts.in_turn() {
        let limit = server.connect_timeout;
        let opened = match tokio::time::timeout(limit, connect::open(server, address)).await {
            Ok(opened) => opened,
            Err(_) => Err(upstream::Error::Timeout { address: address.clone(), limit }),
        };
        let (read, write, end_point) = match opened {
            Ok(opened) => opened,
            Err(error) if error.is_retryable() => {
                failed = Some(error);
                continue;
            }
            Err(error) => return Err(error.into()),
        };
        let stream = Stream { read, write, out: BytesMut::new(), end_point };
        let (client, connection) = config.connect_raw(stream, Settled).await?;
        tokio::spawn(async { drop(connection.await) });
        if !server.hosts.read_write || is_primary(&client).await? {
            return Ok(client);
        }
        failed = Some(upstream::Error::Standby { address: address.clone() });
    }
    Err(failed.expect("there is at least one host").into())
}

async fn is_primary(client: &Client) -> Result<bool, tokio_postgres::Error> {
    let row = client.query_one("select not pg_catalog.pg_is_in_recovery()", &[]).await?;
    row.try_get(0)
}

/// A connection in the form that the driver needs.
#[derive(Debug)]
pub struct Stream {
    read: ReadHalf,
    write: WriteHalf,
    out: BytesMut,
    end_point: Option<Bytes>,
}

impl AsyncRead for Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.read).poll_read(context, buffer)
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if self.out.len() >= limits::TLS_WRITE_BYTES {
            ready!(self.as_mut().poll_flush(context))?;
        }
        self.out.extend_from_slice(bytes);
        let Stream { write, out, .. } = &mut *self;
        write.try_drain(out)?;
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Stream { write, out, .. } = &mut *self;
        while !write.try_drain(out)? {
            ready!(write.poll_writable(context))?;
        }
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_flush(context) // dropping it sends the close notification
    }
}

impl TlsStream for Stream {
    fn channel_binding(&self) -> ChannelBinding {
        match &self.end_point {
            Some(hash) => ChannelBinding::tls_server_end_point(hash.to_vec()),
            None => ChannelBinding::none(),
        }
    }
}

/// For the driver, TLS is always set up already.
#[derive(Debug)]
struct Settled;

impl TlsConnect<Stream> for Settled {
    type Stream = Stream;
    type Error = io::Error;
    type Future = Ready<io::Result<Stream>>;

    fn connect(self, stream: Stream) -> Self::Future {
        ready(Ok(stream))
    }
}
