//! Every bound of the gateway, units last in the name. What an operator may change is in the configuration and
//! starts from the values here; what stands here alone was measured or follows from PostgreSQL.

/// PostgreSQL cuts longer names of users, databases and clients.
pub const IDENTIFIER_BYTES_MAX: usize = 63;
/// Clients at once; one more is refused with 53300.
pub const CLIENTS_MAX: usize = 10_000;
/// Upstream connections that sessions may hold at once, beside the lanes.
pub const HELD_CONNECTIONS_MAX: usize = 80;
/// How long a session waits for an upstream connection of its own before 53300.
pub const HELD_WAIT_MS: u64 = 10_000;
/// Held connections that may begin to work at once for each core, where the server is on the same machine.
pub const HELD_TURNS_PER_CORE: usize = 8;
/// The same for all cores together.
pub const HELD_TURNS_MAX: usize = 40;
/// How long a session waits for its turn before it goes without.
pub const HELD_TURN_WAIT_MS: u64 = 10;
/// How long a connection that no session holds is kept.
pub const HELD_IDLE_MS: u64 = 60_000;
/// Lanes for writes of one user, database and set of start-up settings; as many again for point reads.
pub const LANES: usize = 4;
/// Sets of lanes (user, database, start-up settings). A client that needs one more takes the place of the one that has been
/// unused for longest; if all are in use, it is refused with 53300.
pub const POOLS_MAX: usize = 100;
/// How many of them one role may have.
pub const POOLS_PER_ROLE_MAX: usize = 50;
/// How long a set of lanes without clients is kept.
pub const POOL_IDLE_MS: u64 = 600_000;

/// Units that may wait in one lane; one more is refused with 53000.
pub const LANE_QUEUE_UNITS_MAX: usize = 10_000;
/// How long a unit may be about to wait in a lane, by the lane's present pace; one that would wait longer is refused
/// with 53000 at once, so that nobody learns late that he came too late.
pub const QUEUE_WAIT_MS: u64 = 10_000;
/// Bytes that may wait in one lane.
pub const LANE_QUEUE_BYTES_MAX: usize = 64 << 20;
/// Units in one batch. More of them gain nothing: at 128 the commit is a percent of the batch's work.
pub const BATCH_UNITS_MAX: usize = 256;
/// Statements of a unit that may be packed; a longer one is passed through.
pub const UNIT_STATEMENTS_MAX: usize = 100;
/// Statements in one batch.
pub const BATCH_STATEMENTS_MAX: usize = 1_000;
/// Bytes of one batch.
pub const BATCH_BYTES_MAX: usize = 1 << 20;
/// Versions of one narrow row in one commit. Past 155 they no longer fit the heap page, and each update that
/// leaves the page adds an index entry and grows the table.
pub const ROWS_PER_COMMIT_MAX: u16 = 128;
/// A wide row gets at least so many: fewer would cost more in commits than in pages.
pub const ROWS_PER_COMMIT_MIN: u16 = 16;
/// Units that are always enough for a second batch behind the one under way. While the server commits that one, as many as it
/// has are enough too; fewer would make the batches smaller and smaller.
pub const SECOND_BATCH_UNITS_MIN: usize = 32;
/// Batches of one lane under way at once.
pub const BATCHES_UNDER_WAY_MAX: usize = 2;
/// A lane with so many units is left alone by units that are free to choose.
pub const LANE_FULL_UNITS: usize = 64;
/// Connections that may be lost under a unit before it has to run on one of its own.
pub const UNIT_LOSSES_MAX: u8 = 2;
/// Batches in which a unit was fine and another one was not before it has to run on its own, so that it is not
/// starved by neighbours that fail or are blocked again and again.
pub const UNIT_RERUNS_MAX: u8 = 16;
/// How long a statement in a lane waits for somebody else's lock before it leaves the lane.
pub const LANE_LOCK_TIMEOUT_MS: u64 = 100;
/// How long a statement may run in a lane, beside what it may wait for a lock, before it leaves the lane; and how long a
/// batch may run before the lane gets no new units and what waits there moves on.
pub const LANE_SLOW_MS: u64 = 100;
/// Batches that lock their rows ahead after one has met another's lock with units of several rows: long enough that
/// finding out anew costs next to nothing.
pub const LOCK_AHEAD_BATCHES: u32 = 10_000;
/// Keys of one table that are blocked by outsiders before the whole table is taken out of its lane.
pub const BLOCKED_KEYS_MAX: usize = 4;

