//! One connection to the server: the gateway's own small queries, and the statements that are prepared on it. The lane
//! or session that holds it decides what else is sent.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use hotrow_core::admission::{ServerSettings, SessionDefaults};
use hotrow_core::expect::PreparedStatements;
use hotrow_core::limits;
use hotrow_core::session::OWN_STATEMENT;
use hotrow_core::settings::Settings;
use hotrow_wire::backend::{self, Report, tag};
use hotrow_wire::{SqlState, frontend, split};
use tokio::io::{AsyncRead, ReadBuf};

use crate::config::hosts::TimelineUse;
use crate::net::tls::client::ConnectError;
use crate::net::{Address, ReadHalf, WriteHalf};

/// Why there is no connection, or why it was lost.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The network.
    #[error("no connection to {address}: {error}")]
    Io {
        /// The host.
        address: Address,
        /// The system's error.
        error: io::Error,
    },
    #[error("no connection to {address}: {error}")]
    Tls {
        /// The host.
        address: Address,
        /// The reason.
        error: ConnectError,
    },
    /// The login cannot be bound to the server's certificate.
    #[error(
        "the server does not bind the login to its certificate (SCRAM-SHA-256-PLUS), and channel_binding=require asks for it"
    )]
    NotBound,
    /// The server refused; its ErrorResponse is unchanged.
    #[error("{code}: {message}")]
    Refused {
        /// Its SQLSTATE.
        code: String,
        message: String,
        /// The whole frame.
        frame: Bytes,
    },
    /// The server asks for an authentication that the gateway does not support.
    #[error("the server asks for {0}, which the gateway does not support; change pg_hba.conf at the server")]
    Authentication(&'static str),
    /// The server asks for a password, and the gateway has none.
    #[error(
        "the server asks for the password of user {0:?}, and the gateway has none: add it to users_file, or let the user's clients log in by scram-sha-256 against the server's own verifier (auth_query)"
    )]
    NoPassword(String),
    /// The password that the user's clients have proven is not the server's.
    #[error(
        "user {0:?} has another SCRAM verifier at the server than the one that its clients logged in with: if the password was changed, log in again; if the verifier is in users_file, update it"
    )]
    OtherVerifier(String),
    /// The server's part of SCRAM is wrong.
    #[error(transparent)]
    Scram(#[from] hotrow_auth::ServerError),
    /// The server has broken the protocol.
    #[error("the server broke the protocol: {0}")]
    Protocol(String),
    /// The server did not answer in time.
    #[error("{address} did not answer within {} ms", .limit.as_millis())]
    Timeout {
        /// The host.
        address: Address,
        /// The time that it had.
        limit: Duration,
    },
    /// The primary is on an earlier timeline than the one that has served.
    #[error(
        "{address} is an old primary: it is on timeline {timeline}, and timeline {served} of the same cluster has served; make it a standby of the new primary, or, if the cluster was restored from a backup, restart the gateway"
    )]
    OldPrimary {
        /// The host.
        address: Address,
        timeline: u32,
        /// The timeline that has served.
        served: u32,
    },
    /// The server is in recovery, and a primary is required.
    #[error("{address} is a standby, and a primary is needed; check the hosts of the upstream URL")]
    Standby {
        /// The host.
        address: Address,
    },
}

impl Error {
    /// The server's ErrorResponse, empty if the error is not the server's.
    pub fn into_frame(self) -> Bytes {
        match self {
            Error::Refused { frame, .. } => frame,
            _ => Bytes::new(),
        }
    }

    /// Whether the server, the role or the database has reached its limit of connections. A connection that is closed makes room.
    pub fn is_full(&self) -> bool {
        matches!(self, Error::Refused { code, .. } if code == SqlState::TooManyConnections.code())
    }

    /// Whether another transaction holds a lock for longer than `lock_timeout`.
    pub fn is_lock_timeout(&self) -> bool {
        matches!(self, Error::Refused { code, .. } if code == "55P03")
    }

