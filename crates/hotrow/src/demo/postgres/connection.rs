//! One buyer's connection to PostgreSQL: logs in, prepares the purchase once, and buys with raw frames.
//!
//! It uses frames instead of a driver because a purchase then costs the client one send and one receive. The compared
//! servers are the bottleneck and not the load.

use std::io;

use bytes::BytesMut;
use postgres_protocol::authentication::md5_hash;
use postgres_protocol::authentication::sasl::{ChannelBinding, SCRAM_SHA_256, ScramSha256};
use postgres_protocol::message::backend::{ErrorResponseBody, Message};
use postgres_protocol::message::frontend;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_postgres::config::Host;
use tokio_postgres::fallible_iterator::FallibleIterator;

use super::super::answer::Answer;
use super::super::error::Error;
use super::super::without_comment;

const BUY: &str = include_str!("../../../sql/demo_buy.sql");
const ITEM: i32 = 1;

/// The purchase's SQL.
pub fn purchase_sql() -> &'static str {
    without_comment(BUY)
}

/// Address and login for buyers.
#[derive(Clone, Debug)]
pub struct Target {
    /// Name or address.
    pub host: String,
    /// TCP port.
    pub port: u16,
    user: String,
    database: String,
    password: Vec<u8>,
}

impl Target {
    /// The target of a connection URL; TCP only.
    pub fn of(config: &tokio_postgres::Config) -> Result<Self, Error> {
        let Some(Host::Tcp(host)) = config.get_hosts().first() else {
            return Err(Error::Incomplete("TCP host"));
        };
        let user = config.get_user().ok_or(Error::Incomplete("user"))?.to_owned();
        Ok(Self {
            host: host.clone(),
            port: config.get_ports().first().copied().unwrap_or(5432),
            database: config.get_dbname().unwrap_or(&user).to_owned(),
            user,
            password: config.get_password().unwrap_or_default().to_vec(),
        })
    }

    /// The same login at another address.
    pub fn at(&self, host: &str, port: u16) -> Self {
        Self { host: host.to_owned(), port, ..self.clone() }
    }

    /// Host and port.
    pub fn address(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }
}

/// A connection with the purchase prepared.
pub struct Connection {
    stream: TcpStream,
    inbox: BytesMut,
    purchase: BytesMut,
}

impl Connection {
    /// Connects, logs in and prepares the purchase.
    pub async fn open(target: &Target) -> Result<Self, Error> {
        let lost = |source| Error::Line { address: target.address(), source };
        let turned_away = |answer| Error::TurnedAway { address: target.address(), answer };

        let stream = TcpStream::connect((target.host.as_str(), target.port)).await.map_err(lost)?;
        stream.set_nodelay(true).map_err(lost)?;
        let mut connection =
            Self { stream, inbox: BytesMut::with_capacity(4096), purchase: purchase().map_err(lost)? };
        connection.login(target).await.map_err(lost)?.map_err(turned_away)?;
        connection.prepare().await.map_err(lost)?.map_err(turned_away)?;
        Ok(connection)
    }

    /// Buys one item: sends Bind, Execute and Sync at once, then reads to the end of the answer.
    pub async fn buy(&mut self) -> io::Result<Answer> {
        self.stream.write_all(&self.purchase).await?;
        let mut answer = Answer::Failed("the server answered without a result".to_owned());
        loop {
            match self.receive().await? {
                Message::CommandComplete(body) if body.tag()? == "UPDATE 1" => answer = Answer::Sold,
                Message::CommandComplete(_) => answer = Answer::Refused,
                Message::ErrorResponse(body) => answer = Answer::Failed(words(&body)?),
                Message::ReadyForQuery(_) => return Ok(answer),
                _ => {}
            }
        }
    }

    async fn login(&mut self, target: &Target) -> io::Result<Result<(), String>> {
        let parameters = [
            ("user", target.user.as_str()),
            ("database", target.database.as_str()),
            ("application_name", "hotrow demo"),
        ];
        let mut out = BytesMut::new();
        frontend::startup_message(parameters, &mut out)?;
        let mut scram = ScramSha256::new(&target.password, ChannelBinding::unsupported());
        loop {
            self.stream.write_all_buf(&mut out).await?;
            match self.receive().await? {
                Message::AuthenticationCleartextPassword => {
                    frontend::password_message(&target.password, &mut out)?
                }
                Message::AuthenticationMd5Password(body) => {
                    let hash = md5_hash(target.user.as_bytes(), &target.password, body.salt());
                    frontend::password_message(hash.as_bytes(), &mut out)?;
                }
                Message::AuthenticationSasl(_) => {
                    frontend::sasl_initial_response(SCRAM_SHA_256, scram.message(), &mut out)?;
                }
                Message::AuthenticationSaslContinue(body) => {
                    scram.update(body.data())?;
                    frontend::sasl_response(scram.message(), &mut out)?;
                }
                Message::AuthenticationSaslFinal(body) => scram.finish(body.data())?,
                Message::ErrorResponse(body) => return Ok(Err(words(&body)?)),
                Message::ReadyForQuery(_) => return Ok(Ok(())),
                _ => {}
            }
        }
    }

    async fn prepare(&mut self) -> io::Result<Result<(), String>> {
        let mut out = BytesMut::new();
        frontend::parse("buy", purchase_sql(), [], &mut out)?;
        frontend::sync(&mut out);
        self.stream.write_all_buf(&mut out).await?;
        let mut prepared = Ok(());
        loop {
            match self.receive().await? {
                Message::ErrorResponse(body) => prepared = Err(words(&body)?),
                Message::ReadyForQuery(_) => return Ok(prepared),
                _ => {}
            }
        }
    }

    async fn receive(&mut self) -> io::Result<Message> {
        loop {
            if let Some(message) = Message::parse(&mut self.inbox)? {
                return Ok(message);
            }
            if self.stream.read_buf(&mut self.inbox).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }
}

/// The frames of one purchase, which are the same each time.
fn purchase() -> io::Result<BytesMut> {
    let mut frames = BytesMut::new();
    let text_format = 0;
    let id = |id: i32, out: &mut BytesMut| {
        out.extend_from_slice(id.to_string().as_bytes());
        Ok(postgres_protocol::IsNull::No)
    };
    frontend::bind("", "buy", [text_format], [ITEM], id, [], &mut frames).map_err(|error| match error {
        frontend::BindError::Conversion(error) => io::Error::other(error),
        frontend::BindError::Serialization(error) => error,
    })?;
    frontend::execute("", 0, &mut frames)?;
    frontend::sync(&mut frames);
    Ok(frames)
}

/// SQLSTATE and message of an error.
fn words(body: &ErrorResponseBody) -> io::Result<String> {
    let (mut state, mut message) = (String::new(), String::new());
    let mut fields = body.fields();
    while let Some(field) = fields.next()? {
        match field.type_() {
            b'C' => state = String::from_utf8_lossy(field.value_bytes()).into_owned(),
            b'M' => message = String::from_utf8_lossy(field.value_bytes()).into_owned(),
            _ => {}
        }
    }
    Ok(format!("{message} ({state})"))
}