/// Calls of one pool that may wait for something to answer; one more is refused with 53000.
pub const WAITING_CALLS_MAX: usize = 5_000;
/// How long a call may wait in the gateway; one that asks for more gets its empty answer then.
pub const WAITING_CALL_MS_MAX: u64 = 3_600_000;
/// A call that waits is not asked again sooner, whatever its function says, unless it is woken.
pub const WAITING_AGAIN_MS_MIN: u64 = 10;
/// How often a call that is due looks whether a pause is over.
pub const WAITING_PAUSED_MS: u64 = 1_000;
/// Key spaces of calls that wait that are remembered.
pub const WAITING_SPACES_MAX: usize = 1_000;
/// A call that waits and has been sent away from its lane by somebody's lock stops the other calls of its key for so long at
/// most: it may have got the lock and wait for something to answer.
pub const WAITING_ALONE_MS_MAX: u64 = 1_000;

/// Between two rounds of the schema pack's upkeep: posts to more followers than are brought at once wait so long.
pub const UPKEEP_MS: u64 = 15_000;

/// Bytes of one message from a client; PostgreSQL's own limit is 1 GiB.
pub const MESSAGE_BYTES_MAX: usize = 256 << 20;
/// Bytes of the messages that carry no data (Describe, Execute, Close, Sync, ...), as in PostgreSQL.
pub const SMALL_MESSAGE_BYTES_MAX: usize = 10_000;
/// Bytes of a start-up packet, as in PostgreSQL.
pub const STARTUP_BYTES_MAX: usize = 10_000;
/// Bytes of a unit that may be packed; a larger one is passed through.
pub const UNIT_BYTES_MAX: usize = 64 << 10;
/// Bytes that all clients together may have in half-received messages and unread answers.
pub const BUFFERED_BYTES_MAX: usize = 1 << 30;
/// What a session may buffer without asking the common budget.
pub const SESSION_BUFFER_BYTES: usize = 64 << 10;
/// Unread answers of one client past which nothing more is read from it or for it.
pub const UNREAD_BYTES_MAX: usize = 256 << 10;
/// Units that one client may have sent without waiting for answers; then it is not read until some are answered.
pub const PIPELINE_UNITS_MAX: usize = 1_000;
/// Bytes that a packed statement which writes may answer. A statement with a larger answer is passed through from then on.
pub const WRITE_ANSWER_BYTES_MAX: usize = 1 << 20;
/// Bytes of answers that a batch of reads gathers; the reads that have no room are run again in a later batch.
pub const BATCH_ANSWER_BYTES_MAX: usize = 8 << 20;
/// Bytes of one row a read may bring through a lane; a larger one is fetched again on a connection of its own.
pub const READ_ROW_BYTES_MAX: usize = 256 << 10;

/// HTTP connections at once; one more is answered 503.
pub const HTTP_CONNECTIONS_MAX: usize = 2_000;
/// Requests of one HTTP/2 connection at once.
pub const HTTP_STREAMS_MAX: u32 = 250;
/// HTTP requests under way at once; one more is answered 503.
pub const HTTP_REQUESTS_MAX: usize = 4_000;
/// Groups of sessions of the gateway that HTTP requests share, for calls that are merged; as many for the others. Calls
/// that meet on one key share a group, so that a row which somebody holds locked stops one group and no other.
pub const HTTP_GROUPS: usize = 8;
/// Sessions of one group.
pub const HTTP_GROUP_SESSIONS: usize = 4;
/// HTTP requests under way in one group; one more is answered 503.
pub const HTTP_GROUP_REQUESTS_MAX: usize = 1_000;
/// Bytes of an HTTP request's body.
pub const HTTP_BODY_BYTES_MAX: usize = 64 << 10;
/// Bytes of the body of an HTTP request that brings many orders.
pub const HTTP_BATCH_BYTES_MAX: usize = 1 << 20;
/// Such requests at once; one more is answered 503.
pub const HTTP_BATCHES_MAX: usize = 100;
/// HTTP requests that wait for an order to come, each on a session of its own; one more is answered 503.
pub const HTTP_WAITS_MAX: usize = 256;
/// Sessions that are kept for such requests while there are none.
pub const HTTP_WAIT_SESSIONS_KEPT: usize = 32;
/// How long such a request may ask to wait.
pub const HTTP_WAIT_SECONDS_MAX: i64 = 60;
/// Bytes of an HTTP request's line and headers.
pub const HTTP_HEADER_BYTES_MAX: usize = 16 << 10;
/// How long an HTTP client may take to send its request's headers, and as long again for the body.
pub const HTTP_REQUEST_TIMEOUT_MS: u64 = 30_000;
/// How long a request waits for the server to take it before it is answered 503.
pub const HTTP_SEND_TIMEOUT_MS: u64 = 10_000;
/// How long a request waits for its answer before it is answered 504.
pub const HTTP_ANSWER_TIMEOUT_MS: u64 = 60_000;
/// How long an HTTP connection may be silent.
pub const HTTP_IDLE_MS: u64 = 150_000;
/// Bytes of a name in the schema pack: of a counter, an item, a buyer.
pub const NAME_BYTES_MAX: usize = 500;

