//! A blocking client, one per thread, for tests that check the exact bytes in both directions, and
//! waiting for a condition there. It does not interpret answers for a test.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use bytes::BytesMut;
use postgres_protocol::IsNull;
use postgres_protocol::message::frontend;

use crate::server;

/// A test that waits longer has found a hang. On a busy machine, a cluster moves a shard of many tables in over a minute.
const PATIENCE: Duration = Duration::from_secs(180);

/// A connection. Messages are collected in `out` and sent together.
pub struct Line {
    stream: TcpStream,
    input: Vec<u8>,
    /// Messages that are not sent yet.
    pub out: BytesMut,
}

/// Sets a flag when dropped, so that threads that wait for the flag also end if the test fails.
pub struct Until<'a>(pub &'a AtomicBool);

impl Drop for Until<'_> {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

/// Repeats `look` until it is true, as [`crate::until`] does, in a thread of its own.
pub fn until(what: &str, mut look: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !look() {
        assert!(Instant::now() < deadline, "timed out while waiting until {what}");
        std::thread::sleep(Duration::from_millis(5)); // the condition has no signal
    }
}

/// The answer to one unit: all frames up to and including ReadyForQuery, or up to the end of the connection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// The frames.
    pub bytes: Vec<u8>,
    /// Whether ReadyForQuery was received.
    pub whole: bool,
}

/// A reported error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The severity, such as FATAL.
    pub severity: String,
    /// The SQLSTATE.
    pub code: String,
    /// The message, without detail and hint.
    pub message: String,
}

impl Line {
    /// Logs in as the server's superuser with a schema as search path. An incomplete answer is a refusal.
    pub fn connect(port: u16, schema: &str) -> io::Result<Result<Self, Answer>> {
        Self::login(TcpStream::connect(("127.0.0.1", port))?, schema)
    }

    /// The same on an existing connection.
    pub fn login(stream: TcpStream, schema: &str) -> io::Result<Result<Self, Answer>> {
        let path = format!("-c search_path={schema}");
        Self::login_with(stream, &[("user", "postgres"), ("database", "postgres"), ("options", &path)])
    }

    /// Logs in to the shared server with these startup parameters.
    pub fn to_shared_server(parameters: &[(&str, &str)]) -> Self {
        let stream = TcpStream::connect(("127.0.0.1", server().port()));
        let line = stream.and_then(|stream| Self::login_with(stream, parameters));
        line.expect("the server is there").expect("it accepts the client")
    }

    /// Waits at most this long for each byte.
    pub fn set_patience(&self, patience: Duration) {
        self.stream.set_read_timeout(Some(patience)).expect("the time is not zero");
    }

    fn login_with(stream: TcpStream, parameters: &[(&str, &str)]) -> io::Result<Result<Self, Answer>> {
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let mut line = Self { stream, input: Vec::new(), out: BytesMut::new() };
        frontend::startup_message(parameters.iter().copied(), &mut line.out)?;
        line.send()?;
        let answer = line.answer();
        Ok(if answer.whole { Ok(line) } else { Err(answer) })
    }

    /// Parse and Sync.
    pub fn put_prepare(&mut self, name: &str, sql: &str) {
        frontend::parse(name, sql, [], &mut self.out).expect("no zero bytes");
        frontend::sync(&mut self.out);
    }

    /// Bind, Describe, Execute, with values and results as text, without Sync.
    pub fn put_call(&mut self, statement: &str, values: &[Option<&str>]) {
        let value = |value: &Option<&str>, out: &mut BytesMut| {
            Ok(match value {
                Some(text) => {
                    out.extend_from_slice(text.as_bytes());
                    IsNull::No
                }
                None => IsNull::Yes,
            })
        };
        let bound = frontend::bind("", statement, [0], values, value, [], &mut self.out);
        assert!(bound.is_ok(), "a test's values are short");
        frontend::describe(b'P', "", &mut self.out).expect("no zero bytes");
        frontend::execute("", 0, &mut self.out).expect("no zero bytes");
    }

    /// Parse of the unnamed statement, then a call of it.
    pub fn put_unnamed_call(&mut self, sql: &str, values: &[Option<&str>]) {
        frontend::parse("", sql, [], &mut self.out).expect("no zero bytes");
        self.put_call("", values);
    }

    /// Sync.
    pub fn put_sync(&mut self) {
        frontend::sync(&mut self.out);
    }

