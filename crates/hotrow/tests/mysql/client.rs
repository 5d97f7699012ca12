//! A blocking client that sends any bytes, and reads whole replies.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};

use bytes::{Bytes, BytesMut};
use hotrow_mariadb::{PASSWORD, USER};
use hotrow_mysql_wire::capabilities::{DEPRECATE_EOF, RELAYED};
use hotrow_mysql_wire::command::Command;
use hotrow_mysql_wire::handshake::{Greeting, Response, Switch};
use hotrow_mysql_wire::message::{EOF, ERR, Err as ErrPacket, OK, Ok as OkPacket};
use hotrow_mysql_wire::packet::{self, Packet};
use hotrow_mysql_wire::reply::{Progress, ReplyReader};
use hotrow_mysql_wire::scan::Scanner;
use hotrow_mysql_wire::{Reader, native};
use hotrow_testkit::PATIENCE;

/// The client counts found rows instead of changed ones.
pub const FOUND_ROWS: u32 = 1 << 1;
/// FOUND_ROWS, NO_SCHEMA, ODBC, IGNORE_SPACE and INTERACTIVE: most clients do not use them.
pub const UNUSUAL: u32 = FOUND_ROWS | 1 << 4 | 1 << 6 | 1 << 8 | 1 << 10;

/// Answers tell of changes of the session.
pub const SESSION_TRACK: u32 = 1 << 23;

/// How a client logs in.
pub struct LogIn<'a> {
    pub user: &'a str,
    pub password: &'a str,
    pub plugin: &'a str,
    /// Capabilities that it does not use.
    pub without: u32,
}

/// A logged-in client.
pub struct Client {
    stream: TcpStream,
    arrived: BytesMut,
    /// The greeting of its connection.
    pub greeting: Greeting,
    pub deprecates_eof: bool,
    database: Option<Vec<u8>>,
}

impl Client {
    /// Connects and reads the greeting.
    pub fn connect(port: u16) -> Result<Self, ErrPacket> {
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_nodelay(true).unwrap();
        let greeting = Greeting {
            version: Vec::new(),
            thread: 0,
            nonce: Vec::new(),
            capabilities: 0,
            collation: 0,
            status: 0,
            extended: 0,
            plugin: Vec::new(),
        };
        let mut client =
            Client { stream, arrived: BytesMut::new(), greeting, deprecates_eof: false, database: None };
        let packet = client.packet().expect("a greeting").payload;
        if packet[0] == ERR {
            return Err(ErrPacket::read(&packet).unwrap());
        }
        client.greeting = Greeting::read(&packet).unwrap();
        Ok(client)
    }

    /// Logs in by `mysql_native_password`.
    pub fn login(port: u16, user: &str, password: &str) -> Result<Self, ErrPacket> {
        Client::connect(port)?.respond(&LogIn { user, password, plugin: native::PLUGIN, without: UNUSUAL })
    }

    /// Logs in with all rights to this database, without these capabilities.
    pub fn login_to(port: u16, database: &str, without: u32) -> Self {
        let mut client = Client::connect(port).unwrap();
        client.database = Some(database.into());
        client.respond(&LogIn { user: USER, password: PASSWORD, plugin: native::PLUGIN, without }).unwrap()
    }

    /// Logs in after the greeting.
    pub fn respond(mut self, login: &LogIn<'_>) -> Result<Self, ErrPacket> {
        let capabilities = self.greeting.capabilities & RELAYED & !login.without;
        self.deprecates_eof = capabilities & DEPRECATE_EOF != 0;
        let response = Response {
            capabilities,
            packet_bytes_max: 1 << 30,
            collation: 45,
            user: login.user.into(),
            proof: proof(&self.greeting.nonce, login.password),
            database: self.database.clone(),
            plugin: Some(login.plugin.into()),
            attributes: None,
        };
        self.send(1, &response.payload());
        let mut packet = self.packet().expect("an answer to the login");
        if packet.payload[0] == EOF {
            let switch = Switch::read(&packet.payload).unwrap();
            assert_eq!(switch.plugin, native::PLUGIN.as_bytes());
            self.send(packet.sequence + 1, &proof(&switch.data, login.password));
            packet = self.packet().expect("an answer to the proof");
        }
        match packet.payload[0] {
            OK => Ok(self),
            _ => Err(ErrPacket::read(&packet.payload).unwrap()),
        }
    }

    /// Sends a payload.
    pub fn send(&mut self, sequence: u8, payload: &[u8]) {
        let mut out = BytesMut::new();
        packet::put(&mut out, sequence, payload);
        self.stream.write_all(&out).unwrap();
    }

    /// The next packet. None at the end of the connection.
    pub fn packet(&mut self) -> Option<Packet> {
        loop {
            if let Some(packet) = packet::take(&mut self.arrived, usize::MAX).unwrap() {
                return Some(packet);
            }
            let mut piece = [0; 1 << 16];
            let read = self.stream.read(&mut piece).unwrap_or(0);
            if read == 0 {
                return None;
            }
            self.arrived.extend_from_slice(&piece[..read]);
        }
    }

