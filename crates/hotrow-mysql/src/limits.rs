//! Every bound of the relay.

/// The largest packet of a login.
pub use hotrow_mysql_client::socket::PACKET_BYTES_MAX as LOGIN_PACKET_BYTES_MAX;

/// Longest login, as the server's `connect_timeout`.
pub const LOGIN_MS: u64 = 10_000;
/// Bytes that are read at once from either side.
pub const READ_BYTES: usize = 32 << 10;
/// Commands of one client whose replies are not complete. The gateway reads no more before one is.
pub const PIPELINED_COMMANDS_MAX: usize = 1024;
/// Longest text of a statement that can be packed.
pub const TEXT_BYTES_MAX: usize = 16 << 10;
/// Kinds of clients with lanes: a user, a database, capabilities, and settings. Those without clients make room for
/// others.
pub const POOLS_MAX: usize = 64;
/// Lanes of one kind of clients. Each one with work is a connection.
pub const LANES: usize = 4;
/// Statements in a lane above which those with other keys prefer another lane.
pub const LANE_FULL: usize = 128;
/// The same while commits are slow.
pub const LANE_FULL_SLOW_COMMITS: usize = 16;
/// A commit is slow if it takes longer than this, and than the statements of its batch.
pub const SLOW_COMMIT_US: u64 = 1_000;
/// Tables whose facts are remembered. With one more, all are forgotten.
pub const TABLES_MAX: usize = 1_000;
/// Longest wait for an answer about a table or a user. Clients log in, and statements are passed through, without it.
pub const FACTS_WAIT_MS: u64 = 5_000;
/// Users whose rights are remembered. With one more, all are forgotten.
pub const USERS_MAX: usize = 1_000;
/// Age at which the rights of a user who logs in are read again. A session that logs in sooner after a GRANT is not packed.
pub const RIGHTS_AGE_MS: u64 = 100;
/// Time without a command after which a session's own connection gets a PING while its statements run in a lane. Otherwise the
/// server would close it after `wait_timeout`, which has whole seconds. A statement that waits so long in a lane for another one,
/// which waits for a lock, leaves.
pub const KEEP_ALIVE_MS: u64 = 400;
/// Age at which a table's facts are read again. A batch checks those that matter.
pub const TABLE_AGE_MS: u64 = 10_000;
/// Until an idle lane closes the tables that it watches: the longest wait of a change of a table for the lane.
pub const WATCH_IDLE_MS: u64 = 100;
/// Until a lane that could not be opened is tried again. If it is not the first one of its kind, that one has all statements until then.
pub const FAILED_POOL_MS: u64 = 10_000;
/// Longest estimated wait in a lane. After it, the session runs its statement itself.
pub const QUEUE_WAIT_MS: u64 = 10_000;
/// Statements under way from which they are packed, unless the settings have another number. Each batch costs the server about as much
/// as three statements.
pub const PACK_FROM: u64 = 4;
/// How long there is a crowd after its last statement: longer than a batch.
pub const CROWD_MS: u64 = 100;
/// Until an unused connection of a lane is closed.
pub const LANE_IDLE_MS: u64 = 60_000;
/// Pause between two attempts to open a lane's connection.
pub const OPEN_PAUSE_MS: u64 = 50;
/// Longest wait for the end of a lane's former connection, as GET_LOCK takes it.
pub const FORMER_WAIT_SECONDS: u64 = 10;
/// Prepared statements of a session that can be packed. With one more, the session packs no more.
pub const PREPARED_MAX: usize = 1_000;
/// Pause after the system could not accept a connection, for example because too many files are open.
pub const ACCEPT_PAUSE_MS: u64 = 100;