    /// Flush.
    pub fn put_flush(&mut self) {
        frontend::flush(&mut self.out);
    }

    /// Query.
    pub fn put_query(&mut self, sql: &str) {
        frontend::query(sql, &mut self.out).expect("no zero bytes");
    }

    /// Sends the collected messages.
    pub fn send(&mut self) -> io::Result<()> {
        let bytes = self.out.split();
        self.stream.write_all(&bytes)
    }

    /// Sends the collected messages until the receiver has accepted nothing for this time.
    pub fn send_within(&mut self, patience: Duration) {
        let bytes = self.out.split();
        self.stream.set_write_timeout(Some(patience)).expect("the time is not zero");
        let _ = self.stream.write_all(&bytes);
        self.stream.set_write_timeout(None).expect("the time limit can be removed");
    }

    /// The next answer. It is incomplete if the connection ends before ReadyForQuery.
    pub fn answer(&mut self) -> Answer {
        let mut answer = Answer::default();
        loop {
            match self.frame() {
                Ok(frame) => {
                    answer.whole = frame[0] == b'Z';
                    answer.bytes.extend_from_slice(&frame);
                }
                Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                    panic!("no answer within {PATIENCE:?}; so far: {:?}", answer.frames());
                }
                Err(_) => return answer,
            }
            if answer.whole {
                return answer;
            }
        }
    }

    /// All remaining bytes.
    pub fn until_end(&mut self) -> Vec<u8> {
        let mut all = std::mem::take(&mut self.input);
        let _ = self.stream.read_to_end(&mut all); // a reset also ends the connection
        all
    }

    /// Sends a simple query and waits for its answer.
    pub fn query(&mut self, sql: &str) -> Answer {
        self.put_query(sql);
        match self.send() {
            Ok(()) => self.answer(),
            Err(_) => Answer::default(),
        }
    }

    /// The next frame.
    pub fn frame(&mut self) -> io::Result<Vec<u8>> {
        loop {
            if let Some(length) = frame_length(&self.input) {
                let rest = self.input.split_off(length);
                return Ok(std::mem::replace(&mut self.input, rest));
            }
            let mut chunk = [0; 16 << 10];
            let count = self.stream.read(&mut chunk)?;
            if count == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            self.input.extend_from_slice(&chunk[..count]);
        }
    }
}

impl Answer {
    /// Tag and body of each frame.
    pub fn frames(&self) -> Vec<(char, &[u8])> {
        let (mut frames, mut rest) = (Vec::new(), &self.bytes[..]);
        while let Some(length) = frame_length(rest) {
            frames.push((char::from(rest[0]), &rest[5..length]));
            rest = &rest[length..];
        }
        frames
    }

    /// The first error.
    pub fn error(&self) -> Option<Report> {
        let (_, body) = self.frames().into_iter().find(|(tag, _)| *tag == 'E')?;
        let field = |wanted: u8| {
            let mut fields = body.split(|byte| *byte == 0);
            let found = fields.find(|field| field.first() == Some(&wanted));
            String::from_utf8_lossy(found.map_or(b"", |field| &field[1..])).into_owned()
        };
        Some(Report { severity: field(b'V'), code: field(b'C'), message: field(b'M') })
    }

    /// The rows as text.
    pub fn rows(&self) -> Vec<Vec<Option<String>>> {
        self.frames().into_iter().filter(|(tag, _)| *tag == 'D').map(|(_, body)| values(body)).collect()
    }

    /// The last CommandComplete.
    pub fn command(&self) -> Option<String> {
        let (_, body) = self.frames().into_iter().rfind(|(tag, _)| *tag == 'C')?;
        Some(String::from_utf8_lossy(&body[..body.len() - 1]).into_owned())
    }
}

fn frame_length(bytes: &[u8]) -> Option<usize> {
    let length = u32::from_be_bytes(*bytes.get(1..)?.first_chunk()?) as usize + 1;
    (bytes.len() >= length).then_some(length)
}

fn values(mut body: &[u8]) -> Vec<Option<String>> {
    let mut values = Vec::new();
    body = &body[2..];
    while let Some((length, rest)) = body.split_first_chunk::<4>() {
        body = rest;
        let Ok(length) = usize::try_from(i32::from_be_bytes(*length)) else {
            values.push(None);
            continue;
        };
        values.push(Some(String::from_utf8_lossy(&body[..length]).into_owned()));
        body = &body[length..];
    }
    values
}
