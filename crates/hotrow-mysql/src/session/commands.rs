//! From the client to the server: commands are forwarded as their bytes arrive, except those that are not relayed.

use std::io;
use std::sync::Arc;

use bytes::BytesMut;
use hotrow_mysql_wire::command::Command;
use hotrow_mysql_wire::packet::{HEADER_BYTES, Header};
use hotrow_mysql_wire::reply::ReplyReader;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};

use crate::limits;
use crate::refusal::Refusal;
use crate::session::expected::{Expected, Reply};

/// The loop's state.
pub struct CommandLoop {
    client: OwnedReadHalf,
    server: OwnedWriteHalf,
    expected: Arc<Expected>,
    deprecates_eof: bool,
    splitter: Splitter,
}

impl CommandLoop {
    pub fn new(
        client: OwnedReadHalf,
        server: OwnedWriteHalf,
        expected: Arc<Expected>,
        deprecates_eof: bool,
    ) -> Self {
        CommandLoop { client, server, expected, deprecates_eof, splitter: Splitter::default() }
    }

    /// Forwards until the client closes its half, or sends something that is not MySQL's protocol. Then the server's
    /// half is closed.
    pub async fn run(mut self, mut arrived: BytesMut) -> io::Result<()> {
        loop {
            if !self.forward(&mut arrived).await? {
                return self.server.shutdown().await;
            }
            arrived.reserve(limits::READ_BYTES);
            if self.client.read_buf(&mut arrived).await? == 0 {
                return self.server.shutdown().await;
            }
        }
    }

    /// Forwards what has arrived. False if the session has to end.
    async fn forward(&mut self, arrived: &mut BytesMut) -> io::Result<bool> {
        // Pieces that belong together leave in one write.
        let mut out = BytesMut::new();
        loop {
            match self.splitter.next(arrived) {
                Piece::Incomplete => break,
                Piece::Command(command) => {
                    let Some(reader) = ReplyReader::new(command.reply(), self.deprecates_eof) else {
                        continue;
                    };
                    let is_dialogue = command == Command::ChangeUser;
                    if !self.expect(Reply::OfServer { reader, is_dialogue }, &mut out).await? {
                        return Ok(false);
                    }
                }
                Piece::Refused(byte) => {
                    let payload = Refusal::UnknownCommand(byte).payload();
                    if !self.expect(Reply::Own { payload, is_last: false }, &mut out).await? {
                        return Ok(false);
                    }
                }
                Piece::Dialogue if self.expected.in_dialogue() => {}
                Piece::Dialogue => {
                    let payload = Refusal::OutOfOrder.payload();
                    self.server.write_all(&out).await?;
                    self.expected.add(Reply::Own { payload, is_last: true }).await;
                    return Ok(false);
                }
                Piece::Bytes { length, is_forwarded } => {
                    let bytes = arrived.split_to(length);
                    if !is_forwarded {
                        continue;
                    }
                    match out.is_empty() {
                        true => out = bytes,
                        false => out.unsplit(bytes), // without a copy: they were neighbours
                    }
                }
            }
        }
        self.server.write_all(&out).await?;
        Ok(true)
    }

    /// Adds a reply. If it has to wait for room, the server must have the commands before it. False if the gateway stops:
    /// then no reply was expected, so the server has all earlier commands.
    async fn expect(&mut self, reply: Reply, out: &mut BytesMut) -> io::Result<bool> {
        if !self.expected.has_room() {
            self.server.write_all(out).await?;
            out.clear();
        }
        Ok(self.expected.add(reply).await)
    }
}

/// A part of the client's stream.
#[derive(Debug, PartialEq, Eq)]
enum Piece {
    /// More bytes have to arrive.
    Incomplete,
    /// A command begins. Its bytes follow.
    Command(Command),
    /// A command begins that is not relayed, with this first byte.
    Refused(u8),
    /// A packet begins that is no command.
    Dialogue,
    /// Bytes of the packet that has begun last.
    Bytes { length: usize, is_forwarded: bool },
}

/// Finds the commands in the client's stream.
#[derive(Debug, Default)]
struct Splitter {
    /// Bytes of the current packet that have not passed yet, with its header.
    left: usize,
    is_continued: bool,
    is_dropped: bool,
}

impl Splitter {
    /// The next piece of the bytes that have arrived. The caller removes the bytes of [`Piece::Bytes`].
    fn next(&mut self, arrived: &[u8]) -> Piece {
        if self.left > 0 {
            let length = self.left.min(arrived.len());
            self.left -= length;
            return match length {
                0 => Piece::Incomplete,
                _ => Piece::Bytes { length, is_forwarded: !self.is_dropped },
            };
        }
        let Some(header) = arrived.first_chunk::<HEADER_BYTES>() else { return Piece::Incomplete };
        let header = Header::read(*header);
        let begins = !self.is_continued;
        let first = arrived.get(HEADER_BYTES).copied();
        if begins && header.length > 0 && first.is_none() {
            return Piece::Incomplete;
        }
        self.left = HEADER_BYTES + header.length;
        self.is_continued = header.is_continued();
        if !begins {
            return self.next(arrived);
        }
        if header.sequence != 0 {
            self.is_dropped = false;
            return Piece::Dialogue;
        }
        let byte = first.filter(|_| header.length > 0).unwrap_or(0);
        let command = Command::of(byte);
        self.is_dropped = command.is_none();
        command.map_or(Piece::Refused(byte), Piece::Command)
    }
}
