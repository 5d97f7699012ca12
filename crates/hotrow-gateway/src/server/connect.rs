//! Makes a connection to the server: tries the hosts in turn, with TLS and the log-in. Sends cancel requests, each on a
//! connection of its own.

use std::io;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use hotrow_core::expect::PreparedStatements;
use hotrow_core::limits;
use hotrow_wire::backend::{self, tag};
use hotrow_wire::startup;

use crate::config;
use crate::net::tls::client::Secured;
use crate::net::{self, Address};
use crate::server::login::Login;
use crate::server::upstream::{Error, Upstream, refused};

impl Upstream {
    /// Connects and logs in with these start-up parameters, to the first reachable host. It must be a primary if the
    /// configuration or the caller requires one.
    pub async fn connect(
        server: &config::UpstreamConfig,
        parameters: &[(String, String)],
        login: &Login,
        primary: bool,
    ) -> Result<Self, Error> {
        let limit = std::time::Duration::from_millis(limits::CONNECT_TIMEOUT_MS);
        let mut failed = None;
        for address in server.hosts.in_turn() {
            let log_in = Self::log_in(server, address, parameters, login, primary || server.hosts.read_write);
            match tokio::time::timeout(limit, log_in).await {
                Ok(Ok(upstream)) => {
                    server.hosts.served(address);
                    return Ok(upstream);
                }
                Ok(Err(error)) if !error.is_retryable() => return Err(error),
                Ok(Err(error)) => failed = Some(error),
                Err(_) => failed = Some(Error::Timeout { address: address.clone() }),
            }
        }
        let failed = failed.expect("there is at least one host");
        server.hosts.failed(&failed);
        Err(failed)
    }

    async fn log_in(
        server: &config::UpstreamConfig,
        address: &Address,
        parameters: &[(String, String)],
        login: &Login,
        primary: bool,
    ) -> Result<Self, Error> {
        let (read, write, end_point) = open(server, address).await?;
        let mut upstream = Upstream {
            read,
            write,
            input: BytesMut::new(),
            output: BytesMut::new(),
            notifications: BytesMut::new(),
            parameters: Vec::new(),
            prepared: PreparedStatements::default(),
            process_id: 0,
            secret: Bytes::new(),
            address: Arc::new(address.clone()),
            end_point,
            counted: login.count(),
        };
        let pairs = parameters.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        startup::put_start(&mut upstream.output, pairs);
        upstream.flush().await?;
        login.authenticate(&mut upstream, server.channel_binding).await?;
        upstream.read_until_ready().await?;
        if primary && upstream.is_standby().await? {
            return Err(Error::Standby { address: address.clone() });
        }
        Ok(upstream)
    }

    /// Whether the server is in recovery. Servers report this at log-in; a proxy in between may not pass it on.
    async fn is_standby(&mut self) -> Result<bool, Error> {
        match self.at_log_in("in_hot_standby") {
            Some(value) => Ok(value == "on"),
            None => {
                let rows = self.query("select pg_catalog.pg_is_in_recovery()", &[]).await?;
                Ok(rows.first().and_then(|row| row.first()?.as_deref()) != Some("f"))
            }
        }
    }

    async fn read_until_ready(&mut self) -> Result<(), Error> {
        loop {
            let frame = self.frame().await?;
            match frame[0] {
                tag::READY => return Ok(()),
                tag::PARAMETER_STATUS => {
                    let (name, value) = backend::parameter_status(&frame[5..])?;
                    self.parameters.push((name.to_owned(), value.to_owned()));
                }
                tag::BACKEND_KEY_DATA => {
                    let mut reader = hotrow_wire::Reader::new(&frame[5..]);
                    self.process_id = reader.u32()?;
                    self.secret = Bytes::copy_from_slice(reader.rest());
                }
                tag::ERROR => return Err(refused(&frame)),
                tag::NOTICE => {}
                other => return Err(Error::Protocol(format!("message {:?} at log-in", char::from(other)))),
            }
        }
    }
}

/// A new connection, under TLS if both sides agree, without any message sent.
pub async fn open(server: &config::UpstreamConfig, address: &Address) -> Result<Secured, Error> {
    let connect =
        async || net::connect(address).await.map_err(|error| Error::Io { address: address.clone(), error });
    let (read, write) = connect().await?;
    let (Some(tls), Some(host)) = (&server.tls, address.host()) else { return Ok((read, write, None)) };
    match tls.secure(read, write, host).await {
        Ok(secured) => Ok(secured),
        Err(error) if tls.may_go_without(&error) => {
            tracing::warn!(%error, "continuing without TLS: sslmode=prefer does not require it");
            let (read, write) = connect().await?;
            Ok((read, write, None))
        }
        Err(error) => Err(Error::Tls { address: address.clone(), error }),
    }
}

/// Asks the server to cancel a backend's statement. Returns when the server has closed the connection.
pub async fn cancel(
    server: &config::UpstreamConfig,
    address: &Address,
    process_id: u32,
    secret: &[u8],
) -> Result<(), Error> {
    let limit = std::time::Duration::from_millis(limits::CONNECT_TIMEOUT_MS);
    match tokio::time::timeout(limit, send_cancel(server, address, process_id, secret)).await {
        Ok(sent) => sent,
        Err(_) => Err(Error::Timeout { address: address.clone() }),
    }
}

async fn send_cancel(
    server: &config::UpstreamConfig,
    address: &Address,
    process_id: u32,
    secret: &[u8],
) -> Result<(), Error> {
    let (mut read, write, _) = open(server, address).await?;
    let mut out = BytesMut::new();
    startup::put_cancel(&mut out, process_id, secret);
    let io = |error| Error::Io { address: address.clone(), error };
    write.drain(&mut out).await.map_err(io)?;
    loop {
        match read.fill(&mut out).await {
            Ok(1..) => out.clear(),
            Ok(0) => return Ok(()),
            // Not every server sends a close notification under TLS.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
            Err(error) => return Err(io(error)),
        }
    }
}
