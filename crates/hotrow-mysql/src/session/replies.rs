//! From the server to the client: replies are forwarded as their bytes arrive. The gateway's own replies are put between
//! them, in the order of the commands.

use std::io;
use std::sync::Arc;

use bytes::BytesMut;
use hotrow_connect::net::{ReadHalf, WriteHalf};
use hotrow_mysql_wire::capabilities::STATUS_IN_TRANSACTION;
use hotrow_mysql_wire::packet;
use hotrow_mysql_wire::reply::{Progress, ReplyReader};
use hotrow_mysql_wire::scan::{Scanned, Scanner};
use tokio::io::AsyncReadExt;
use tokio::sync::{oneshot, watch};

use crate::crowd::Entered;
use crate::expected::{Expected, Reply};
use crate::limits;
use crate::refusal::Refusal;

/// The loop's state.
pub struct ReplyLoop {
    server: ReadHalf,
    client: WriteHalf,
    expected: Arc<Expected>,
    stopping: watch::Receiver<bool>,
    scanner: Scanner,
    current: Option<Current>,
    in_transaction: bool,
}

/// The reply under way.
struct Current {
    reader: ReplyReader,
    is_dialogue: bool,
    /// Where its first packet goes.
    first: Option<oneshot::Sender<Scanned>>,
    /// Whether the gateway itself reads it.
    is_internal: bool,
    _entered: Option<Entered>,
}

/// Whether the session goes on.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Goes {
    On,
    Over,
}

impl ReplyLoop {
    pub fn new(
        server: ReadHalf,
        client: WriteHalf,
        expected: Arc<Expected>,
        stopping: watch::Receiver<bool>,
    ) -> Self {
        let (scanner, current) = (Scanner::default(), None);
        ReplyLoop { server, client, expected, stopping, scanner, current, in_transaction: false }
    }

    /// Forwards until the server closes the connection.
    pub async fn run(&mut self, mut arrived: BytesMut) -> io::Result<()> {
        loop {
            if self.forward(&arrived).await? == Goes::Over {
                return self.client.shutdown().await;
            }
            arrived.clear();
            arrived.reserve(limits::READ_BYTES);
            let can_stop = self.current.is_none() && self.scanner.is_between() && !self.in_transaction;
            tokio::select! {
                read = self.server.read_buf(&mut arrived) => if read? == 0 {
                    return self.client.shutdown().await;
                },
                () = self.expected.added(), if self.current.is_none() => {}
                () = stops(&mut self.stopping), if can_stop => {
                    if !self.expected.close_if_empty() {
                        continue; // a command came at this moment
                    }
                    let mut out = BytesMut::new();
                    packet::put(&mut out, 0, &Refusal::Stopping.payload());
                    self.client.write_all(&out).await?;
                    return self.client.shutdown().await;
                }
            }
        }
    }

    async fn forward(&mut self, arrived: &[u8]) -> io::Result<Goes> {
        let (mut sent, mut at) = (0, 0);
        loop {
            // Between two packets, and behind all that has arrived before.
            if self.current.is_none() && self.scanner.is_between() {
                self.client.write_all(&arrived[sent..at]).await?;
                sent = at;
                if self.advance().await? == Goes::Over {
                    return Ok(Goes::Over);
                }
            }
            if at == arrived.len() {
                break;
            }
            let is_internal = self.is_internal();
            let (read, packet) = self.scanner.feed(&arrived[at..]);
            at += read;
            if is_internal {
                sent = at; // not for the client
            }
            if let Some(packet) = packet {
                self.packet(&packet)?;
            }
        }
        self.client.write_all(&arrived[sent..]).await?;
        Ok(Goes::On)
    }

    fn is_internal(&self) -> bool {
        self.current.as_ref().is_some_and(|current| current.is_internal)
    }

    /// Sends the gateway's own replies that are due, and takes the server's next one.
    async fn advance(&mut self) -> io::Result<Goes> {
        while let Some(reply) = self.expected.take() {
            match reply {
                Reply::OfServer { reader, is_dialogue, first, entered } => {
                    self.current =
                        Some(Current { reader, is_dialogue, first, is_internal: false, _entered: entered });
                    break;
                }
                Reply::Internal { reader, answer } => {
                    let first = Some(answer);
                    self.current = Some(Current {
                        reader,
                        is_dialogue: false,
                        first,
                        is_internal: true,
                        _entered: None,
                    });
                    break;
                }
                Reply::Own { payloads, is_last } => {
                    let mut out = BytesMut::new();
                    for (number, payload) in (1..).zip(&payloads) {
                        packet::put(&mut out, number, payload);
                    }
                    self.client.write_all(&out).await?;
                    self.expected.own_sent();
                    if is_last {
                        return Ok(Goes::Over);
                    }
                }
            }
        }
        Ok(Goes::On)
    }

    fn packet(&mut self, packet: &Scanned) -> io::Result<()> {
        // A server that ends a connection, after KILL for example, sends an error that is no reply.
        let Some(current) = &mut self.current else { return Ok(()) };
        if let Some(first) = current.first.take() {
            let _ = first.send(*packet); // the other loop may have ended
        }
        if let Progress::Ended { status, .. } = current.reader.packet(packet).map_err(io::Error::other)? {
            if let Some(status) = status {
                self.in_transaction = status & STATUS_IN_TRANSACTION != 0;
            }
            let is_dialogue = current.is_dialogue;
            self.current = None;
            self.expected.ended(status, is_dialogue);
        }
        Ok(())
    }
}

async fn stops(stopping: &mut watch::Receiver<bool>) {
    let _ = stopping.wait_for(|stops| *stops).await; // its sender lives as long as the front
}