    /// Whether another host, or a retry, may succeed.
    pub fn is_retryable(&self) -> bool {
        match self {
            Error::Io { .. } | Error::Timeout { .. } | Error::Standby { .. } | Error::OldPrimary { .. } => {
                true
            }
            Error::Tls { error, .. } => error.is_retryable(),
            // The server starts or stops.
            Error::Refused { code, .. } => matches!(code.as_str(), "57P01" | "57P02" | "57P03"),
            Error::NotBound
            | Error::Authentication(_)
            | Error::NoPassword(_)
            | Error::OtherVerifier(_)
            | Error::Scram(_)
            | Error::Protocol(_) => false,
        }
    }
}

impl From<hotrow_wire::Error> for Error {
    fn from(error: hotrow_wire::Error) -> Self {
        Error::Protocol(error.to_string())
    }
}

/// Rows of a statement of the gateway, as text.
pub type Rows = Vec<Vec<Option<String>>>;

/// A connection that is ready for work.
#[derive(Debug)]
pub struct Upstream {
    pub read: ReadHalf,
    /// The half that is written.
    pub write: WriteHalf,
    /// Received bytes that are not processed.
    pub input: BytesMut,
    /// Bytes to be written.
    pub output: BytesMut,
    /// Notifications that have arrived during a statement of the gateway, for the session that holds the connection.
    pub notifications: BytesMut,
    /// The settings that the server reports, but the client's name at login.
    pub parameters: Vec<(String, String)>,
    /// Settings that clients were told and with which these agree. Comparing them for each transaction would cost more than all
    /// else at its beginning.
    pub agrees_with: Option<Arc<ServerSettings>>,
    pub prepared: PreparedStatements,
    /// For cancel requests: the backend's process ID.
    pub process_id: u32,
    /// For cancel requests: the backend's secret.
    pub secret: Bytes,
    /// The host.
    pub address: Arc<Address>,
    /// The hash of the server's certificate that a login can be bound to.
    pub end_point: Option<Bytes>,
    pub(crate) timeline: TimelineUse,
    /// Counts the connection for its login.
    pub counted: Arc<()>,
}

impl Upstream {
    /// Whether the session speaks UTF-8.
    pub fn speaks_utf8(&self) -> bool {
        self.at_login("client_encoding") == Some("UTF8")
    }

    /// The value of a setting that the server reported at login.
    pub fn at_login(&self, wanted: &str) -> Option<&str> {
        self.parameters.iter().find(|(name, _)| name == wanted).map(|(_, value)| value.as_str())
    }

    /// Runs a statement of the gateway with text parameters. Returns its rows as text.
    pub async fn query(&mut self, text: &str, values: &[&str]) -> Result<Rows, Error> {
        self.put_statement(text, values);
        self.rows().await
    }

