//! Frames of the PostgreSQL protocol, version 3: parsing and writing. No I/O, no state.
//!
//! A frame is a tag, a length and a body. A caller that reads a socket calls [`split`] until it needs more
//! bytes, reads a frame through the views in [`frontend`] and [`backend`], and forwards the bytes unchanged.
//!
//! | module | what lives there |
//! |---|---|
//! | `authentication` | authentication messages of both sides |
//! | `backend` | messages of a server |
//! | `frontend` | messages of a client |
//! | `reader` | a cursor over the body of a message |
//! | `sqlstate` | the SQLSTATEs that the gateway raises |
//! | `startup` | packets without a tag: startup, SSLRequest, GSSENCRequest, CancelRequest |

pub mod authentication;
pub mod backend;
pub mod frontend;
mod reader;
mod sqlstate;
pub mod startup;

pub use reader::Reader;
pub use sqlstate::SqlState;

/// Bytes of a frame's tag and length.
pub const HEADER_BYTES: usize = 5;

/// One complete frame in a buffer.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'a> {
    /// The kind of message.
    pub tag: u8,
    /// The whole frame, including tag and length.
    pub bytes: &'a [u8],
}

impl<'a> Frame<'a> {
    /// The bytes after tag and length.
    pub fn body(&self) -> &'a [u8] {
        &self.bytes[HEADER_BYTES..]
    }
}

/// The reason why a peer's bytes are invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The length field is smaller than its own size, or greater than the maximum for this kind of message.
    #[error("invalid length {length} of message type {tag:?}")]
    Length {
        /// The message's tag.
        tag: char,
        /// The value of its length field.
        length: u32,
    },
    /// An unknown message.
    #[error("invalid frontend message type {0}")]
    UnknownTag(u8),
    /// The body is too short, too long, or has invalid contents.
    #[error("invalid message format: {0}")]
    Malformed(&'static str),
}

/// The first frame in `buffer`, or `None` if bytes are missing. The length is checked against `bytes_max` as
/// soon as it has arrived. The gateway therefore never waits for 2 GB.
pub fn split(buffer: &[u8], bytes_max: impl Fn(u8) -> usize) -> Result<Option<Frame<'_>>, Error> {
    let Some((header, _)) = buffer.split_first_chunk::<HEADER_BYTES>() else { return Ok(None) };
    let [tag, length @ ..] = *header;
    let length = u32::from_be_bytes(length);
    let total = length as usize + 1;
    if length < 4 || total > bytes_max(tag) {
        return Err(Error::Length { tag: char::from(tag), length });
    }
    Ok(buffer.get(..total).map(|bytes| Frame { tag, bytes }))
}

/// Appends a frame whose body `write` appends.
pub fn put_frame(out: &mut bytes::BytesMut, tag: u8, write: impl FnOnce(&mut bytes::BytesMut)) {
    let start = out.len();
    out.extend_from_slice(&[tag, 0, 0, 0, 0]);
    write(out);
    let length = u32::try_from(out.len() - start - 1).unwrap_or(u32::MAX);
    out[start + 1..start + HEADER_BYTES].copy_from_slice(&length.to_be_bytes());
}

/// Appends a string and a zero byte.
pub fn put_cstr(out: &mut bytes::BytesMut, text: &[u8]) {
    out.extend_from_slice(text);
    out.extend_from_slice(&[0]);
}

#[cfg(test)]
mod tests;
