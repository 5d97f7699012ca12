//! Every bound of the relay.

/// The largest packet of a log-in: a client's attributes have up to 64 KiB.
pub const LOG_IN_PACKET_BYTES_MAX: usize = 128 << 10;
/// Longest log-in, as the server's `connect_timeout`.
pub const LOG_IN_MS: u64 = 10_000;
/// Bytes that are read at once from either side.
pub const READ_BYTES: usize = 32 << 10;
/// Commands of one client whose replies are not complete. The gateway reads no more before one is.
pub const PIPELINED_COMMANDS_MAX: usize = 1024;
/// Pause after the system could not accept a connection, for example because too many files are open.
pub const ACCEPT_PAUSE_MS: u64 = 100;
