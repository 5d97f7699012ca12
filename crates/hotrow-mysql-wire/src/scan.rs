//! Finds the packets in a stream of bytes that is forwarded as it comes. Only the first bytes of each payload are kept.

use crate::packet::{HEADER_BYTES, Header};

/// The most bytes that are kept of a payload: those of an OK packet up to its status (1 + 9 + 9 + 2), and of a short text.
const HEAD_BYTES: usize = 96;

/// A payload that has passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scanned {
    /// All its bytes.
    pub length: usize,
    head: [u8; HEAD_BYTES],
}

impl Scanned {
    /// A whole payload.
    pub fn of(payload: &[u8]) -> Self {
        let mut head = [0; HEAD_BYTES];
        let kept = payload.len().min(HEAD_BYTES);
        head[..kept].copy_from_slice(&payload[..kept]);
        Scanned { length: payload.len(), head }
    }

    /// Its first bytes.
    pub fn head(&self) -> &[u8] {
        &self.head[..self.length.min(HEAD_BYTES)]
    }
}

/// The state between two pieces of the stream.
#[derive(Debug)]
pub struct Scanner {
    header: [u8; HEADER_BYTES],
    header_bytes: usize,
    /// Bytes of the current packet that have not passed yet.
    left: usize,
    is_continued: bool,
    length: usize,
    head: [u8; HEAD_BYTES],
}

impl Default for Scanner {
    fn default() -> Self {
        let (header, head) = ([0; HEADER_BYTES], [0; HEAD_BYTES]);
        Scanner { header, header_bytes: 0, left: 0, is_continued: false, length: 0, head }
    }
}

impl Scanner {
    /// Reads to the end of the next payload. Returns the number of bytes read, and the payload if it has ended.
    pub fn feed(&mut self, bytes: &[u8]) -> (usize, Option<Scanned>) {
        let mut at = 0;
        loop {
            if self.header_bytes < HEADER_BYTES {
                let now = (HEADER_BYTES - self.header_bytes).min(bytes.len() - at);
                self.header[self.header_bytes..self.header_bytes + now].copy_from_slice(&bytes[at..at + now]);
                self.header_bytes += now;
                at += now;
                if self.header_bytes < HEADER_BYTES {
                    return (at, None);
                }
                let header = Header::read(self.header);
                (self.left, self.is_continued) = (header.length, header.is_continued());
            }
            let now = self.left.min(bytes.len() - at);
            if self.length < HEAD_BYTES {
                let kept = now.min(HEAD_BYTES - self.length);
                self.head[self.length..self.length + kept].copy_from_slice(&bytes[at..at + kept]);
            }
            self.length += now;
            self.left -= now;
            at += now;
            if self.left > 0 {
                return (at, None);
            }
            self.header_bytes = 0;
            if !self.is_continued {
                let scanned = Scanned { length: std::mem::take(&mut self.length), head: self.head };
                return (at, Some(scanned));
            }
        }
    }

    /// Whether the stream is between two payloads.
    pub fn is_between(&self) -> bool {
        self.header_bytes == 0 && self.length == 0
    }
}
