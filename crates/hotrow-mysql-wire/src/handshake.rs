//! The login: the server's greeting, the client's response, and a request to authenticate by another plugin.

use crate::capabilities::{
    CONNECT_ATTRS, CONNECT_WITH_DB, MYSQL, PLUGIN_AUTH, PLUGIN_AUTH_LENENC, PROTOCOL_41, SECURE_CONNECTION,
};
use crate::message::EOF;
use crate::native::Hash;
use crate::reader::put_length_encoded;
use crate::{Reader, WireError};

const VERSION: u8 = 10;
/// Bytes of a response up to the user's name.
const TLS_REQUEST_BYTES: usize = 32;
/// Bytes of the random number in the first of its two places.
const NONCE_FIRST_BYTES: usize = 8;
/// The least length of the second place, with a zero byte at the end.
const NONCE_SECOND_BYTES: usize = 13;

/// The server's greeting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Greeting {
    /// The version of the server, for people and drivers.
    pub version: Vec<u8>,
    /// The connection's ID, which KILL takes.
    pub thread: u32,
    /// The random number of this connection.
    pub nonce: Vec<u8>,
    /// What the server offers.
    pub capabilities: u32,
    /// Its collation.
    pub collation: u8,
    /// Its status.
    pub status: u16,
    /// What a MariaDB server offers beyond 32 bits.
    pub extended: u32,
    /// The plugin that the random number is for.
    pub plugin: Vec<u8>,
}

impl Greeting {
    /// Reads a greeting.
    pub fn read(payload: &[u8]) -> Result<Self, WireError> {
        let mut reader = Reader::new(payload);
        if reader.u8()? != VERSION {
            return Err(WireError::Unexpected { expected: "a greeting of protocol version 10" });
        }
        let version = reader.until_zero()?.to_vec();
        let thread = reader.u32()?;
        let mut nonce = reader.bytes(NONCE_FIRST_BYTES)?.to_vec();
        reader.u8()?;
        let low = reader.u16()?;
        let collation = reader.u8()?;
        let status = reader.u16()?;
        let capabilities = u32::from(low) | u32::from(reader.u16()?) << 16;
        let nonce_length = usize::from(reader.u8()?);
        reader.bytes(6)?;
        let extended = reader.u32()?;
        let second = nonce_length.saturating_sub(NONCE_FIRST_BYTES).max(NONCE_SECOND_BYTES);
        let second = reader.bytes(second)?;
        nonce.extend_from_slice(second.strip_suffix(&[0]).unwrap_or(second));
        let plugin = if capabilities & PLUGIN_AUTH == 0 { &[] } else { reader.until_zero()? }.to_vec();
        Ok(Greeting { version, thread, nonce, capabilities, collation, status, extended, plugin })
    }

    /// The payload. The random number must have at least 20 bytes.
    pub fn payload(&self) -> Vec<u8> {
        let [low, middle, high, top] = self.capabilities.to_le_bytes();
        let (first, second) = self.nonce.split_at(NONCE_FIRST_BYTES);
        let mut payload = vec![VERSION];
        payload.extend_from_slice(&self.version);
        payload.push(0);
        payload.extend_from_slice(&self.thread.to_le_bytes());
        payload.extend_from_slice(first);
        payload.extend_from_slice(&[0, low, middle, self.collation]);
        payload.extend_from_slice(&self.status.to_le_bytes());
        let length = if self.capabilities & PLUGIN_AUTH == 0 { 0 } else { self.nonce.len() + 1 };
        payload.extend_from_slice(&[high, top, u8::try_from(length).unwrap_or(u8::MAX)]);
        payload.extend_from_slice(&[0; 6]);
        payload.extend_from_slice(&self.extended.to_le_bytes());
        payload.extend_from_slice(second);
        payload.push(0);
        if self.capabilities & PLUGIN_AUTH != 0 {
            payload.extend_from_slice(&self.plugin);
            payload.push(0);
        }
        payload
    }

    /// The greeting without what is not in `capabilities`, and without capabilities beyond 32 bits.
    pub fn limited_to(mut self, capabilities: u32) -> Self {
        self.capabilities = self.capabilities & capabilities | MYSQL;
        self.extended = 0;
        self
    }

    /// The random number as `mysql_native_password` uses it.
    pub fn native_nonce(&self) -> Option<Hash> {
        self.nonce.as_slice().try_into().ok()
    }
}

/// The client's response to a greeting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    /// What the client uses.
    pub capabilities: u32,
    /// The largest packet that it takes.
    pub packet_bytes_max: u32,
    /// Its collation.
    pub collation: u8,
    /// The user.
    pub user: Vec<u8>,
    /// The proof, or whatever the plugin sends first.
    pub proof: Vec<u8>,
    /// The database.
    pub database: Option<Vec<u8>>,
    /// The plugin that the proof is for.
    pub plugin: Option<Vec<u8>>,
    /// The attributes of the connection, encoded.
    pub attributes: Option<Vec<u8>>,
}

