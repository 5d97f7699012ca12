//! From the client to the server: commands are forwarded as their bytes arrive, except those that are not relayed.

use std::io;

use bytes::BytesMut;
use hotrow_connect::net::ReadHalf;
use hotrow_core::session::RunOutcome;
use hotrow_gateway::lanes::Unblock;
use hotrow_mysql_wire::command::Command;
use hotrow_mysql_wire::packet::{self, HEADER_BYTES, Header};
use hotrow_mysql_wire::reply::ReplyReader;
use tokio::io::AsyncReadExt;

use crate::counting::{NotPacked, SessionCounts};
use crate::expected::Reply;
use crate::lane::Statement;
use crate::limits;
use crate::packing::{FirstPacket, Packer, Run, killed};
use crate::refusal::Refusal;
use crate::server_side::ServerSide;

/// The loop's state.
pub struct CommandLoop {
    client: ReadHalf,
    server: ServerSide,
    packer: Option<Packer>,
    counting: Counting,
    /// Units of a lane wait until the session has run a statement.
    unblock: Option<Unblock<Statement>>,
    splitter: Splitter,
}

/// The session's numbers, and why its statements are passed through if it has no packer.
pub struct Counting {
    pub counts: SessionCounts,
    pub without: RunOutcome,
}

impl CommandLoop {
    pub fn new(client: ReadHalf, server: ServerSide, packer: Option<Packer>, counting: Counting) -> Self {
        let splitter = Splitter { waits_for_texts: packer.is_some(), ..Splitter::default() };
        CommandLoop { client, server, packer, counting, unblock: None, splitter }
    }