/// Statements that an operator's session may have prepared.
pub const CONSOLE_STATEMENTS_MAX: usize = 100;
/// Units of one lane that the console shows; the queue's length says how many more there are.
pub const SHOWN_UNITS_MAX: usize = 1_000;
/// Shapes that the console shows: those passed through most often. More would hold up whoever works beside it.
pub const SHOWN_STATEMENTS_MAX: usize = 1_000;
/// Characters of a statement's shape that the console shows among other things.
pub const SHOWN_SHAPE_CHARS_MAX: usize = 100;

/// Statement shapes remembered per database; twice as many for a moment.
pub const SHAPES_MAX: usize = 5_000;
/// Bytes of their texts.
pub const SHAPES_BYTES_MAX: usize = 16 << 20;
/// Statements prepared on one upstream connection; the oldest is closed for a new one.
pub const PREPARED_MAX: usize = 500;
/// Tables that the batches of one lane are checked for; past that the lane begins with those of the next batch.
pub const LANE_TABLES_MAX: usize = 32;
/// Tables that bear a name of one statement and are looked into; past that it is not known what it leaves behind.
pub const REACHED_TABLES_MAX: usize = 20;
/// Named statements that one client may hold.
pub const CLIENT_STATEMENTS_MAX: usize = 10_000;
/// Bytes of a statement that is parsed; a longer one is passed through unread.
pub const STATEMENT_BYTES_MAX: usize = 64 << 10;
/// Tokens of a statement that is parsed: the parser takes half a microsecond for each. A longer statement is passed through,
/// and its tokens show what it may leave behind.
pub const PARSED_TOKENS_MAX: usize = 4_096;
/// Bytes of a statement that is classified on the thread that carries bytes. A longer one is classified on a thread of its own.
pub const CLASSIFIED_INLINE_BYTES_MAX: usize = 4 << 10;
/// Long statements that are classified at once; the others wait.
pub const CLASSIFIED_AT_ONCE_MAX: usize = 2;
/// How long what the catalogue said of a table is believed without asking again.
pub const CATALOGUE_AGE_MS: u64 = 5_000;

/// Bytes that a TLS handshake may take from the other side; certificates of several authorities take 10 KB.
pub const TLS_HANDSHAKE_BYTES_MAX: usize = 128 << 10;
/// Bytes that are encrypted ahead of the socket: four of the largest records.
pub const TLS_WRITE_BYTES: usize = 64 << 10;

