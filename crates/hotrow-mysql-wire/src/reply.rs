//! Where the reply to a command ends: the only thing that a relay of replies has to know.

use crate::WireError;
use crate::capabilities::{STATUS_CURSOR_EXISTS, STATUS_MORE_RESULTS};
use crate::command::ReplyShape;
use crate::message::{EOF, EOF_LENGTH, ERR, OK, Ok as OkPacket, eof_status};
use crate::packet::PAYLOAD_BYTES_MAX;
use crate::reader::Reader;
use crate::scan::Scanned;

/// What belongs to a reply next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    /// The first packet of a result.
    Result,
    /// This number of columns.
    Columns(u64),
    /// The packet between columns and rows.
    ColumnsEnd,
    /// A row, or the end of the rows.
    Row,
    /// The first packet of a prepared statement's description.
    Prepared,
    /// The descriptions of its parameters and of its columns, each list with its end.
    Descriptions {
        left: u64,
        after: u64,
    },
    Authentication,
    Single,
}

/// The state of a reply after a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// More packets belong to it.
    Continues,
    /// It is complete.
    Ended {
        /// The server's status, if the last packet has it. Errors have none.
        status: Option<u16>,
        /// Whether the reply is an error, or ends in one.
        is_error: bool,
    },
}

/// Reads the packets of one reply.
#[derive(Debug)]
pub struct ReplyReader {
    next: Next,
    /// Whether both sides use DEPRECATE_EOF.
    deprecates_eof: bool,
}

impl ReplyReader {
    /// For a reply of this shape. None if there is no reply.
    pub fn new(shape: ReplyShape, deprecates_eof: bool) -> Option<Self> {
        let next = match shape {
            ReplyShape::Nothing => return None,
            ReplyShape::Single => Next::Single,
            ReplyShape::Results => Next::Result,
            ReplyShape::Rows => Next::Row,
            ReplyShape::Prepared => Next::Prepared,
            ReplyShape::Authentication => Next::Authentication,
        };
        Some(ReplyReader { next, deprecates_eof })
    }

    /// Reads the next packet.
    pub fn packet(&mut self, packet: &Scanned) -> Result<Progress, WireError> {
        let first = *packet.head().first().ok_or(WireError::Truncated)?;
        if first == ERR && !matches!(self.next, Next::Columns(_) | Next::ColumnsEnd) {
            return Ok(Progress::Ended { status: None, is_error: true });
        }
        match self.next {
            Next::Result if first == OK => self.result_ends(OkPacket::read(packet.head())?.status),
            Next::Result => {
                let mut reader = Reader::new(packet.head());
                // 0xfb asks for a file of the client, which the handshake does not offer.
                self.next = Next::Columns(reader.length_encoded()?);
                Ok(Progress::Continues)
            }
            Next::Columns(left) => {
                self.next = match (left, self.deprecates_eof) {
                    (2.., _) => Next::Columns(left - 1),
                    (_, true) => Next::Row,
                    (_, false) => Next::ColumnsEnd,
                };
                Ok(Progress::Continues)
            }
            Next::ColumnsEnd => {
                let status = eof_status(packet.head())?;
                if status & STATUS_CURSOR_EXISTS != 0 {
                    return Ok(Progress::Ended { status: Some(status), is_error: false });
                }
                self.next = Next::Row;
                Ok(Progress::Continues)
            }
            Next::Row => self.row(first, packet),
            Next::Prepared => self.prepared(packet),
            Next::Descriptions { left, after } => Ok(self.description(left, after)),
            Next::Authentication if first != OK => Ok(Progress::Continues),
            Next::Authentication | Next::Single => {
                let status = match first {
                    OK => OkPacket::read(packet.head()).map(|ok| ok.status).ok(),
                    EOF => eof_status(packet.head()).ok(),
                    _ => None, // COM_STATISTICS has a text
                };
                Ok(Progress::Ended { status, is_error: false })
            }
        }
    }

    fn row(&mut self, first: u8, packet: &Scanned) -> Result<Progress, WireError> {
        if first != EOF {
            return Ok(Progress::Continues);
        }
        if packet.length < EOF_LENGTH {
            // The layout of EOF is shorter than that of OK, so both can be read whatever was negotiated.
            let status = match self.deprecates_eof {
                true => OkPacket::read(packet.head())?.status,
                false => eof_status(packet.head())?,
            };
            return self.result_ends(status);
        }
        if self.deprecates_eof && packet.length < PAYLOAD_BYTES_MAX {
            return self.result_ends(OkPacket::read(packet.head())?.status);
        }
        Ok(Progress::Continues) // a row whose first value has 16 MiB or more
    }

    fn result_ends(&mut self, status: u16) -> Result<Progress, WireError> {
        if status & STATUS_MORE_RESULTS != 0 {
            self.next = Next::Result;
            return Ok(Progress::Continues);
        }
        Ok(Progress::Ended { status: Some(status), is_error: false })
    }

    fn prepared(&mut self, packet: &Scanned) -> Result<Progress, WireError> {
        let mut reader = Reader::new(packet.head());
        reader.bytes(5)?; // OK, and the statement's ID
        let columns = self.with_end(reader.u16()?);
        let parameters = self.with_end(reader.u16()?);
        Ok(self.descriptions(parameters, columns))
    }

    /// The number of packets of a list with this number of descriptions.
    fn with_end(&self, descriptions: u16) -> u64 {
        let end = descriptions > 0 && !self.deprecates_eof;
        u64::from(descriptions) + u64::from(end)
    }

    fn description(&mut self, left: u64, after: u64) -> Progress {
        self.descriptions(left - 1, after)
    }

    fn descriptions(&mut self, left: u64, after: u64) -> Progress {
        let (left, after) = if left == 0 { (after, 0) } else { (left, after) };
        if left == 0 {
            return Progress::Ended { status: None, is_error: false };
        }
        self.next = Next::Descriptions { left, after };
        Progress::Continues
    }
}
