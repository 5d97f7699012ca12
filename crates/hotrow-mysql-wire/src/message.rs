//! OK, EOF and ERR packets, in the layout of the protocol's version 4.1.

use crate::{Reader, WireError};

/// The first byte of an OK packet.
pub const OK: u8 = 0x00;
/// The first byte of a packet that ends rows, and of a request to authenticate by another plugin.
pub const EOF: u8 = 0xfe;
/// The first byte of an ERR packet.
pub const ERR: u8 = 0xff;
/// A packet that ends rows is shorter than this, if it has no OK packet's layout. Otherwise, 0xfe begins a row.
pub const EOF_LENGTH: usize = 9;
/// Bytes of an EOF packet before its status: the first byte, and the number of warnings.
const EOF_STATUS_AT: usize = 3;

/// The first values of an OK packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ok {
    /// Changed rows, or found rows if the connection has FOUND_ROWS.
    pub affected: u64,
    /// The first generated number.
    pub insert_id: u64,
    /// The server's status.
    pub status: u16,
}

/// The payload of an OK packet with a changed status.
pub fn with_status(payload: &[u8], change: impl Fn(u16) -> u16) -> Result<Vec<u8>, WireError> {
    let mut reader = Reader::new(payload);
    reader.u8()?;
    reader.length_encoded()?;
    reader.length_encoded()?;
    let at = payload.len() - reader.rest().len();
    with_status_at(payload, at, change)
}

/// The same for an EOF packet.
pub fn with_eof_status(payload: &[u8], change: impl Fn(u16) -> u16) -> Result<Vec<u8>, WireError> {
    with_status_at(payload, EOF_STATUS_AT, change)
}

fn with_status_at(payload: &[u8], at: usize, change: impl Fn(u16) -> u16) -> Result<Vec<u8>, WireError> {
    let mut changed = payload.to_vec();
    let status = changed.get_mut(at..at + 2).ok_or(WireError::Truncated)?;
    let before = u16::from_le_bytes([status[0], status[1]]);
    status.copy_from_slice(&change(before).to_le_bytes());
    Ok(changed)
}

impl Ok {
    /// The number of warnings in an OK packet.
    pub fn warnings(payload: &[u8]) -> Result<u16, WireError> {
        let mut reader = Reader::new(payload);
        reader.u8()?;
        reader.length_encoded()?;
        reader.length_encoded()?;
        reader.u16()?;
        reader.u16()
    }

    /// Reads an OK packet. The packet that ends rows with DEPRECATE_EOF has another first byte.
    pub fn read(payload: &[u8]) -> Result<Self, WireError> {
        let mut reader = Reader::new(payload);
        if ![OK, EOF].contains(&reader.u8()?) {
            return Err(WireError::Unexpected { expected: "an OK packet" });
        }
        Ok(Ok {
            affected: reader.length_encoded()?,
            insert_id: reader.length_encoded()?,
            status: reader.u16()?,
        })
    }
}

/// The status in an EOF packet.
pub fn eof_status(payload: &[u8]) -> Result<u16, WireError> {
    let mut reader = Reader::new(payload);
    reader.bytes(EOF_STATUS_AT)?;
    reader.u16()
}

/// The number of warnings in an EOF packet.
pub fn eof_warnings(payload: &[u8]) -> Result<u16, WireError> {
    let mut reader = Reader::new(payload);
    reader.u8()?;
    reader.u16()
}

/// An ERR packet.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message} ({code}, {sqlstate})")]
pub struct Err {
    /// The number, such as 1064.
    pub code: u16,
    /// Five characters.
    pub sqlstate: String,
    /// The text.
    pub message: String,
}

impl Err {
    /// Reads an ERR packet. Before the login, a server sends it without a SQLSTATE.
    pub fn read(payload: &[u8]) -> Result<Self, WireError> {
        let mut reader = Reader::new(payload);
        if reader.u8()? != ERR {
            return Err(WireError::Unexpected { expected: "an error" });
        }
        let code = reader.u16()?;
        let sqlstate = match reader.rest().first() {
            Some(b'#') => text(&reader.bytes(6)?[1..]),
            _ => "HY000".to_owned(),
        };
        Ok(Err { code, sqlstate, message: text(reader.rest()) })
    }

    /// The payload.
    pub fn payload(&self) -> Vec<u8> {
        let mut payload = vec![ERR];
        payload.extend_from_slice(&self.code.to_le_bytes());
        payload.push(b'#');
        payload.extend_from_slice(self.sqlstate.as_bytes());
        payload.extend_from_slice(self.message.as_bytes());
        payload
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
