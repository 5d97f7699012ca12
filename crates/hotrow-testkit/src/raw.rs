//! A client that sends any bytes and reads the answers as frames, for messages that no driver sends. It shares no
//! code with the gateway, so both cannot have the same error.

use std::fmt;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::PATIENCE;

/// A connection.
pub struct Raw {
    stream: TcpStream,
    input: Vec<u8>,
}

/// A message from the server or the gateway.
#[derive(Clone, PartialEq, Eq)]
pub struct Message {
    /// The first byte.
    pub tag: u8,
    /// The bytes after the length.
    pub body: Vec<u8>,
}

impl Raw {
    /// Connects and sends nothing.
    pub async fn open(port: u16) -> Self {
        let stream = TcpStream::connect(("127.0.0.1", port)).await.expect("a listener");
        stream.set_nodelay(true).expect("the socket exists");
        Self { stream, input: Vec::new() }
    }

    /// Logs in as the superuser with additional startup parameters, and waits for ReadyForQuery.
    pub async fn login(port: u16, parameters: &[(&str, &str)]) -> Self {
        Self::login_with(port, parameters).await.0
    }

    /// The same. It also returns the messages up to ReadyForQuery.
    pub async fn login_with(port: u16, parameters: &[(&str, &str)]) -> (Self, Vec<Message>) {
        let mut raw = Self::open(port).await;
        let user = [("user", "postgres"), ("database", "postgres")];
        raw.send(&startup(0x0003_0000, &[&user, parameters].concat())).await;
        let said = raw.until_ready(1).await;
        (raw, said)
    }

    /// Sends bytes.
    pub async fn send(&mut self, bytes: &[u8]) {
        self.try_send(bytes).await.expect("the receiver reads");
    }

    /// Sends bytes on a connection that may be closed.
    pub async fn try_send(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        tokio::time::timeout(PATIENCE, self.stream.write_all(bytes))
            .await
            .expect("sent within the time limit")
    }

    /// Closes the sending direction. Answers can still arrive.
    pub async fn shut(&mut self) {
        self.stream.shutdown().await.expect("the socket exists");
    }

    /// One byte, such as the answer to an SSLRequest.
    pub async fn byte(&mut self) -> Option<u8> {
        self.fill_to(1).await.then(|| self.input.remove(0))
    }

    /// The next message. `None` if the connection is closed.
    pub async fn message(&mut self) -> Option<Message> {
        if !self.fill_to(5).await {
            return None;
        }
        let length = u32::from_be_bytes([self.input[1], self.input[2], self.input[3], self.input[4]]);
        let end = length as usize + 1;
        if !self.fill_to(end).await {
            return None;
        }
        let bytes: Vec<u8> = self.input.drain(..end).collect();
        Some(Message { tag: bytes[0], body: bytes[5..].to_vec() })
    }

    async fn fill_to(&mut self, count: usize) -> bool {
        while self.input.len() < count {
            let read = tokio::time::timeout(PATIENCE, self.stream.read_buf(&mut self.input)).await;
            match read.expect("an answer within the time limit") {
                Ok(1..) => {}
                Ok(0) | Err(_) => return false,
            }
        }
        true
    }

    /// All messages up to this number of ReadyForQuery.
    pub async fn until_ready(&mut self, readies: usize) -> Vec<Message> {
        let (mut said, mut seen) = (Vec::new(), 0);
        while seen < readies {
            let message =
                self.message().await.unwrap_or_else(|| panic!("the connection was closed after {said:?}"));
            seen += usize::from(message.tag == b'Z');
            said.push(message);
        }
        said
    }

    /// All messages until the connection is closed.
    pub async fn until_closed(&mut self) -> Vec<Message> {
        let mut said = Vec::new();
        while let Some(message) = self.message().await {
            said.push(message);
        }
        said
    }

    /// A simple query and its answer.
    pub async fn query(&mut self, text: &str) -> Vec<Message> {
        self.send(&query(text)).await;
        self.until_ready(1).await
    }
}

impl Message {
    /// A field of an ErrorResponse or NoticeResponse.
    pub fn field(&self, code: u8) -> Option<String> {
        let field = self.body.split(|byte| *byte == 0).find(|field| field.first() == Some(&code))?;
        Some(String::from_utf8_lossy(&field[1..]).into_owned())
    }

    /// The values of a DataRow.
    pub fn values(&self) -> Vec<Option<Vec<u8>>> {
        let mut rest = &self.body[2..];
        let mut values = Vec::new();
        while let Some((length, after)) = rest.split_first_chunk::<4>() {
            let length = usize::try_from(i32::from_be_bytes(*length)).ok();
            values.push(length.map(|length| after[..length].to_vec()));
            rest = &after[length.unwrap_or(0)..];
        }
        values
    }
}

impl fmt::Debug for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", char::from(self.tag))?;
        if self.body.is_empty() { Ok(()) } else { write!(f, "({})", self.body.escape_ascii()) }
    }
}

/// The tags of messages as one string, such as `12TDCZ`.
pub fn tags(messages: &[Message]) -> String {
    messages.iter().map(|message| char::from(message.tag)).collect()
}

/// A message.
pub fn frame(tag: u8, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len() + 4).expect("tests send less");
    [&[tag][..], &length.to_be_bytes(), body].concat()
}

/// A startup packet.
pub fn startup(version: u32, parameters: &[(&str, &str)]) -> Vec<u8> {
    let mut body = version.to_be_bytes().to_vec();
    for (name, value) in parameters {
        for text in [name, value] {
            body.extend_from_slice(text.as_bytes());
            body.push(0);
        }
    }
    body.push(0);
    [&u32::try_from(body.len() + 4).expect("tests send less").to_be_bytes()[..], &body].concat()
}

fn cstr(text: &str) -> Vec<u8> {
    [text.as_bytes(), &[0]].concat()
}

/// Query.
pub fn query(text: &str) -> Vec<u8> {
    frame(b'Q', &cstr(text))
}

/// Parse without declared types.
pub fn parse(name: &str, text: &str) -> Vec<u8> {
    frame(b'P', &[cstr(name), cstr(text), vec![0, 0]].concat())
}

/// Bind of text values, for text results.
pub fn bind(portal: &str, statement: &str, values: &[Option<&str>]) -> Vec<u8> {
    let mut body = [cstr(portal), cstr(statement), vec![0, 0]].concat();
    body.extend_from_slice(&u16::try_from(values.len()).expect("tests send less").to_be_bytes());
    for value in values {
        let length = value.map_or(-1, |value| i32::try_from(value.len()).expect("tests send less"));
        body.extend_from_slice(&length.to_be_bytes());
        body.extend_from_slice(value.unwrap_or("").as_bytes());
    }
    body.extend_from_slice(&[0, 0]);
    frame(b'B', &body)
}

/// Describe of a statement (`S`) or portal (`P`).
pub fn describe(kind: u8, name: &str) -> Vec<u8> {
    frame(b'D', &[vec![kind], cstr(name)].concat())
}

/// Close of a statement (`S`) or portal (`P`).
pub fn close(kind: u8, name: &str) -> Vec<u8> {
    frame(b'C', &[vec![kind], cstr(name)].concat())
}

/// Execute with a maximum number of rows. 0 means all.
pub fn execute(portal: &str, rows_max: u32) -> Vec<u8> {
    frame(b'E', &[cstr(portal), rows_max.to_be_bytes().to_vec()].concat())
}

/// Sync.
pub fn sync() -> Vec<u8> {
    frame(b'S', &[])
}

/// Flush.
pub fn flush() -> Vec<u8> {
    frame(b'H', &[])
}
