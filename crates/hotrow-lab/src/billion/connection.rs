//! A connection to a gateway or to the server, without a driver: it sends bytes and reads the answers.

use super::answers::{Answer, Refusal};
use bytes::{Bytes, BytesMut};
use hotrow_wire::backend::{Report, data_row, tag};
use hotrow_wire::frontend::put_query;
use hotrow_wire::{split, startup::put_start};
use std::io;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// The largest message that is accepted.
const BYTES_MAX: usize = 64 << 20;

/// An open connection.
#[derive(Debug)]
pub struct Connection {
    stream: TcpStream,
    incoming: BytesMut,
    /// Bytes that `send` writes.
    pub out: BytesMut,
}

impl Connection {
    /// Logs in as `postgres`. An answer with an error is a refusal.
    pub async fn open(port: u16) -> io::Result<Result<Self, Refusal>> {
        let stream = TcpStream::connect(("127.0.0.1", port)).await?;
        stream.set_nodelay(true)?;
        let mut connection =
            Self { stream, incoming: BytesMut::with_capacity(1 << 14), out: BytesMut::new() };
        let parameters = [("user", "postgres"), ("database", "postgres"), ("application_name", "hotrow-lab")];
        put_start(&mut connection.out, parameters.into_iter());
        connection.send().await?;
        connection.expect_ready().await.map(|refused| refused.map_or(Ok(connection), Err))
    }

    /// Reads the answer to a request without rows. Returns its error.
    pub async fn expect_ready(&mut self) -> io::Result<Option<Refusal>> {
        let answer = self.answer().await;
        match answer.error {
            None if !answer.is_whole => Err(io::ErrorKind::UnexpectedEof.into()),
            error => Ok(error),
        }
    }

    /// Sends what `out` has.
    pub async fn send(&mut self) -> io::Result<()> {
        let sent = self.stream.write_all(&self.out).await;
        self.out.clear();
        sent
    }

    /// Reads up to ReadyForQuery, or to the end of the connection. A FATAL error ends it, too.
    pub async fn answer(&mut self) -> Answer {
        let mut answer = Answer::default();
        while let Ok((tag, frame)) = self.frame().await {
            let body = || frame.slice(hotrow_wire::HEADER_BYTES..);
            match tag {
                tag::DATA_ROW => answer.rows.push(body()),
                tag::ERROR => answer.error = Some(refusal(&body())),
                tag::READY => {
                    answer.is_whole = true;
                    break;
                }
                _ => {}
            }
        }
        answer
    }

    /// The rows of a query as numbers. `None` if it fails, or if a value is no number.
    pub async fn numbers<const N: usize>(&mut self, sql: &str) -> Option<Vec<[i64; N]>> {
        put_query(&mut self.out, sql);
        self.send().await.ok()?;
        let answer = self.answer().await;
        let row = |body: &Bytes| {
            let number = |value: Option<&[u8]>| str::from_utf8(value?).ok()?.parse().ok();
            data_row(body).ok()?.into_iter().map(number).collect::<Option<Vec<i64>>>()?.try_into().ok()
        };
        if answer.error.is_some() || !answer.is_whole {
            return None;
        }
        answer.rows.iter().map(row).collect()
    }

    async fn frame(&mut self) -> io::Result<(u8, Bytes)> {
        loop {
            let found = split(&self.incoming, |_| BYTES_MAX).map_err(io::Error::other)?;
            if let Some((tag, length)) = found.map(|frame| (frame.tag, frame.bytes.len())) {
                return Ok((tag, self.incoming.split_to(length).freeze()));
            }
            if self.stream.read_buf(&mut self.incoming).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }
}

fn refusal(body: &[u8]) -> Refusal {
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    let report = Report::read(body).unwrap_or_default();
    Refusal { is_fatal: !report.is_error(), code: text(report.code), message: text(report.message) }
}
