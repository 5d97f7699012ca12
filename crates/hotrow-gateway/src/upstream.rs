//! One connection to the server: log-in, the gateway's own small queries, and what is prepared on it. What goes
//! over it otherwise is the business of the lane or session that holds it.

use std::collections::{HashSet, VecDeque};
use std::io;
use std::pin::Pin;
use std::task::{Context, Waker};

use bytes::{Bytes, BytesMut};
use fallible_iterator::FallibleIterator;
use hotrow_core::limits;
use hotrow_wire::backend::{self, Report, tag};
use hotrow_wire::{frontend, split, startup};
use postgres_protocol::authentication::{md5_hash, sasl};
use postgres_protocol::message::backend::Message;
use postgres_protocol::message::frontend as message;
use tokio::io::{AsyncRead, ReadBuf};

use crate::config;
use crate::net::{self, Address, ReadHalf, WriteHalf};

/// Why there is no connection, or none any more.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The network.
    #[error("no connection to {address}: {error}")]
    Io {
        /// Where to.
        address: Address,
        /// What the system says.
        error: io::Error,
    },
    /// The server refused; its ErrorResponse as it came.
    #[error("{code}: {message}")]
    Refused {
        /// Its SQLSTATE.
        code: String,
        /// Its message.
        message: String,
        /// The whole frame.
        frame: Bytes,
    },
    /// The server wants what we can't give.
    #[error("the server asks for {0}, which this version can't answer")]
    Authentication(&'static str),
    /// A password is needed.
    #[error("the server asks for a password and the upstream URL has none")]
    NoPassword,
    /// The server sent what it should not.
    #[error("the server sent something unexpected: {0}")]
    Protocol(String),
    /// It took too long.
    #[error("the server did not answer within {0} ms")]
    Timeout(u64),
}

impl From<hotrow_wire::Error> for Error {
    fn from(error: hotrow_wire::Error) -> Self {
        Error::Protocol(error.to_string())
    }
}

/// A connection that is ready for work.
#[derive(Debug)]
pub struct Upstream {
    /// The half that is read.
    pub read: ReadHalf,
    /// The half that is written.
    pub write: WriteHalf,
    /// What was read and not yet looked at.
    pub input: BytesMut,
    /// What is to be written.
    pub output: BytesMut,
    /// What the server said of itself at log-in.
    pub parameters: Vec<(String, String)>,
    /// Which statements are prepared on it.
    pub prepared: Prepared,
    /// For cancel requests: the backend's process id.
    pub process_id: u32,
    /// For cancel requests: its secret.
    pub secret: Bytes,
    address: Address,
}

impl Upstream {
    /// Connects and logs in with these start-up parameters.
    pub async fn connect(server: &config::Upstream, parameters: &[(String, String)]) -> Result<Self, Error> {
        let limit = std::time::Duration::from_millis(limits::CONNECT_TIMEOUT_MS);
        match tokio::time::timeout(limit, Self::log_in(server, parameters)).await {
            Ok(result) => result,
            Err(_) => Err(Error::Timeout(limits::CONNECT_TIMEOUT_MS)),
        }
    }

    async fn log_in(server: &config::Upstream, parameters: &[(String, String)]) -> Result<Self, Error> {
        let address = server.address.clone();
        let (read, write) =
            net::connect(&address).await.map_err(|error| Error::Io { address: address.clone(), error })?;
        let mut upstream = Upstream {
            read,
            write,
            input: BytesMut::new(),
            output: BytesMut::new(),
            parameters: Vec::new(),
            prepared: Prepared::default(),
            process_id: 0,
            secret: Bytes::new(),
            address,
        };
        let pairs = parameters.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        startup::put_start(&mut upstream.output, pairs);
        upstream.flush().await?;
        let user = parameters.iter().find(|(name, _)| name == "user").map_or("", |(_, value)| value);
        upstream.authenticate(user, server.password.as_deref()).await?;
        upstream.settle_in().await?;
        Ok(upstream)
    }

    async fn authenticate(&mut self, user: &str, password: Option<&[u8]>) -> Result<(), Error> {
        let mut scram = None;
        loop {
            match self.message().await? {
                Message::AuthenticationOk => return Ok(()),
                Message::AuthenticationCleartextPassword => {
                    let password = password.ok_or(Error::NoPassword)?;
                    self.put(|out| message::password_message(password, out))?;
                }
                Message::AuthenticationMd5Password(body) => {
                    let password = password.ok_or(Error::NoPassword)?;
                    let hash = md5_hash(user.as_bytes(), password, body.salt());
                    self.put(|out| message::password_message(hash.as_bytes(), out))?;
                }
                Message::AuthenticationSasl(body) => {
                    let password = password.ok_or(Error::NoPassword)?;
                    let mut mechanisms = body.mechanisms();
                    let offered = mechanisms
                        .any(|name| Ok(name == sasl::SCRAM_SHA_256))
                        .map_err(|error| Error::Protocol(error.to_string()))?;
                    if !offered {
                        return Err(Error::Authentication("an unknown SASL mechanism"));
                    }
                    let state = sasl::ScramSha256::new(password, sasl::ChannelBinding::unsupported());
                    self.put(|out| {
                        message::sasl_initial_response(sasl::SCRAM_SHA_256, state.message(), out)
                    })?;
                    scram = Some(state);
                }
                Message::AuthenticationSaslContinue(body) => {
                    let state = scram.as_mut().ok_or(Error::Authentication("SASL out of order"))?;
                    state.update(body.data()).map_err(|error| Error::Protocol(error.to_string()))?;
                    let answer = state.message().to_vec();
                    self.put(|out| message::sasl_response(&answer, out))?;
                }
                Message::AuthenticationSaslFinal(body) => {
                    let state = scram.as_mut().ok_or(Error::Authentication("SASL out of order"))?;
                    state.finish(body.data()).map_err(|error| Error::Protocol(error.to_string()))?;
                }
                _ => return Err(Error::Authentication("a kind of authentication")),
            }
            self.flush().await?;
        }
    }

