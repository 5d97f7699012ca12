//! Packets without a tag, which a client sends first: startup, SSLRequest, GSSENCRequest, CancelRequest.

use crate::{Error, Reader};

const SSL_REQUEST: u32 = (1234 << 16) | 5679;
const GSSENC_REQUEST: u32 = (1234 << 16) | 5680;
const CANCEL_REQUEST: u32 = (1234 << 16) | 5678;
/// The supported major version.
pub const MAJOR: u32 = 3;

/// A packet without a tag.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Packet {
    /// Requests TLS.
    Ssl,
    /// Requests GSSAPI encryption.
    GssEnc,
    /// Requests to cancel the work of another connection.
    Cancel {
        /// The process ID from that connection's BackendKeyData.
        process_id: u32,
        /// Its secret key.
        secret: Vec<u8>,
    },
    /// Begins a session.
    Start {
        /// The protocol's minor version that the client requests.
        minor: u32,
        /// The parameters in order, each once.
        parameters: Vec<(String, String)>,
    },
    /// An unsupported major version.
    Unsupported {
        /// The requested major version.
        major: u32,
        /// The requested minor version.
        minor: u32,
    },
}

/// The packet at the front of `buffer` and its length in bytes, or `None` if bytes are missing.
pub fn split(buffer: &[u8], bytes_max: usize) -> Result<Option<(Packet, usize)>, Error> {
    let Some((length, _)) = buffer.split_first_chunk::<4>() else { return Ok(None) };
    let length = u32::from_be_bytes(*length);
    let total = length as usize;
    if total < 8 || total > bytes_max {
        return Err(Error::Malformed("invalid length of startup packet"));
    }
    let Some(packet) = buffer.get(4..total) else { return Ok(None) };
    Ok(Some((parse(packet)?, total)))
}

fn parse(packet: &[u8]) -> Result<Packet, Error> {
    let mut reader = Reader::new(packet);
    match reader.u32()? {
        SSL_REQUEST => Ok(Packet::Ssl),
        GSSENC_REQUEST => Ok(Packet::GssEnc),
        CANCEL_REQUEST => Ok(Packet::Cancel { process_id: reader.u32()?, secret: reader.rest().to_vec() }),
        version if version >> 16 == MAJOR => {
            Ok(Packet::Start { minor: version & 0xffff, parameters: parameters(reader)? })
        }
        version => Ok(Packet::Unsupported { major: version >> 16, minor: version & 0xffff }),
    }
}

fn parameters(mut reader: Reader<'_>) -> Result<Vec<(String, String)>, Error> {
    let mut parameters: Vec<(String, String)> = Vec::new();
    loop {
        let name = reader.text()?;
        if name.is_empty() {
            reader.end().map_err(|_| {
                Error::Malformed("invalid startup packet layout: expected terminator as last byte")
            })?;
            return Ok(parameters);
        }
        // As in PostgreSQL, the last value is used. If both were kept, the gateway could check one and the
        // server could use the other.
        parameters.retain(|(known, _)| !is_same(known, name));
        parameters.push((name.to_owned(), reader.text()?.to_owned()));
    }
}

/// Names that the protocol defines. All other names are settings.
const OWN: [&str; 4] = ["user", "database", "options", "replication"];

/// Whether two names mean the same parameter to the server. Names of settings are compared without case.
fn is_same(one: &str, other: &str) -> bool {
    one == other || one.eq_ignore_ascii_case(other) && !OWN.contains(&one) && !OWN.contains(&other)
}

/// Appends the startup packet of protocol 3.0.
pub fn put_start<'a>(out: &mut bytes::BytesMut, parameters: impl Iterator<Item = (&'a str, &'a str)>) {
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(&(MAJOR << 16).to_be_bytes());
    for (name, value) in parameters {
        crate::put_cstr(out, name.as_bytes());
        crate::put_cstr(out, value.as_bytes());
    }
    out.extend_from_slice(&[0]);
    put_length(out, start);
}

/// Appends an SSLRequest.
pub fn put_ssl_request(out: &mut bytes::BytesMut) {
    out.extend_from_slice(&8_u32.to_be_bytes());
    out.extend_from_slice(&SSL_REQUEST.to_be_bytes());
}

/// Appends a CancelRequest.
pub fn put_cancel(out: &mut bytes::BytesMut, process_id: u32, secret: &[u8]) {
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(&CANCEL_REQUEST.to_be_bytes());
    out.extend_from_slice(&process_id.to_be_bytes());
    out.extend_from_slice(secret);
    put_length(out, start);
}

fn put_length(out: &mut bytes::BytesMut, start: usize) {
    let length = u32::try_from(out.len() - start).unwrap_or(u32::MAX);
    out[start..start + 4].copy_from_slice(&length.to_be_bytes());
}