    /// Forwards until the client closes its half, or sends something that is not MySQL's protocol. Then the server's
    /// half is closed.
    pub async fn run(mut self, mut arrived: BytesMut) -> io::Result<()> {
        loop {
            if !self.forward(&mut arrived).await? {
                return self.server.shut_down().await;
            }
            arrived.reserve(limits::READ_BYTES);
            if self.client.read_buf(&mut arrived).await? == 0 {
                return self.server.shut_down().await;
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
                    let first = match self.pack(command, arrived, &mut out).await? {
                        Packed::Answered => continue,
                        Packed::No => None,
                        Packed::Told(first) => Some(first),
                    };
                    let why = self.packer.as_mut().map(Packer::why);
                    let why = why.unwrap_or(NotPacked::Because(self.counting.without));
                    self.counting.counts.passed(command, why);
                    let Some(reader) = ReplyReader::new(command.reply(), self.server.deprecates_eof) else {
                        continue;
                    };
                    let is_dialogue = command == Command::ChangeUser;
                    let entered = self.packer.as_mut().and_then(Packer::entered);
                    let reply = Reply::OfServer { reader, is_dialogue, first, entered };
                    if !self.expect(reply, &mut out).await? {
                        return Ok(false);
                    }
                }
                Piece::Refused(byte) => {
                    let payloads = vec![Refusal::UnknownCommand(byte).payload()];
                    if !self.expect(Reply::Own { payloads, is_last: false }, &mut out).await? {
                        return Ok(false);
                    }
                }
                Piece::Dialogue if self.server.expected.in_dialogue() => {}
                Piece::Dialogue => {
                    let payloads = vec![Refusal::OutOfOrder.payload()];
                    self.server.send(&out).await?;
                    self.server.expected.add(Reply::Own { payloads, is_last: true }).await;
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
        self.server.send(&out).await?;
        if self.unblock.is_some() {
            self.server.idle().await;
            self.unblock = None;
        }
        Ok(true)
    }

    /// Gives a statement to a lane, if it can be packed.
    async fn pack(&mut self, command: Command, arrived: &[u8], out: &mut BytesMut) -> io::Result<Packed> {
        if self.unblock.is_some() {
            // Otherwise the next statement could wait in the lane for the end of this one.
            self.server.send(out).await?;
            out.clear();
            self.server.idle().await;
            self.unblock = None;
        }
        let Some(packer) = &mut self.packer else { return Ok(Packed::No) };
        self.server.send(out).await?;
        out.clear();
        let Some(text) = self.splitter.text(arrived) else {
            if command == Command::StmtExecute {
                // It can have new types, which are not read here. From now on the server has all that it needs.
                packer.close(&arrived[HEADER_BYTES + 1..]);
            }
            packer.command(command, &mut self.server).await?;
            return Ok(Packed::No);
        };
        let of_text = || std::str::from_utf8(text).ok().and_then(killed);
        let killed = match command {
            Command::Query => of_text(),
            Command::ProcessKill => text.first_chunk().map(|thread| u32::from_le_bytes(*thread)),
            _ => None,
        };
        if let Some(thread) = killed {
            return Ok(Packed::Told(packer.kill(thread, &mut self.server).await?));
        }
        let run = match command {
            Command::Query => packer.run(text, &mut self.server).await?,
            Command::StmtExecute => packer.execute(text, &mut self.server).await?,
            Command::InitDb => {
                let told = packer.init_db(text, &mut self.server).await?;
                return Ok(told.map_or(Packed::No, Packed::Told));
            }
            Command::StmtPrepare => {
                let id = packer.prepare(text, &mut self.server).await?;
                return Ok(id.map_or(Packed::No, Packed::Told));
            }
            Command::StmtClose => {
                packer.close(text);
                return Ok(Packed::No);
            }
            _ => {
                packer.command(command, &mut self.server).await?;
                return Ok(Packed::No);
            }
        };
        match run {
            Run::Own(payloads) => {
                self.splitter.is_dropped = true;
                // The gateway stops only outside of a lane, so a statement that is committed is answered.
                self.server.expected.add(Reply::Own { payloads, is_last: false }).await;
                self.server.expected.leave_lane();
                return Ok(Packed::Answered);
            }
            Run::Pass(unblock) => self.unblock = unblock,
            Run::PassAndTell(first) => return Ok(Packed::Told(first)),
            Run::PassAs(payload, unblock) => {
                self.splitter.is_dropped = true;
                self.server.idle().await; // so that there is room for its reply, which is expected before it is sent
                packet::put(out, 0, &command.payload(&payload));
                self.unblock = unblock;
            }
        }
        self.server.expected.leave_lane();
        Ok(Packed::No)
    }

    /// Adds a reply. If it has to wait for room, the server must have the commands before it. False if the gateway stops:
    /// then no reply was expected, so the server has all earlier commands.
    async fn expect(&mut self, reply: Reply, out: &mut BytesMut) -> io::Result<bool> {
        if !self.server.expected.has_room() {
            self.server.send(out).await?;
            out.clear();
        }
        Ok(self.server.expected.add(reply).await)
    }
}

/// What has become of a command.
enum Packed {
    /// Its answer is there.
    Answered,
    /// It goes to the session's own connection.
    No,
    /// The same, and the first packet of the answer goes here.
    Told(FirstPacket),
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

/// The commands whose bytes decide whether they are packed.
const TEXTS: [Command; 6] = [
    Command::Query,
    Command::InitDb,
    Command::StmtPrepare,
    Command::StmtExecute,
    Command::StmtClose,
    Command::ProcessKill,
];

const STATEMENT_ID_BYTES: usize = 4;

/// Finds the commands in the client's stream.
#[derive(Debug, Default)]
struct Splitter {
    /// Bytes of the current packet that have not passed yet, with its header.
    left: usize,
    is_continued: bool,
    is_dropped: bool,
    /// A short text begins only when all of it has arrived.
    waits_for_texts: bool,
}

impl Splitter {
    /// The text of the command that has just begun, if all of it has arrived and it is short.
    fn text<'b>(&self, arrived: &'b [u8]) -> Option<&'b [u8]> {
        let is_short = self.left <= limits::TEXT_BYTES_MAX;
        arrived.get(HEADER_BYTES + 1..self.left).filter(|_| is_short)
    }

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
        let has_text = |byte| TEXTS.iter().any(|command| *command as u8 == byte);
        // Of a long one, the ID of a prepared statement.
        let needed = match HEADER_BYTES + header.length {
            length @ ..=limits::TEXT_BYTES_MAX => length,
            _ => HEADER_BYTES + 1 + STATEMENT_ID_BYTES,
        };
        let is_text = first.is_some_and(has_text) && self.waits_for_texts;
        if begins && is_text && arrived.len() < needed {
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