impl Response {
    /// Reads a response of protocol version 4.1.
    pub fn read(payload: &[u8]) -> Result<Self, WireError> {
        let mut reader = Reader::new(payload);
        let capabilities = reader.u32()?;
        if capabilities & PROTOCOL_41 == 0 {
            return Err(WireError::Unexpected { expected: "a login of protocol version 4.1" });
        }
        let has = |bit| capabilities & bit != 0;
        let packet_bytes_max = reader.u32()?;
        let collation = reader.u8()?;
        reader.bytes(23)?;
        let user = reader.until_zero()?.to_vec();
        let proof = if has(PLUGIN_AUTH_LENENC) {
            reader.length_encoded_bytes()?
        } else if has(SECURE_CONNECTION) {
            let length = reader.u8()?;
            reader.bytes(usize::from(length))?
        } else {
            reader.until_zero()?
        };
        let proof = proof.to_vec();
        // Servers accept responses that end before the last values.
        let is_there = |reader: &Reader<'_>, bit| has(bit) && !reader.rest().is_empty();
        let text = |reader: &mut Reader<'_>, bit| {
            is_there(reader, bit).then(|| reader.until_zero().map(<[u8]>::to_vec)).transpose()
        };
        let database = text(&mut reader, CONNECT_WITH_DB)?;
        let plugin = text(&mut reader, PLUGIN_AUTH)?;
        let attributes =
            is_there(&reader, CONNECT_ATTRS).then(|| reader.length_encoded_bytes()).transpose()?;
        let attributes = attributes.map(<[u8]>::to_vec);
        Ok(Response { capabilities, packet_bytes_max, collation, user, proof, database, plugin, attributes })
    }

    /// The payload of a request for TLS: the beginning of the response. Both sides go on under TLS, and the whole response follows.
    pub fn tls_request(&self) -> Vec<u8> {
        let mut payload = self.payload();
        payload.truncate(TLS_REQUEST_BYTES);
        payload
    }

    /// The payload. The capabilities of absent values are left out, so that the server expects none.
    pub fn payload(&self) -> Vec<u8> {
        let mut capabilities = self.capabilities | PROTOCOL_41;
        for (bit, is_there) in [
            (CONNECT_WITH_DB, self.database.is_some()),
            (PLUGIN_AUTH, self.plugin.is_some()),
            (CONNECT_ATTRS, self.attributes.is_some()),
        ] {
            capabilities = if is_there { capabilities | bit } else { capabilities & !bit };
        }
        let mut payload = capabilities.to_le_bytes().to_vec();
        payload.extend_from_slice(&self.packet_bytes_max.to_le_bytes());
        payload.push(self.collation);
        payload.extend_from_slice(&[0; 23]);
        payload.extend_from_slice(&self.user);
        payload.push(0);
        if capabilities & PLUGIN_AUTH_LENENC != 0 {
            put_length_encoded(&mut payload, self.proof.len() as u64);
            payload.extend_from_slice(&self.proof);
        } else if capabilities & SECURE_CONNECTION != 0 {
            payload.push(u8::try_from(self.proof.len()).unwrap_or(u8::MAX));
            payload.extend_from_slice(&self.proof);
        } else {
            payload.extend_from_slice(&self.proof);
            payload.push(0);
        }
        for text in [&self.database, &self.plugin].into_iter().flatten() {
            payload.extend_from_slice(text);
            payload.push(0);
        }
        if let Some(attributes) = &self.attributes {
            put_length_encoded(&mut payload, attributes.len() as u64);
            payload.extend_from_slice(attributes);
        }
        payload
    }
}

/// A server's request to authenticate by another plugin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Switch {
    /// The plugin.
    pub plugin: Vec<u8>,
    /// Its random number, or other data.
    pub data: Vec<u8>,
}

impl Switch {
    /// Reads a request.
    pub fn read(payload: &[u8]) -> Result<Self, WireError> {
        let mut reader = Reader::new(payload);
        if reader.u8()? != EOF {
            return Err(WireError::Unexpected { expected: "a request for another plugin" });
        }
        let plugin = reader.until_zero()?.to_vec();
        let data = reader.rest();
        Ok(Switch { plugin, data: data.strip_suffix(&[0]).unwrap_or(data).to_vec() })
    }

    /// The random number as `mysql_native_password` uses it.
    pub fn native_nonce(&self) -> Option<Hash> {
        self.data.as_slice().try_into().ok()
    }
}
