//! Makes a connection to the server: tries the hosts in turn, with TLS and the login, or compares them if none has served yet.
//! Sends cancel requests, each on a connection of its own.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use hotrow_core::expect::PreparedStatements;
use hotrow_core::limits;
use hotrow_core::primary::{self, Answer, Comparison};
use hotrow_core::replica::History;
use hotrow_wire::backend::{self, tag};
use hotrow_wire::startup;
use tokio::time::Instant;

use crate::config;
use crate::config::hosts::TimelineUse;
use crate::login::Login;
use crate::net::tls::client::Secured;
use crate::net::{self, Address};
use crate::upstream::{Error, Upstream, refused};

/// An attempt to connect to one of the hosts.
#[derive(Clone, Copy)]
struct Attempt<'a> {
    server: &'a config::UpstreamConfig,
    parameters: &'a [(String, String)],
    login: &'a Login,
    /// Standbys are refused.
    primary: bool,
}

type Connected = Result<(Upstream, Answer), Error>;
type Connecting<'a> = Pin<Box<dyn Future<Output = Connected> + Send + 'a>>;

impl Upstream {
    /// Connects and logs in with these startup parameters, to the first reachable host that no other one has left behind. It
    /// must be a primary if the configuration or the caller requires one.
    pub async fn connect(
        server: &config::UpstreamConfig,
        parameters: &[(String, String)],
        login: &Login,
        primary: bool,
    ) -> Result<Self, Error> {
        let attempt = Attempt { server, parameters, login, primary: primary || server.hosts.read_write };
        let connected = match server.hosts.are_new() {
            true => attempt.best().await,
            false => attempt.in_turn().await,
        };
        let (mut upstream, history) = connected?;
        upstream.timeline = server.hosts.served(&upstream.address, history.as_ref());
        Ok(upstream)
    }

    async fn login(
        Attempt { server, parameters, login, primary }: Attempt<'_>,
        address: &Address,
    ) -> Connected {
        let (read, write, end_point) = open(server, address).await?;
        let mut upstream = Upstream {
            read,
            write,
            input: BytesMut::new(),
            output: BytesMut::new(),
            notifications: BytesMut::new(),
            parameters: Vec::new(),
            agrees_with: None,
            prepared: PreparedStatements::default(),
            process_id: 0,
            secret: Bytes::new(),
            address: Arc::new(address.clone()),
            end_point,
            timeline: TimelineUse::default(),
            counted: login.count(),
        };
        let pairs = parameters.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        startup::put_start(&mut upstream.output, pairs);
        upstream.flush().await?;
        login.authenticate(&mut upstream, server.channel_binding).await?;
        upstream.read_until_ready().await?;
        let asks = primary || server.hosts.have_timelines;
        let accepts_writes = asks && !upstream.is_standby().await?;
        if primary && !accepts_writes {
            return Err(Error::Standby { address: address.clone() });
        }
        let history = match accepts_writes && server.hosts.have_timelines {
            true => upstream.history().await?,
            false => None,
        };
        Ok((upstream, Answer { accepts_writes, history }))
    }

    /// The history of a primary, if the role may ask for it.
    async fn history(&mut self) -> Result<Option<History>, Error> {
        let rows = self.query_if_allowed(include_str!("../sql/history.sql"), &[]).await?;
        let Some(row) = rows.and_then(|rows| rows.into_iter().next()) else { return Ok(None) };
        let [cluster, timeline] = <[Option<String>; 2]>::try_from(row).unwrap_or_default();
        let timeline = timeline.and_then(|timeline| timeline.parse().ok());
        Ok(cluster.zip(timeline).map(|(cluster, timeline)| History { cluster, timeline }))
    }

    /// Whether the server is in recovery. Servers report this at login; a proxy in between may not pass it on.
    async fn is_standby(&mut self) -> Result<bool, Error> {
        match self.at_login("in_hot_standby") {
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
                other => return Err(Error::Protocol(format!("message {:?} at login", char::from(other)))),
            }
        }
    }
}

