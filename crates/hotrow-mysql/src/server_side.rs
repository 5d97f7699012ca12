//! The session's own connection, as the client's loop sees it: bytes go there, and the gateway itself can ask something.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::BytesMut;
use hotrow_connect::net::WriteHalf;
use hotrow_mysql_wire::command::Command;
use hotrow_mysql_wire::message::Err as ErrPacket;
use hotrow_mysql_wire::packet;
use hotrow_mysql_wire::reply::ReplyReader;
use hotrow_mysql_wire::scan::Scanned;
use tokio::sync::oneshot;

use crate::expected::{Expected, Reply};
use crate::limits;

/// The connection's half for commands, and the replies that are expected.
pub struct ServerSide {
    half: WriteHalf,
    pub expected: Arc<Expected>,
    pub deprecates_eof: bool,
    /// When it last got a command.
    used: Instant,
}

impl ServerSide {
    pub fn new(half: WriteHalf, expected: Arc<Expected>, deprecates_eof: bool) -> Self {
        ServerSide { half, expected, deprecates_eof, used: Instant::now() }
    }

    /// Sends bytes of the client.
    pub async fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        if !bytes.is_empty() {
            self.used = Instant::now();
        }
        self.half.write_all(bytes).await
    }

    /// Sends no more.
    pub async fn shut_down(&mut self) -> io::Result<()> {
        self.half.shutdown().await
    }

    /// Waits until no reply is open. Returns the server's status, if it is known.
    pub async fn idle(&self) -> Option<u16> {
        self.expected.idle().await
    }

    /// Sends a PING if the server has got nothing for a while. It leaves the number of rows of a PING.
    pub async fn keep_alive(&mut self) -> io::Result<()> {
        if self.used.elapsed() < Duration::from_millis(limits::KEEP_ALIVE_MS) {
            return Ok(());
        }
        self.command(Command::Ping, &[]).await.map(drop)
    }

    /// Sends a command of the gateway itself. Returns where the first packet of its reply comes. None if the gateway stops.
    async fn command(
        &mut self,
        command: Command,
        rest: &[u8],
    ) -> io::Result<Option<oneshot::Receiver<Scanned>>> {
        let (told, answer) = oneshot::channel();
        let reader = ReplyReader::new(command.reply(), self.deprecates_eof).expect("the command has a reply");
        if !self.expected.add(Reply::Internal { reader, answer: told }).await {
            return Ok(None);
        }
        let mut out = BytesMut::new();
        packet::put(&mut out, 0, &command.payload(rest));
        self.used = Instant::now();
        self.half.drain(&mut out).await?;
        Ok(Some(answer))
    }

    /// Runs a statement of the gateway itself that returns no rows. Returns the error, if it is short.
    pub async fn ask(&mut self, sql: &str) -> io::Result<Option<ErrPacket>> {
        let Some(answer) = self.command(Command::Query, sql.as_bytes()).await? else { return Ok(None) };
        let packet = answer.await.map_err(|_| io::Error::from(io::ErrorKind::UnexpectedEof))?;
        Ok(ErrPacket::read(packet.head()).ok())
    }
}