/// How long a client may take to say who it is and to prove it.
pub const STARTUP_TIMEOUT_MS: u64 = 10_000;
/// Lines of the list of who may come how.
pub const HBA_RULES_MAX: usize = 1_000;
/// Users in the file of users. Plain passwords among them cost a millisecond each when it is read.
pub const USERS_MAX: usize = 10_000;
/// Bytes of each of these two files.
pub const AUTH_FILE_BYTES_MAX: u64 = 4 << 20;
/// Iterations of SCRAM's hash that are done for anybody; PostgreSQL's default is 4,096.
pub const SCRAM_ITERATIONS_MAX: u32 = 1_000_000;
/// Users whose secrets the server was asked for that are remembered.
pub const SECRETS_MAX: usize = 10_000;
/// How long a secret from the server is believed without asking again.
pub const SECRET_AGE_MS: u64 = 5_000;
/// How long a log-in at the server lets further clients of the same user, database and start-up settings in.
pub const LOG_IN_AGE_MS: u64 = 1_000;
/// How long a connection to the server may take to come up.
pub const CONNECT_TIMEOUT_MS: u64 = 5_000;
/// How long the other end of a connection to the server may acknowledge nothing before the connection is lost: a machine
/// without power says no goodbye.
pub const SERVER_SILENT_MS: u64 = 16_000;
/// The first pause after a failed connection; it doubles up to the next.
pub const RECONNECT_MIN_MS: u64 = 50;
/// The longest pause between two attempts to connect.
pub const RECONNECT_MAX_MS: u64 = 2_000;
/// How long units that were not sent wait for the server to come back before 57P03.
pub const SERVER_WAIT_MS: u64 = 5_000;
/// So many times as long the gateway asks what became of a commit before it says 08007.
pub const RESOLVE_WAITS: u32 = 6;
/// How long a new connection of a lane waits for the backend of the one before to end, whose mark it takes.
pub const MARK_WAIT_MS: u64 = 100;
/// The same with a commit in doubt: the backend finds its connection gone when it has run what it had received.
pub const MARK_IN_DOUBT_WAIT_MS: u64 = 1_000;
/// Of so many transaction ids at most the gateway asks whether one is committed, to find out what became of a batch whose
/// id did not arrive.
pub const DOUBT_IDS_MAX: u64 = 1_000;
/// How long a client that got into a gateway which has been replaced may be silent before it is sent away: as long as a
/// client may need to say what it came for.
pub const HANDED_QUIET_MS: u64 = 1_000;
/// How long a gateway that is to take over may take to serve.
pub const SUCCESSOR_MS: u64 = 30_000;
/// How long a stop waits for what is under way.
pub const DRAIN_TIMEOUT_MS: u64 = 10_000;

const _: () = {
    assert!(ROWS_PER_COMMIT_MIN <= ROWS_PER_COMMIT_MAX);
    assert!(ROWS_PER_COMMIT_MAX as usize <= BATCH_UNITS_MAX);
    assert!(SECOND_BATCH_UNITS_MIN <= LANE_FULL_UNITS && LANE_FULL_UNITS <= LANE_QUEUE_UNITS_MAX);
    assert!(UNIT_BYTES_MAX <= BATCH_BYTES_MAX);
    assert!(WAITING_CALLS_MAX < LANE_QUEUE_UNITS_MAX); // all may be woken at once
    assert!(UNIT_STATEMENTS_MAX <= BATCH_STATEMENTS_MAX && BATCH_UNITS_MAX <= BATCH_STATEMENTS_MAX);
    assert!(STATEMENT_BYTES_MAX <= UNIT_BYTES_MAX);
    assert!(POOLS_PER_ROLE_MAX < POOLS_MAX); // one role cannot have all
    assert!(READ_ROW_BYTES_MAX <= WRITE_ANSWER_BYTES_MAX); // what a read may bring, a write may
    assert!(READ_ROW_BYTES_MAX <= BATCH_ANSWER_BYTES_MAX);
    assert!(SESSION_BUFFER_BYTES <= UNREAD_BYTES_MAX);
    assert!(CLASSIFIED_INLINE_BYTES_MAX < STATEMENT_BYTES_MAX);
    assert!(SESSION_BUFFER_BYTES <= MESSAGE_BYTES_MAX && MESSAGE_BYTES_MAX <= BUFFERED_BYTES_MAX);
    assert!(LANE_LOCK_TIMEOUT_MS < 1_000); // below deadlock_timeout: a lane gives way before PostgreSQL looks for a culprit
    assert!(RECONNECT_MAX_MS < SERVER_WAIT_MS);
    assert!(HTTP_GROUP_REQUESTS_MAX < HTTP_REQUESTS_MAX && HTTP_REQUESTS_MAX <= LANE_QUEUE_UNITS_MAX);
    assert!(HTTP_GROUP_REQUESTS_MAX <= HTTP_GROUP_SESSIONS * PIPELINE_UNITS_MAX);
    assert!(HTTP_BODY_BYTES_MAX <= UNIT_BYTES_MAX);
    assert!(
        SERVER_WAIT_MS < HTTP_SEND_TIMEOUT_MS
            && HTTP_ANSWER_TIMEOUT_MS > SERVER_WAIT_MS * RESOLVE_WAITS as u64
    ); // the gateway's own word is better
    // Who waits for an answer is silent.
    assert!(
        HTTP_SEND_TIMEOUT_MS + HTTP_WAIT_SECONDS_MAX as u64 * 1_000 + HTTP_ANSWER_TIMEOUT_MS < HTTP_IDLE_MS
    );
    assert!(HTTP_WAITS_MAX < WAITING_CALLS_MAX && HTTP_WAIT_SESSIONS_KEPT <= HTTP_WAITS_MAX);
};
