//! The capabilities that both sides negotiate when a client logs in, and the flags of a server's status.

/// The client sends the names of the protocol's version 4.1: without it, packets have an older layout.
pub const PROTOCOL_41: u32 = 1 << 9;
/// The response names a database.
pub const CONNECT_WITH_DB: u32 = 1 << 3;
/// Packets are compressed with zlib.
pub const COMPRESS: u32 = 1 << 5;
/// The server can ask for a file of the client.
pub const LOCAL_FILES: u32 = 1 << 7;
/// The connection continues with TLS.
pub const SSL: u32 = 1 << 11;
/// The length of the authentication data has one byte.
pub const SECURE_CONNECTION: u32 = 1 << 15;
/// Both sides name an authentication plugin.
pub const PLUGIN_AUTH: u32 = 1 << 19;
/// The response has attributes of the connection.
pub const CONNECT_ATTRS: u32 = 1 << 20;
/// The length of the authentication data is encoded, so that it can exceed 250 bytes.
pub const PLUGIN_AUTH_LENENC: u32 = 1 << 21;
/// A result set ends in an OK packet, and no packet stands between its columns and its rows.
pub const DEPRECATE_EOF: u32 = 1 << 24;

/// What a relay of bytes supports. Absent bits: LOCAL_FILES (the server would ask the client for a file), COMPRESS and
/// its successors (other framing), SSL (the gateway has TLS of its own on each side), and the bits that newer servers may define. Bit 0 says that the further 32 bits
/// of MariaDB are not used, because they add packets (progress reports) and leave others out (cached columns).
pub const RELAYED: u32 = 0b1 // MYSQL, formerly LONG_PASSWORD
    | 1 << 1 // FOUND_ROWS
    | 1 << 2 // LONG_FLAG
    | CONNECT_WITH_DB
    | 1 << 4 // NO_SCHEMA
    | 1 << 6 // ODBC
    | 1 << 8 // IGNORE_SPACE
    | PROTOCOL_41
    | 1 << 10 // INTERACTIVE
    | 1 << 12 // IGNORE_SIGPIPE
    | 1 << 13 // TRANSACTIONS
    | 1 << 14 // RESERVED
    | SECURE_CONNECTION
    | 1 << 16 // MULTI_STATEMENTS
    | 1 << 17 // MULTI_RESULTS
    | 1 << 18 // PS_MULTI_RESULTS
    | PLUGIN_AUTH
    | CONNECT_ATTRS
    | PLUGIN_AUTH_LENENC
    | 1 << 22 // CAN_HANDLE_EXPIRED_PASSWORDS
    | 1 << 23 // SESSION_TRACK
    | DEPRECATE_EOF;

/// MariaDB's own name for bit 0: if it is set, the other side does not use MariaDB's further capabilities.
pub const MYSQL: u32 = 1;

/// A transaction is open.
pub const STATUS_IN_TRANSACTION: u16 = 0x0001;
/// Each statement is a transaction, unless one is begun.
pub const STATUS_AUTOCOMMIT: u16 = 0x0002;
/// Another result follows.
pub const STATUS_MORE_RESULTS: u16 = 0x0008;
/// The packet says how the session's state has changed.
pub const STATUS_SESSION_STATE_CHANGED: u16 = 0x4000;
/// The statement has opened a cursor: its rows are fetched by other commands.
pub const STATUS_CURSOR_EXISTS: u16 = 0x0040;
