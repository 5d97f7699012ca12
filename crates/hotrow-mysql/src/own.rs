//! The gateway's own log-in at the server: to check it at the start, and to finish log-ins that clients have abandoned.

use hotrow_mysql_wire::capabilities::{
    CONNECT_WITH_DB, PLUGIN_AUTH, PLUGIN_AUTH_LENENC, PROTOCOL_41, SECURE_CONNECTION,
};
use hotrow_mysql_wire::command::Command;
use hotrow_mysql_wire::handshake::{Greeting, Response, Switch};
use hotrow_mysql_wire::message::{EOF, ERR, Err as ErrPacket, OK};
use hotrow_mysql_wire::native;
use hotrow_mysql_wire::{WireError, native::Hash};
use tokio::net::TcpStream;

use crate::socket::{Socket, SocketError};
use crate::upstream::Upstream;

/// The collation utf8mb4_general_ci, which every server has.
const UTF8MB4: u8 = 45;
const PACKET_BYTES_MAX: u32 = 1 << 24;

/// Why the gateway cannot log in.
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
        "the user of the upstream authenticates by {0}, and the gateway itself only by mysql_native_password; create a user for the gateway with IDENTIFIED VIA mysql_native_password"
    )]
    Plugin(String),
}

impl From<WireError> for OwnError {
    fn from(error: WireError) -> Self {
        OwnError::Socket(error.into())
    }
}

/// Connects and reads the server's greeting.
pub async fn connect(upstream: &Upstream) -> Result<(Socket, Greeting), OwnError> {
    let stream = TcpStream::connect((upstream.host.as_str(), upstream.port)).await;
    let mut server = Socket::new(stream.map_err(SocketError::from)?).map_err(SocketError::from)?;
    let packet = server.next().await?;
    if packet.payload.first() == Some(&ERR) {
        return Err(ErrPacket::read(&packet.payload)?.into());
    }
    Ok((server, Greeting::read(&packet.payload)?))
}

/// Logs in as the upstream's user after the greeting, and leaves.
pub async fn log_in_and_leave(
    server: &mut Socket,
    greeting: &Greeting,
    upstream: &Upstream,
) -> Result<(), OwnError> {
    let proof = |nonce: Option<Hash>| match nonce {
        Some(nonce) if !upstream.password.bytes().is_empty() => {
            native::proof(&nonce, &native::key(upstream.password.bytes())).to_vec()
        }
        _ => Vec::new(),
    };
    let response = Response {
        capabilities: greeting.capabilities
            & (PROTOCOL_41 | SECURE_CONNECTION | PLUGIN_AUTH | PLUGIN_AUTH_LENENC | CONNECT_WITH_DB),
        packet_bytes_max: PACKET_BYTES_MAX,
        collation: UTF8MB4,
        user: upstream.user.clone().into_bytes(),
        proof: proof(greeting.native_nonce()),
        database: upstream.database.clone().map(String::into_bytes),
        plugin: Some(native::PLUGIN.as_bytes().to_vec()),
        attributes: None,
    };
    server.send(1, &response.payload()).await?;
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
    Ok(server.send(0, &[Command::Quit as u8]).await?)
}