    async fn settle_in(&mut self) -> Result<(), Error> {
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

    /// Runs one statement of the gateway's own with text parameters; its rows as text.
    pub async fn query(&mut self, text: &str, values: &[&str]) -> Result<Vec<Vec<Option<String>>>, Error> {
        frontend::Parse { name: b"", text: text.as_bytes(), types: &[] }.put(&mut self.output);
        self.prepared.unnamed = None;
        frontend::put_bind_text(&mut self.output, b"", values.iter().map(|value| value.as_bytes()));
        self.output.extend_from_slice(frontend::EXECUTE);
        self.output.extend_from_slice(frontend::SYNC);
        self.flush().await?;
        let (mut rows, mut error) = (Vec::new(), None);
        loop {
            let frame = self.frame().await?;
            match frame[0] {
                tag::DATA_ROW => {
                    let text = |value: &[u8]| String::from_utf8_lossy(value).into_owned();
                    rows.push(
                        backend::data_row(&frame[5..])?.into_iter().map(|value| value.map(text)).collect(),
                    );
                }
                tag::ERROR => {
                    let refusal = refused(&frame);
                    if !Report::read(&frame[5..])?.is_error() {
                        return Err(refusal);
                    }
                    error = Some(refusal);
                }
                tag::READY => return error.map_or(Ok(rows), Err),
                _ => {}
            }
        }
    }

    /// The next frame from the server.
    async fn frame(&mut self) -> Result<Bytes, Error> {
        loop {
            if let Some(frame) = split(&self.input, |_| limits::MESSAGE_BYTES_MAX)? {
                let length = frame.bytes.len();
                return Ok(self.input.split_to(length).freeze());
            }
            let read = self.read.fill(&mut self.input).await;
            if read.map_err(|error| self.io(error))? == 0 {
                return Err(self.io(io::ErrorKind::UnexpectedEof.into()));
            }
        }
    }

    async fn message(&mut self) -> Result<Message, Error> {
        let frame = self.frame().await?;
        if frame[0] == tag::ERROR {
            return Err(refused(&frame));
        }
        let mut bytes = BytesMut::from(&frame[..]);
        Message::parse(&mut bytes)
            .ok()
            .flatten()
            .ok_or_else(|| Error::Protocol(format!("message {:?} at log-in", char::from(frame[0]))))
    }

    fn put(&mut self, write: impl FnOnce(&mut BytesMut) -> io::Result<()>) -> Result<(), Error> {
        write(&mut self.output).map_err(|error| Error::Protocol(error.to_string()))
    }

    /// Whether the server has neither closed the connection nor sent anything on it. Waits for nothing.
    pub fn is_quiet(&mut self) -> bool {
        let mut context = Context::from_waker(Waker::noop());
        let mut byte = [0];
        let mut buffer = ReadBuf::new(&mut byte);
        self.input.is_empty() && Pin::new(&mut self.read).poll_read(&mut context, &mut buffer).is_pending()
    }

    /// Writes all that is to be written.
    pub async fn flush(&mut self) -> Result<(), Error> {
        let result = self.write.drain(&mut self.output).await;
        result.map_err(|error| self.io(error))
    }

    fn io(&self, error: io::Error) -> Error {
        Error::Io { address: self.address.clone(), error }
    }
}

fn refused(frame: &[u8]) -> Error {
    let report = Report::read(&frame[5..]).unwrap_or_default();
    Error::Refused {
        code: String::from_utf8_lossy(report.code).into_owned(),
        message: String::from_utf8_lossy(report.message).into_owned(),
        frame: Bytes::copy_from_slice(frame),
    }
}

/// Asks the server to cancel what one of its backends does; over when the server has closed the connection.
pub async fn cancel(address: &Address, process_id: u32, secret: &[u8]) -> io::Result<()> {
    let (mut read, write) = net::connect(address).await?;
    let mut out = BytesMut::new();
    startup::put_cancel(&mut out, process_id, secret);
    write.drain(&mut out).await?;
    while read.fill(&mut out).await? > 0 {
        out.clear();
    }
    Ok(())
}

/// Which statements a connection has prepared under the gateway's names; the oldest makes room.
#[derive(Debug, Default)]
pub struct Prepared {
    statements: HashSet<u64>,
    order: VecDeque<u64>,
    /// The statement behind the unnamed one.
    pub unnamed: Option<u64>,
}

impl Prepared {
    /// Whether this statement is prepared.
    pub fn has(&self, statement: u64) -> bool {
        self.statements.contains(&statement)
    }

    /// Notes that it is; returns one to close if there are too many.
    pub fn add(&mut self, statement: u64) -> Option<u64> {
        if self.statements.insert(statement) {
            self.order.push_back(statement);
        }
        if self.statements.len() <= limits::PREPARED_MAX {
            return None;
        }
        let oldest = self.order.pop_front()?;
        self.statements.remove(&oldest);
        Some(oldest)
    }

    /// Notes that it isn't, under its name or as the unnamed one.
    pub fn forget(&mut self, statement: u64) {
        if self.statements.remove(&statement) {
            self.order.retain(|other| *other != statement);
        }
        if self.unnamed == Some(statement) {
            self.unnamed = None;
        }
    }

    /// Nothing is prepared any more.
    pub fn clear(&mut self) {
        *self = Prepared::default();
    }
}

/// The name under which a statement is prepared on every upstream connection.
pub fn statement_name(statement: u64) -> String {
    format!("hotrow_{statement}")
}
