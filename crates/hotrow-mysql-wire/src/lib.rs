//! Packets of MySQL's protocol, version 10, as MariaDB speaks it: parsing and writing. No I/O.
//!
//! A caller that forwards bytes unchanged feeds them to a [`scan::Scanner`], which finds the packets in them, and a
//! [`reply::ReplyReader`], which finds the end of a command's reply. A caller that needs whole packets takes them with
//! [`packet::take`].
//!
//! | module | what lives there |
//! |---|---|
//! | `capabilities` | the capabilities that both sides negotiate, and the flags of a server's status |
//! | `command` | the commands of a client, and the shape of their replies |
//! | `handshake` | the server's greeting, the client's response, and a request to authenticate by another plugin |
//! | `message` | OK, EOF and ERR packets |
//! | `native` | the computations of `mysql_native_password` |
//! | `packet` | headers, whole packets, and their division at 16 MiB |
//! | `reader` | a cursor over the payload of a packet |
//! | `reply` | where the reply to a command ends |
//! | `rows` | whole results: their status, their rows, and the form of these for prepared statements |
//! | `scan` | packets in a stream of bytes that is forwarded |
//! | `tests` | properties: written packets are read unchanged, and no bytes panic |

pub mod capabilities;
pub mod command;
pub mod handshake;
pub mod message;
pub mod native;
pub mod packet;
mod reader;
pub mod reply;
pub mod rows;
pub mod scan;
#[cfg(test)]
mod tests;

pub use reader::Reader;

/// Why bytes cannot be read as MySQL's protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// The payload ends within a value.
    #[error("a packet ends too early")]
    Truncated,
    /// The packets of one message are not numbered in order.
    #[error("the packets of a message are not numbered in order")]
    Sequence,
    /// A packet is larger than the reader allows.
    #[error("a packet has more than {bytes_max} bytes")]
    TooLarge {
        /// The limit.
        bytes_max: usize,
    },
    /// Not the packet that the protocol has here.
    #[error("{expected} was expected")]
    Unexpected {
        /// The packet that belongs here.
        expected: &'static str,
    },
}
