//! A login at the server by `mysql_native_password`, and the rows of a query.

use hotrow_connect::net::tls::client::ConnectError;
use hotrow_mysql_wire::WireError;
use hotrow_mysql_wire::capabilities::{
    CONNECT_WITH_DB, PLUGIN_AUTH, PLUGIN_AUTH_LENENC, PROTOCOL_41, SECURE_CONNECTION, SSL,
};
use hotrow_mysql_wire::command::Command;
use hotrow_mysql_wire::handshake::{Greeting, Response, Switch};
use hotrow_mysql_wire::message::{EOF, ERR, Err as ErrPacket, OK};
use hotrow_mysql_wire::native::{self, Hash};
use hotrow_mysql_wire::reply::{Progress, ReplyReader};
use hotrow_mysql_wire::rows::Whole;
use hotrow_mysql_wire::scan::Scanned;

use crate::socket::{Socket, SocketError};
use crate::upstream::Upstream;

/// The collation utf8mb4_general_ci, which every server has.
const UTF8MB4: u8 = 45;
const PACKET_BYTES_MAX: u32 = 1 << 24;

/// Why a login or a query has failed.
#[derive(Debug, thiserror::Error)]
pub enum OwnError {
    /// The connection.
    #[error(transparent)]
    Socket(#[from] SocketError),
    /// The server refuses.
    #[error("the server answers: {0}")]
    Refused(#[from] ErrPacket),
    /// The account needs another plugin.
    #[error(
        "the user of the URL authenticates by {0}, and Hotrow itself only by mysql_native_password; create a user for it with IDENTIFIED VIA mysql_native_password"
    )]
    Plugin(String),
    /// The server has no TLS.
    #[error(
        "the server does not offer TLS, and sslmode requires it; set ssl_cert and ssl_key there, or sslmode=disable in the URL"
    )]
    NoTls,
    /// TLS with the server.
    #[error(transparent)]
    Tls(#[from] ConnectError),
    /// The connection before this one does not end.
    #[error("the lane's former connection does not end")]
    Former,
}

impl From<WireError> for OwnError {
    fn from(error: WireError) -> Self {
        OwnError::Socket(error.into())
    }
}

/// Connects and reads the server's greeting.
pub async fn connect(upstream: &Upstream) -> Result<(Socket, Greeting), OwnError> {
    let mut server = Socket::connect(&upstream.host, upstream.port).await.map_err(SocketError::from)?;
    let packet = server.next().await?;
    if packet.payload.first() == Some(&ERR) {
        return Err(ErrPacket::read(&packet.payload)?.into());
    }
    Ok((server, Greeting::read(&packet.payload)?))
}

/// What a login of the gateway sends.
#[derive(Clone)]
pub struct Credentials {
    pub user: Vec<u8>,
    /// SHA1 of the password. None if it is empty.
    pub key: Option<Hash>,
    pub database: Option<Vec<u8>>,
    pub capabilities: u32,
    pub collation: u8,
}

impl Credentials {
    /// Those of the upstream's user.
    pub fn own(upstream: &Upstream) -> Self {
        let password = upstream.password.bytes();
        Credentials {
            user: upstream.user.clone().into_bytes(),
            key: (!password.is_empty()).then(|| native::key(password)),
            database: upstream.database.clone().map(String::into_bytes),
            capabilities: PROTOCOL_41
                | SECURE_CONNECTION
                | PLUGIN_AUTH
                | PLUGIN_AUTH_LENENC
                | CONNECT_WITH_DB,
            collation: UTF8MB4,
        }
    }
}

/// Sends the response to the greeting, under TLS if the upstream wants it and the server has it. Returns also the number of that
/// packet.
pub async fn respond(
    mut server: Socket,
    greeting: &Greeting,
    upstream: &Upstream,
    mut response: Response,
) -> Result<(Socket, u8), OwnError> {
    let mut sequence = 1;
    if let Some(tls) = &upstream.tls {
        if greeting.capabilities & SSL != 0 {
            response.capabilities |= SSL;
            server.send(sequence, &response.tls_request()).await?;
            server = server.begin_tls(tls, &upstream.host).await?;
            sequence += 1;
        } else if tls.is_required() {
            return Err(OwnError::NoTls);
        }
    }
    server.send(sequence, &response.payload()).await?;
    Ok((server, sequence))
}

/// Logs in after the greeting.
pub async fn login(
    server: Socket,
    greeting: &Greeting,
    upstream: &Upstream,
    credentials: &Credentials,
) -> Result<Socket, OwnError> {
    let proof = |nonce: Option<Hash>| match (nonce, credentials.key) {
        (Some(nonce), Some(key)) => native::proof(&nonce, &key).to_vec(),
        _ => Vec::new(),
    };
    let response = Response {
        capabilities: greeting.capabilities & credentials.capabilities,
        packet_bytes_max: PACKET_BYTES_MAX,
        collation: credentials.collation,
        user: credentials.user.clone(),
        proof: proof(greeting.native_nonce()),
        database: credentials.database.clone(),
        plugin: Some(native::PLUGIN.as_bytes().to_vec()),
        attributes: None,
    };
    let (mut server, _) = respond(server, greeting, upstream, response).await?;
    let mut packet = server.next().await?;
    if packet.payload.first() == Some(&EOF) {
        let switch = Switch::read(&packet.payload)?;
        if switch.plugin != native::PLUGIN.as_bytes() {
            return Err(OwnError::Plugin(String::from_utf8_lossy(&switch.plugin).into_owned()));
        }
        server.send(packet.sequence.wrapping_add(1), &proof(switch.native_nonce())).await?;
        packet = server.next().await?;
    }
    if packet.payload.first() != Some(&OK) {
        return Err(ErrPacket::read(&packet.payload)?.into());
    }
    Ok(server)
}

/// Logs in as the upstream's user after the greeting, and leaves.
pub async fn login_and_leave(
    server: Socket,
    greeting: &Greeting,
    upstream: &Upstream,
) -> Result<(), OwnError> {
    let mut server = login(server, greeting, upstream, &Credentials::own(upstream)).await?;
    Ok(server.send(0, &[Command::Quit as u8]).await?)
}

/// The rows of a query with one result, as texts.
pub async fn rows(
    server: &mut Socket,
    deprecates_eof: bool,
    sql: &str,
) -> Result<Vec<Vec<Option<String>>>, OwnError> {
    let packets = reply(server, deprecates_eof, Command::Query, sql.as_bytes()).await?;
    Ok(Whole::of(packets, deprecates_eof)?.texts()?)
}

/// The packets of the reply to a command that has one. None of them is empty.
pub(crate) async fn reply(
    server: &mut Socket,
    deprecates_eof: bool,
    command: Command,
    rest: &[u8],
) -> Result<Vec<Vec<u8>>, OwnError> {
    server.send(0, &command.payload(rest)).await?;
    let mut reader = ReplyReader::new(command.reply(), deprecates_eof).expect("the command has a reply");
    let mut packets = Vec::new();
    loop {
        let payload = server.next().await?.payload;
        match reader.packet(&Scanned::of(&payload))? {
            Progress::Ended { is_error: true, .. } => return Err(ErrPacket::read(&payload)?.into()),
            progress => {
                packets.push(payload.to_vec());
                if progress != Progress::Continues {
                    return Ok(packets);
                }
            }
        }
    }
}
