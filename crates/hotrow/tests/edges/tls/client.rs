//! A TLS client that sends any bytes. It blocks, and shares no code with the gateway.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;

use hotrow_testkit::PATIENCE;
use hotrow_testkit::raw::{Message, query, startup};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, StreamOwned};

pub const SSL_REQUEST: [u8; 8] = [0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x2f];

/// One connection.
pub struct Client {
    stream: StreamOwned<ClientConnection, TcpStream>,
    input: Vec<u8>,
    /// The key for cancel requests.
    pub key: Vec<u8>,
}

/// A plain connection.
pub fn plain(port: u16) -> TcpStream {
    let stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.set_nodelay(true).unwrap();
    stream
}

impl Client {
    /// Requests TLS first.
    pub fn request_tls(port: u16, config: ClientConfig) -> io::Result<Self> {
        let mut stream = plain(port);
        stream.write_all(&SSL_REQUEST)?;
        let mut answer = [0];
        stream.read_exact(&mut answer)?;
        assert_eq!(answer, *b"S", "TLS is granted");
        Self::begin(stream, config)
    }

    /// Begins with TLS, as with `sslnegotiation=direct` of PostgreSQL 17.
    pub fn direct(port: u16, config: ClientConfig) -> io::Result<Self> {
        Self::begin(plain(port), config)
    }

    fn begin(stream: TcpStream, config: ClientConfig) -> io::Result<Self> {
        let name = ServerName::try_from("localhost").unwrap();
        let connection = ClientConnection::new(Arc::new(config), name).unwrap();
        let mut stream = StreamOwned::new(connection, stream);
        while stream.conn.is_handshaking() {
            stream.conn.complete_io(&mut stream.sock)?;
        }
        Ok(Self { stream, input: Vec::new(), key: Vec::new() })
    }

    /// Logs in as the superuser.
    pub fn login(&mut self, schema: &str) {
        let path = format!("-c search_path={schema}");
        self.send(&startup(
            0x0003_0000,
            &[("user", "postgres"), ("database", "postgres"), ("options", &path)],
        ));
        let replies = self.until_ready();
        self.key = replies.iter().find(|message| message.tag == b'K').unwrap().body.clone();
    }

    pub fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).unwrap();
        self.stream.flush().unwrap();
    }

    /// The stream, for reading answers while there is still something to send.
    pub fn halves(&mut self) -> &mut StreamOwned<ClientConnection, TcpStream> {
        &mut self.stream
    }

    /// The next message, or none if the other side has closed TLS.
    pub fn message(&mut self) -> io::Result<Option<Message>> {
        loop {
            if let Some(length) = self.input.get(1..5) {
                let end = u32::from_be_bytes(length.try_into().unwrap()) as usize + 1;
                if self.input.len() >= end {
                    let bytes: Vec<u8> = self.input.drain(..end).collect();
                    return Ok(Some(Message { tag: bytes[0], body: bytes[5..].to_vec() }));
                }
            }
            let mut chunk = [0; 16 << 10];
            match self.stream.read(&mut chunk)? {
                0 => return Ok(None),
                count => self.input.extend_from_slice(&chunk[..count]),
            }
        }
    }

    /// All messages up to ReadyForQuery.
    pub fn until_ready(&mut self) -> Vec<Message> {
        let mut replies = Vec::new();
        while replies.last().is_none_or(|last: &Message| last.tag != b'Z') {
            replies.push(
                self.message().unwrap().unwrap_or_else(|| panic!("connection closed after {replies:?}")),
            );
        }
        replies
    }

    /// The first value of a simple query.
    pub fn value(&mut self, text: &str) -> String {
        self.send(&query(text));
        let replies = self.until_ready();
        let row = replies.iter().find(|message| message.tag == b'D').unwrap_or_else(|| panic!("{replies:?}"));
        String::from_utf8(row.values()[0].clone().unwrap()).unwrap()
    }
}
