//! Headers and whole packets. A payload of 16 MiB less one byte or more is divided among several packets.

use bytes::{BufMut, Bytes, BytesMut};

use crate::WireError;

/// Bytes of a packet's header: the length of the payload, and the packet's number in its exchange.
pub const HEADER_BYTES: usize = 4;
/// The most bytes of one packet's payload. A packet with as many is continued by the next one.
pub const PAYLOAD_BYTES_MAX: usize = 0xff_ffff;

/// A packet's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Bytes of the payload.
    pub length: usize,
    /// The packet's number. A client's command has number 0.
    pub sequence: u8,
}

impl Header {
    /// Reads a header.
    pub fn read(bytes: [u8; HEADER_BYTES]) -> Self {
        let [low, middle, high, sequence] = bytes;
        Header { length: u32::from_le_bytes([low, middle, high, 0]) as usize, sequence }
    }

    /// Whether the next packet continues this one.
    pub fn is_continued(self) -> bool {
        self.length == PAYLOAD_BYTES_MAX
    }
}

/// A whole payload, from one or more packets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet {
    /// The number of its last packet.
    pub sequence: u8,
    /// The payload.
    pub payload: Bytes,
}

/// Appends a payload as one or more packets, numbered from `sequence` on. Returns the next number.
pub fn put(out: &mut BytesMut, sequence: u8, payload: &[u8]) -> u8 {
    let (mut sequence, mut rest) = (sequence, payload);
    loop {
        let (now, later) = rest.split_at(rest.len().min(PAYLOAD_BYTES_MAX));
        out.reserve(HEADER_BYTES + now.len());
        out.put_uint_le(now.len() as u64, 3);
        out.put_u8(sequence);
        out.put_slice(now);
        sequence = sequence.wrapping_add(1);
        // An empty packet ends a payload whose last part has the greatest length.
        if now.len() < PAYLOAD_BYTES_MAX {
            return sequence;
        }
        rest = later;
    }
}

/// Takes the first payload from the buffer, if all of it has arrived.
pub fn take(buffer: &mut BytesMut, bytes_max: usize) -> Result<Option<Packet>, WireError> {
    let (mut at, mut total, mut before) = (0, 0, None::<u8>);
    let last = loop {
        let Some(header) = header_at(buffer, at) else { return Ok(None) };
        if before.is_some_and(|before| before.wrapping_add(1) != header.sequence) {
            return Err(WireError::Sequence);
        }
        total += header.length;
        if total > bytes_max {
            return Err(WireError::TooLarge { bytes_max });
        }
        at += HEADER_BYTES + header.length;
        before = Some(header.sequence);
        if !header.is_continued() {
            break header;
        }
    };
    if buffer.len() < at {
        return Ok(None);
    }
    let mut parts = buffer.split_to(at);
    if last.length == total {
        return Ok(Some(Packet { sequence: last.sequence, payload: parts.split_off(HEADER_BYTES).freeze() }));
    }
    let mut payload = BytesMut::with_capacity(total);
    while let Some(header) = header_at(&parts, 0) {
        let part = parts.split_to(HEADER_BYTES + header.length);
        payload.extend_from_slice(&part[HEADER_BYTES..]);
    }
    Ok(Some(Packet { sequence: last.sequence, payload: payload.freeze() }))
}

fn header_at(buffer: &BytesMut, at: usize) -> Option<Header> {
    let bytes = buffer.get(at..)?.first_chunk::<HEADER_BYTES>()?;
    Some(Header::read(*bytes))
}
