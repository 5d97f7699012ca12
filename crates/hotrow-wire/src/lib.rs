//! Frames of the PostgreSQL protocol, version 3: bytes to views of them and back. No I/O, no state.
//!
//! A frame is a tag, a length and a body. Whoever reads a socket calls [`split`] until it asks for more bytes, looks
//! at a frame through the views in [`frontend`] and [`backend`], and passes the bytes on as they came.
//!
//! | module | what lives there |
//! |---|---|
//! | `startup` | the first packets of a connection |
//! | `authentication` | the messages of a log-in |
//! | `frontend` | messages from clients |
//! | `backend` | messages from servers |
//! | `reader` | reads numbers and strings from a body |

pub mod authentication;
pub mod backend;
pub mod frontend;
mod reader;
pub mod startup;

pub use reader::Reader;

/// Bytes of a frame's tag and length.
pub const HEADER_BYTES: usize = 5;

/// One whole frame in somebody's buffer.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'a> {
    /// What kind of message it is.
    pub tag: u8,
    /// All of it, tag and length included.
    pub bytes: &'a [u8],
}

impl<'a> Frame<'a> {
    /// What comes behind tag and length.
    pub fn body(&self) -> &'a [u8] {
        &self.bytes[HEADER_BYTES..]
    }
}

/// What makes a peer's bytes unusable.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The length field is below its own size or beyond what is accepted for this kind of message.
    #[error("invalid length {length} of message type {tag:?}")]
    Length {
        /// The message's tag.
        tag: char,
        /// What its length field says.
        length: u32,
    },
    /// No such message.
    #[error("invalid frontend message type {0}")]
    UnknownTag(u8),
    /// The body ends too early, runs on, or holds what it can't.
    #[error("invalid message format: {0}")]
    Malformed(&'static str),
}

/// The first frame in `buffer`, or none while bytes are missing. The length is checked against `bytes_max` as soon
/// as it is there, so that nobody waits for 2 GB.
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

/// Appends a string and its closing zero.
pub fn put_cstr(out: &mut bytes::BytesMut, text: &[u8]) {
    out.extend_from_slice(text);
    out.extend_from_slice(&[0]);
}

#[cfg(test)]
mod tests;