impl Attempt<'_> {
    /// Connects to a host, and refuses it if its timeline is over.
    async fn host(self, address: &Address) -> Connected {
        match tokio::time::timeout(self.server.connect_timeout, Upstream::login(self, address)).await {
            Ok(connected) => {
                let (upstream, answer) = connected?;
                match (self.server.hosts.left_behind(answer.history.as_ref()), &answer.history) {
                    (Some(served), Some(History { timeline, .. })) => {
                        Err(Error::OldPrimary { address: address.clone(), timeline: *timeline, served })
                    }
                    _ => Ok((upstream, answer)),
                }
            }
            Err(_) => Err(Error::Timeout { address: address.clone(), limit: self.server.connect_timeout }),
        }
    }

    /// The first host that serves: the one that served last, then the others as they were named.
    async fn in_turn(self) -> Result<(Upstream, Option<History>), Error> {
        let mut failed = Vec::new();
        for address in self.server.hosts.in_turn() {
            match self.host(address).await {
                Ok((upstream, answer)) => return Ok((upstream, answer.history)),
                Err(error) if !error.is_retryable() => return Err(error),
                Err(error) => failed.push((address, error)),
            }
        }
        Err(self.most_telling(failed))
    }

    /// The first host that no other one has left behind. All are asked at the same time.
    async fn best(self) -> Result<(Upstream, Option<History>), Error> {
        let hosts = self.server.hosts.all();
        let (answers, errors) = self.ask_all(hosts).await;
        let compared: Vec<_> =
            answers.iter().map(|it| it.as_ref().map(|(_, answer)| answer.clone())).collect();
        let Comparison { serves, rivals } = primary::compare(&compared);
        let chosen = serves.and_then(|serves| answers.into_iter().nth(serves)?);
        let Some((upstream, answer)) = chosen else {
            return Err(self.most_telling(errors));
        };
        // After another attempt of the same moment has served, an old primary is refused above, and this one has compared without it.
        if self.server.hosts.are_new() {
            let rivals = rivals.into_iter().map(|index| hosts[index].clone());
            let rivals = rivals.filter(|address| *address != *upstream.address).collect();
            self.server.hosts.set_rivals(&upstream.address, rivals);
        }
        Ok((upstream, answer.history))
    }

    /// No host serves. Returns the error to report. That a standby is a standby is no news.
    fn most_telling(self, failed: Vec<(&Address, Error)>) -> Error {
        let weight = |error: &Error| match error {
            Error::Standby { .. } => 0,
            error if error.is_retryable() => 1,
            _ => 2,
        };
        let problems = problems(&failed);
        let errors = failed.into_iter().map(|(_, error)| error);
        let error = errors.reduce(|one, other| if weight(&one) > weight(&other) { one } else { other });
        let limit = self.server.connect_timeout;
        let address = || self.server.hosts.all()[0].clone();
        let error = error.unwrap_or_else(|| Error::Timeout { address: address(), limit });
        if error.is_retryable() {
            self.server.hosts.failed(&problems);
        }
        error
    }

    /// Asks all hosts, and waits only for a moment for those that answer later than the first one.
    async fn ask_all(self, hosts: &[Address]) -> (Vec<Option<(Upstream, Answer)>>, Vec<(&Address, Error)>) {
        let mut pending: Vec<(usize, Connecting<'_>)> = Vec::new();
        for (index, address) in hosts.iter().enumerate() {
            pending.push((index, Box::pin(self.host(address))));
        }
        let (mut answers, mut errors) = (Vec::new(), Vec::new());
        answers.resize_with(hosts.len(), || None);
        let mut deadline = None;
        while !pending.is_empty() {
            let next = poll_fn(|context| {
                for place in 0..pending.len() {
                    if let Poll::Ready(connected) = pending[place].1.as_mut().poll(context) {
                        let (index, _) = pending.swap_remove(place);
                        return Poll::Ready((index, connected));
                    }
                }
                Poll::Pending
            });
            let (index, connected) = match deadline {
                None => next.await,
                Some(deadline) => match tokio::time::timeout_at(deadline, next).await {
                    Ok(next) => next,
                    Err(_) => break,
                },
            };
            match connected {
                Ok(connected) => {
                    answers[index] = Some(connected);
                    let moment = Duration::from_millis(limits::COMPARE_HOSTS_MS);
                    deadline.get_or_insert_with(|| Instant::now() + moment);
                }
                Err(error) => errors.push((&hosts[index], error)),
            }
        }
        (answers, errors)
    }
}

/// The history of another host of the server, if that accepts writes and this user may ask.
pub async fn history_of(
    server: &config::UpstreamConfig,
    address: &Address,
    parameters: &[(String, String)],
    login: &Login,
) -> Result<Option<History>, Error> {
    let attempt = Attempt { server, parameters, login, primary: false };
    let connecting = tokio::time::timeout(server.connect_timeout, Upstream::login(attempt, address));
    match connecting.await {
        Ok(connected) => Ok(connected?.1.history),
        Err(_) => Err(Error::Timeout { address: address.clone(), limit: server.connect_timeout }),
    }
}

/// The problem of each host, with its address.
fn problems(failed: &[(&Address, Error)]) -> String {
    let problem = |(address, error): &(&Address, Error)| {
        let (address, error) = (address.to_string(), error.to_string());
        if error.contains(&address) { error } else { format!("{address}: {error}") }
    };
    failed.iter().map(problem).collect::<Vec<_>>().join("; ")
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
    let limit = server.connect_timeout;
    match tokio::time::timeout(limit, send_cancel(server, address, process_id, secret)).await {
        Ok(sent) => sent,
        Err(_) => Err(Error::Timeout { address: address.clone(), limit }),
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