    /// The rows of a query, or none if the role is not allowed to run it.
    pub async fn query_if_allowed(&mut self, text: &str, values: &[&str]) -> Result<Option<Rows>, Error> {
        match self.query(text, values).await {
            Ok(rows) => Ok(Some(rows)),
            Err(Error::Refused { message, .. }) => {
                tracing::debug!(
                    message,
                    "the role cannot ask the server for all facts that the gateway uses"
                );
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Whether a primary on a higher timeline has served since the connection was made.
    pub fn is_left_behind(&self) -> bool {
        self.timeline.is_over()
    }

    /// The same, whatever the settings of the client are.
    pub async fn query_catalog(&mut self, text: &str, values: &[&str]) -> Result<Rows, Error> {
        self.put_statement(include_str!("../sql/own_query.sql"), &[]);
        self.query(text, values).await
    }

    /// Runs a query that is prepared under this name, or is to be prepared, on a connection that no session uses.
    /// Returns its rows as text.
    pub async fn query_prepared(
        &mut self,
        name: &str,
        text: Option<&str>,
        values: &[&str],
    ) -> Result<Rows, Error> {
        let (name, out) = (name.as_bytes(), &mut self.output);
        if let Some(text) = text {
            frontend::ObjectName { statement: true, name }.put(frontend::tag::CLOSE, out); // an earlier one that failed
            frontend::Parse { name, text: text.as_bytes(), types: &[] }.put(out);
        }
        frontend::put_bind_text(out, name, values.iter().map(|value| value.as_bytes()));
        out.extend_from_slice(frontend::EXECUTE);
        self.rows().await
    }

    /// Prepares a statement in the place of an earlier one. Returns the server's refusal, if any.
    pub async fn prepare(&mut self, name: &[u8], text: &[u8], types: &[u8]) -> Result<Option<Error>, Error> {
        frontend::ObjectName { statement: true, name }.put(frontend::tag::CLOSE, &mut self.output);
        frontend::Parse { name, text, types }.put(&mut self.output);
        self.output.extend_from_slice(frontend::SYNC);
        self.flush().await?;
        self.until_ready(|_| Ok(())).await
    }

    /// Runs statements of the gateway that return nothing, in one transaction.
    pub async fn run_each(&mut self, texts: impl Iterator<Item = String>) -> Result<(), Error> {
        texts.for_each(|text| self.put_statement(&text, &[]));
        self.rows().await.map(drop)
    }

    /// Runs a text of the gateway whose statements return nothing, on a connection that no session holds: the unnamed
    /// statement is lost.
    pub async fn run(&mut self, text: &str) -> Result<(), Error> {
        frontend::put_query(&mut self.output, text);
        self.prepared.forget_unnamed(); // a simple query removes it
        self.flush().await?;
        self.until_ready(|_| Ok(())).await?.map_or(Ok(()), Err)
    }

    /// Removes all settings of the session and sets these and the client's name, in one transaction: if the server refuses
    /// one of them, the connection keeps the settings that it has.
    pub async fn set_settings(&mut self, settings: &Settings, application_name: &str) -> Result<(), Error> {
        self.put_statement(include_str!("../sql/reset_settings.sql"), &[]);
        let [names, values] = settings.arrays(application_name);
        self.put_statement(include_str!("../sql/apply_settings.sql"), &[&names, &values]);
        self.rows().await.map(drop)
    }

    fn put_statement(&mut self, text: &str, values: &[&str]) {
        let out = &mut self.output;
        let [statement, portal] =
            [true, false].map(|statement| frontend::ObjectName { statement, name: OWN_STATEMENT });
        statement.put(frontend::tag::CLOSE, out); // an earlier one that failed is still there
        frontend::Parse { name: OWN_STATEMENT, text: text.as_bytes(), types: &[] }.put(out);
        frontend::put_bind_text_to(
            out,
            OWN_STATEMENT,
            OWN_STATEMENT,
            values.iter().map(|value| value.as_bytes()),
        );
        frontend::put_execute(out, OWN_STATEMENT);
        portal.put(frontend::tag::CLOSE, out);
        statement.put(frontend::tag::CLOSE, out);
    }

    /// Ends a transaction of such statements. Returns its rows.
    async fn rows(&mut self) -> Result<Rows, Error> {
        self.output.extend_from_slice(frontend::SYNC);
        self.flush().await?;
        let mut rows = Vec::new();
        let refusal = self.until_ready(|frame| {
            if frame[0] == tag::DATA_ROW {
                let text = |value: &[u8]| String::from_utf8_lossy(value).into_owned();
                rows.push(backend::data_row(&frame[5..])?.into_iter().map(|value| value.map(text)).collect());
            }
            Ok(())
        });
        refusal.await?.map_or(Ok(rows), Err)
    }

    /// Notes a setting that the server reports. The client's name stays that of the login.
    pub fn note_setting(&mut self, name: &str, value: &str) {
        let known = self.parameters.iter_mut().find(|(known, _)| known == name && name != "application_name");
        if let Some((_, known)) = known {
            value.clone_into(known);
            self.agrees_with = None;
        }
    }

    /// The settings with which the server begins a session like this one.
    pub async fn server_settings(&mut self) -> Result<ServerSettings, Error> {
        let rows = self.query(include_str!("../sql/session_defaults.sql"), &[]).await?;
        let defaults = rows.into_iter().next().and_then(SessionDefaults::read);
        Ok(ServerSettings { parameters: self.parameters.clone(), defaults })
    }

    /// The server's description of a statement: the types of its parameters and its columns. None if the statement is
    /// wrong.
    pub async fn describe(&mut self, text: &[u8], types: &[u8]) -> Result<Option<Bytes>, Error> {
        frontend::Parse { name: b"", text, types }.put(&mut self.output);
        self.prepared.forget_unnamed();
        frontend::ObjectName { statement: true, name: b"" }.put(frontend::tag::DESCRIBE, &mut self.output);
        self.output.extend_from_slice(frontend::SYNC);
        self.flush().await?;
        let mut description = BytesMut::new();
        let refusal = self.until_ready(|frame| {
            if matches!(frame[0], tag::PARAMETER_DESCRIPTION | tag::ROW_DESCRIPTION) {
                description.extend_from_slice(frame);
            }
            Ok(())
        });
        match refusal.await? {
            None => Ok(Some(description.freeze())),
            Some(error) if error.is_lock_timeout() => Err(error),
            Some(_) => Ok(None),
        }
    }

    /// Reads answers until the server is ready. Returns its refusal, if any. A report that ends the connection is an
    /// error.
    pub async fn until_ready(
        &mut self,
        mut each: impl FnMut(&[u8]) -> Result<(), Error>,
    ) -> Result<Option<Error>, Error> {
        let mut refusal = None;
        loop {
            let frame = self.frame().await?;
            match frame[0] {
                tag::ERROR if !Report::read(&frame[5..])?.is_error() => return Err(refused(&frame)),
                tag::ERROR => refusal = Some(refused(&frame)),
                tag::PARAMETER_STATUS => {
                    let (name, value) = backend::parameter_status(&frame[5..])?;
                    self.note_setting(name, value);
                }
                tag::NOTIFICATION => self.notifications.extend_from_slice(&frame),
                tag::READY => return Ok(refusal),
                _ => each(&frame)?,
            }
        }
    }

    /// The next frame from the server.
    pub async fn frame(&mut self) -> Result<Bytes, Error> {
        loop {
            if let Some(frame) = split(&self.input, |_| limits::MESSAGE_BYTES_MAX)? {
                let length = frame.bytes.len();
                return Ok(self.input.split_to(length).freeze());
            }
            self.read_some().await?;
        }
    }

    /// Whether the server has neither closed the connection nor sent anything on it. Does not wait.
    pub fn is_quiet(&mut self) -> bool {
        let mut context = Context::from_waker(Waker::noop());
        let mut byte = [0];
        let mut buffer = ReadBuf::new(&mut byte);
        self.input.is_empty() && Pin::new(&mut self.read).poll_read(&mut context, &mut buffer).is_pending()
    }

    /// Reads received bytes without waiting. False if there are none, or the connection is lost.
    pub fn read_now(&mut self) -> bool {
        let mut context = Context::from_waker(Waker::noop());
        let fill = std::pin::pin!(self.read.fill(&mut self.input));
        matches!(fill.poll(&mut context), Poll::Ready(Ok(1..)))
    }

    /// Waits for more bytes.
    pub async fn read_some(&mut self) -> Result<(), Error> {
        match self.read.fill(&mut self.input).await {
            Ok(1..) => Ok(()),
            Ok(0) => Err(self.io(io::ErrorKind::UnexpectedEof.into())),
            Err(error) => Err(self.io(error)),
        }
    }

    /// Skips the answer to a command of the gateway. False if it is incomplete.
    pub fn skip_to_ready(&mut self) -> bool {
        while let Ok(Some(frame)) = split(&self.input, |_| limits::MESSAGE_BYTES_MAX) {
            let (is_ready, length) = (frame.tag == tag::READY, frame.bytes.len());
            if frame.tag == tag::PARAMETER_STATUS
                && let Ok((name, value)) = backend::parameter_status(frame.body())
            {
                let (name, value) = (name.to_owned(), value.to_owned());
                self.note_setting(&name, &value);
            }
            self.input.advance(length);
            if is_ready {
                return true;
            }
        }
        false
    }

    /// Writes all output.
    pub async fn flush(&mut self) -> Result<(), Error> {
        let result = self.write.drain(&mut self.output).await;
        result.map_err(|error| self.io(error))
    }

    fn io(&self, error: io::Error) -> Error {
        Error::Io { address: (*self.address).clone(), error }
    }
}

/// The server's refusal, from its ErrorResponse.
pub fn refused(frame: &[u8]) -> Error {
    let report = Report::read(&frame[5..]).unwrap_or_default();
    Error::Refused {
        code: String::from_utf8_lossy(report.code).into_owned(),
        message: String::from_utf8_lossy(report.message).into_owned(),
        frame: Bytes::copy_from_slice(frame),
    }
}