    /// Sends a command with its parameters, and returns the packets of its reply, with their numbers.
    pub fn command(&mut self, command: Command, rest: &[u8]) -> Vec<(u8, Bytes)> {
        self.send(0, &[&[command as u8], rest].concat());
        self.reply(command)
    }

    /// The packets of the reply to a command.
    pub fn reply(&mut self, command: Command) -> Vec<(u8, Bytes)> {
        let mut packets = Vec::new();
        let Some(mut reader) = ReplyReader::new(command.reply(), self.deprecates_eof) else { return packets };
        loop {
            let Some(Packet { sequence, payload }) = self.packet() else { return packets };
            packets.push((sequence, payload.clone()));
            let mut framed = BytesMut::new();
            packet::put(&mut framed, 0, &payload);
            let (_, scanned) = Scanner::default().feed(&framed);
            if let Progress::Ended { .. } = reader.packet(&scanned.unwrap()).unwrap() {
                return packets;
            }
        }
    }

    /// Runs a statement that returns no rows.
    pub fn try_ok(&mut self, sql: &str) -> Result<OkPacket, ErrPacket> {
        let packets = self.command(Command::Query, sql.as_bytes());
        let (_, payload) = packets.first().expect("a reply");
        if payload[0] == ERR {
            return Err(ErrPacket::read(payload).unwrap());
        }
        Ok(OkPacket::read(payload).unwrap())
    }

    /// The same. None if the connection ends instead.
    pub fn try_run(&mut self, sql: &str) -> Option<Result<OkPacket, ErrPacket>> {
        let mut out = BytesMut::new();
        packet::put(&mut out, 0, &[&[Command::Query as u8][..], sql.as_bytes()].concat());
        self.stream.write_all(&out).ok()?;
        let payload = self.packet()?.payload;
        Some(match payload[0] {
            ERR => Err(ErrPacket::read(&payload).unwrap()),
            _ => Ok(OkPacket::read(&payload).unwrap()),
        })
    }

    /// The same for a statement that succeeds.
    pub fn ok(&mut self, sql: &str) -> OkPacket {
        self.try_ok(sql).unwrap_or_else(|error| panic!("{sql}: {error}"))
    }

    /// Prepares a statement and returns its ID.
    pub fn prepare(&mut self, sql: &str) -> u32 {
        let packets = self.command(Command::StmtPrepare, sql.as_bytes());
        let first = &packets[0].1;
        assert_eq!(first[0], OK, "{sql}: {:?}", ErrPacket::read(first));
        u32::from_le_bytes(first[1..5].try_into().unwrap())
    }

    /// Executes a statement that returns no rows, with values of type BIGINT. Their types are sent only the first time.
    pub fn execute(&mut self, id: u32, values: &[i64], with_types: bool) -> Result<OkPacket, ErrPacket> {
        let mut rest = id.to_le_bytes().to_vec();
        rest.extend_from_slice(&[0, 1, 0, 0, 0, 0, u8::from(with_types)]);
        for _ in values.iter().filter(|_| with_types) {
            rest.extend_from_slice(&[8, 0]);
        }
        values.iter().for_each(|value| rest.extend_from_slice(&value.to_le_bytes()));
        let packets = self.command(Command::StmtExecute, &rest);
        let (_, payload) = packets.first().expect("a reply");
        if payload[0] == ERR {
            return Err(ErrPacket::read(payload).unwrap());
        }
        Ok(OkPacket::read(payload).unwrap())
    }

    /// The rows of a query, as text.
    pub fn rows(&mut self, sql: &str) -> Vec<Vec<Option<String>>> {
        let packets = self.command(Command::Query, sql.as_bytes());
        let columns = usize::from(packets[0].1[0]);
        assert!(packets[0].1[0] != ERR, "{sql}: {:?}", ErrPacket::read(&packets[0].1));
        let first = 1 + columns + usize::from(!self.deprecates_eof);
        let rows = packets[first..packets.len() - 1].iter();
        rows.map(|(_, row)| values(row)).collect()
    }

    /// The single value of a query.
    pub fn value(&mut self, sql: &str) -> String {
        self.rows(sql)[0][0].clone().expect("not null")
    }
}

/// The proof for a password under a random number.
pub fn proof(nonce: &[u8], password: &str) -> Vec<u8> {
    if password.is_empty() {
        return Vec::new();
    }
    native::proof(nonce.try_into().expect("20 bytes"), &native::key(password.as_bytes())).to_vec()
}

fn values(row: &[u8]) -> Vec<Option<String>> {
    let (mut reader, mut values) = (Reader::new(row), Vec::new());
    while let Some(first) = reader.rest().first() {
        if *first == 0xfb {
            reader.u8().unwrap();
            values.push(None);
        } else {
            let value = reader.length_encoded_bytes().unwrap();
            values.push(Some(String::from_utf8_lossy(value).into_owned()));
        }
    }
    values
}
