//! Every bound of the gateway. The unit is the last part of the name. Each comment says what is bounded and what happens
//! beyond the bound. The configuration can change some of these values. The others were measured or follow from
//! PostgreSQL.

pub use hotrow_lane::limits::*;

/// Bytes of the name of a user, database or client. PostgreSQL truncates longer names.
pub const IDENTIFIER_BYTES_MAX: usize = 63;
/// Clients connected at one time. The gateway rejects one more with SQLSTATE 53300.
pub const CLIENTS_MAX: usize = 10_000;
/// Clients that have connected and wait until the gateway accepts them, for each socket. The system allows fewer if
/// `net.core.somaxconn` is smaller. Beyond that a client connects a second or more later.
pub const LISTEN_BACKLOG: u32 = 4_096;
/// Upstream connections that sessions hold at one time, in addition to the lanes. A session that needs one
/// more waits.
pub const HELD_CONNECTIONS_MAX: usize = 80;
/// Time that a session waits for an upstream connection. After that its client gets SQLSTATE 53300.
pub const HELD_WAIT_MS: u64 = 10_000;
/// Held connections per core that can start work at one time, if the server is on the same machine. Others
/// wait for a turn.
pub const HELD_TURNS_PER_CORE: usize = 8;
/// Held connections on all cores that can start work at one time, if the server is on the same machine.
/// Others wait for a turn.
pub const HELD_TURNS_MAX: usize = 40;
/// Time that a session waits for a turn. After that it starts without one.
pub const HELD_TURN_WAIT_MS: u64 = 10;
/// Time that an upstream connection without a session stays open. After that the gateway closes it.
pub const HELD_IDLE_MS: u64 = 60_000;
/// Lanes for writes of one pool. Point reads have the same number of lanes of their own. More units share
/// these lanes.
pub const LANES: usize = 4;
/// `[[database]]` tables of the settings file.
pub const DATABASES_MAX: usize = 1_000;
/// Pools (user, database and startup settings) of one server. A client that needs one more replaces the pool that has been
/// unused for the longest time. If all pools are in use, the gateway rejects the client with SQLSTATE 53300.
pub const POOLS_MAX: usize = 100;
/// Pools of one role at one server. A client of the role that needs one more replaces the pool of the role that has been
/// unused for the longest time. If all of them are in use, the gateway rejects the client with SQLSTATE
/// 53300.
pub const POOLS_PER_ROLE_MAX: usize = 50;
/// Pools of one role whose clients have changed settings in their sessions. A client that needs one more keeps its connection
/// and is passed through.
pub const POOLS_WITH_SETTINGS_PER_ROLE_MAX: usize = 25;
/// Time that a pool without clients stays open. After that the gateway closes it.
pub const POOL_IDLE_MS: u64 = 600_000;
/// How long a pool with settings, in which a statement has run, is kept for the next session that sets them, if its room is
/// wanted for other settings. Opening a pool costs as much as hundreds of statements, so sessions with other settings keep
/// their connections meanwhile.
pub const POOL_TURN_MS: u64 = 10_000;
/// Frameworks begin a session with several SETs. Up to this number of changes, a session takes the room of any unused pool.
pub const MOVES_AT_LOGIN_MAX: usize = 8;
/// How often a session that keeps its connection, because there is no room for a pool with its settings, looks for room.
pub const POOL_ROOM_MS: u64 = 1000;

/// Time that a node of a cluster has for the answer about a statement, for which clients wait. Without an answer, the statement's
/// units run through the coordinator.
pub const NODE_ANSWER_MS: u64 = 2_000;
/// Time for which no client waits for a node that has not answered in that time.
pub const NODE_SILENCE_MS: u64 = 10_000;
/// Stack of a thread that analyses statements. The most deeply nested statement that is parsed needs at most 1 MiB of an optimised
/// program, and 4 MiB if the parser is not optimised.
pub const STACK_BYTES: usize = 8 << 20;

/// Statements of a packed unit. A unit with more statements is passed through.
pub const UNIT_STATEMENTS_MAX: usize = 100;
/// Bytes of the writes that a transaction holds back. Before the next one that is larger, they run.
pub const DEFERRED_BYTES_MAX: usize = 64 << 10;
/// Rows of one statement for which it is remembered whether a run changes one row. Later rows replace earlier ones.
pub const FORETOLD_ROWS: usize = 256;
/// Runs that have to change one row before it is foretold again, after it was foretold wrongly.
pub const RUNS_AFTER_WRONG: u64 = 100;
/// Partitions of a table whose statements are packed. A batch can lock each of them, with its indexes, until its commit.
/// With more partitions, the batches of all lanes could fill the server's lock table.
pub const PARTITIONS_MAX: usize = 128;
/// Views, one above the other, between a statement and its table. With more, the statement is passed through.
pub const VIEWS_MAX: usize = 8;
/// Shards of a distributed table whose statements are packed.
pub const SHARDS_MAX: usize = 4_096;
/// Nodes of a distributed database to which the gateway connects.
pub const NODES_MAX: usize = 64;
/// Versions of one narrow row in one commit. More units of the row wait for the next batch. More than 155
/// versions do not fit the heap page, and each update that leaves the page adds an index entry and grows the
/// table.
pub const ROWS_PER_COMMIT_MAX: u16 = 128;
/// Versions of one wide row that a commit can always have. With fewer versions, commits would cost more than
/// pages.
pub const ROWS_PER_COMMIT_MIN: u16 = 16;
/// Time that a statement in a lane waits for an outsider's lock. After that it leaves the lane.
pub const LANE_LOCK_TIMEOUT_MS: u64 = 100;

/// Time that a call waits in the gateway. A call that requests more gets its empty result after this time.
pub const WAITING_CALL_MS_MAX: u64 = 3_600_000;
/// Shortest time before a waiting call is retried without a notification. A function that requests a shorter
/// time gets this one.
pub const WAITING_AGAIN_MS_MIN: u64 = 10;
/// Interval at which a call that is due checks for the end of a pause.
pub const WAITING_PAUSED_MS: u64 = 1_000;
/// Time that a waiting call that left its lane because of a lock blocks other calls of its key. After that
/// they run: the call may have got the lock and may wait for a result.
pub const WAITING_ALONE_MS_MAX: u64 = 1_000;

/// Channels of all sessions of one listening connection, each counted once for each session. A session that needs one
/// more keeps its connection.
pub const LISTENED_CHANNELS_MAX: usize = 50_000;
/// Bytes of the notifications that wait for one client. One more ends the client's connection with SQLSTATE 53200. If half
/// of [`BUFFERED_BYTES_MAX`] is in use, each client can have [`SESSION_BUFFER_BYTES`]. Directly, notifications would wait
/// in the server's queue, which is full at 8 GB and then rejects every NOTIFY.
pub const WAITING_NOTIFICATIONS_BYTES_MAX: usize = 16 << 20;
/// Notifications before one ReadyForQuery that are recognised when a listening connection reports them too. If there are
/// more, the last ones are recognised.
pub const DUE_NOTIFICATIONS_MAX: usize = 1_000;
/// Time that a session or a new listening connection waits for the gateway's own notification. A session then keeps its
/// connection. A listening connection counts as lost.
pub const MARKER_WAIT_MS: u64 = 5_000;

/// Interval between two rounds of the hotrow schema's maintenance. Posts to more followers than one call delivers to
/// wait for it.
pub const MAINTENANCE_MS: u64 = 15_000;

/// Bytes of one message from a client. A longer message ends the connection with SQLSTATE 08P01. PostgreSQL's
/// own limit is 1 GiB.
pub const MESSAGE_BYTES_MAX: usize = 256 << 20;
/// Bytes of a message without data (Describe, Execute, Close, Sync and others). A longer message ends the
/// connection, as in PostgreSQL.
pub const SMALL_MESSAGE_BYTES_MAX: usize = 10_000;
/// Bytes of a startup packet. A longer packet ends the connection, as in PostgreSQL.
pub const STARTUP_BYTES_MAX: usize = 10_000;
/// Bytes of a packed unit. A larger unit is passed through.
pub const UNIT_BYTES_MAX: usize = 64 << 10;
/// Bytes of partial messages and unread replies of all clients. Beyond that, a client whose message does not
/// fit is disconnected with SQLSTATE 53200, and each client can have only [`SESSION_BUFFER_BYTES`] of unread
/// replies.
pub const BUFFERED_BYTES_MAX: usize = 1 << 30;
/// Bytes that a session can buffer outside [`BUFFERED_BYTES_MAX`].
pub const SESSION_BUFFER_BYTES: usize = 64 << 10;
/// Bytes of unread replies of one client. Beyond that the gateway reads nothing more from the client or for
/// it.
pub const UNREAD_BYTES_MAX: usize = 256 << 10;
/// Units that one client can send without reading replies. Beyond that the gateway reads nothing from the
/// client until some of them are answered.
pub const PIPELINE_UNITS_MAX: usize = 1_000;
/// Bytes of the reply to a packed statement. A statement with a larger reply is passed through from then on.
pub const ANSWER_BYTES_MAX: usize = 1 << 20;
/// Bytes of the replies to a batch of reads. Reads without room run again in a later batch.
pub const BATCH_ANSWER_BYTES_MAX: usize = 8 << 20;
/// Bytes of one row that a read returns through a lane. A read with a larger row runs again on a connection
/// of its session.
pub const READ_ROW_BYTES_MAX: usize = 256 << 10;

/// Statements that a console session can prepare. Preparing one more is an error.
pub const CONSOLE_STATEMENTS_MAX: usize = 100;
/// Units of one lane that the console shows. The length of the queue shows how many more there are.
pub const SHOWN_UNITS_MAX: usize = 1_000;
/// Statement shapes that the console shows, those with the most runs first. A longer list would delay other work.
pub const SHOWN_STATEMENTS_MAX: usize = 1_000;
/// Characters of a statement's shape in the console's lists. A longer shape is truncated.
pub const SHOWN_SHAPE_CHARS_MAX: usize = 100;
/// Databases and users that have metrics of their own. All further ones share theirs.
pub const TRAFFIC_CLIENTS_MAX: usize = 100;
/// Time between two log lines about the same kind of refusal, or about the server's loss and return. Those in between
/// are counted.
pub const LOG_EVERY_MS: u64 = 10_000;
/// Links of a batch's span to the spans of its units. Those of further units are counted.
pub const SPAN_LINKS_MAX: usize = 128;
/// Spans of batches that wait for the collector of traces. Further ones are dropped and counted.
pub const SPANS_WAITING_MAX: usize = 2_048;
/// Spans in one request to the collector.
pub const SPANS_SENT_MAX: usize = 512;
/// Time that a span waits for others to be sent with it.
pub const SPANS_GATHER_MS: u64 = 200;
/// Longest wait for the collector's answer. After that the spans of the request are dropped.
pub const SPANS_SEND_TIMEOUT_MS: u64 = 10_000;
/// The same for the last spans, when the gateway stops.
pub const SPANS_STOP_TIMEOUT_MS: u64 = 1_000;
/// Bytes of the collector's answer that are read. The answer to a request that was accepted is shorter.
pub const COLLECTOR_ANSWER_BYTES_MAX: usize = 64 << 10;
/// Keys that the console shows, the hottest first.
pub const SHOWN_KEYS_MAX: usize = 100;
/// Blocked keys for which the console asks the server who holds the row.
pub const SHOWN_BLOCKED_MAX: usize = 20;
/// Time that the console waits for the server's answer about them.
pub const SHOWN_BLOCKERS_WAIT_MS: u64 = 2_000;
/// Time for which all readers of the console share the server's answer about them.
pub const SHOWN_BLOCKERS_AGE_MS: u64 = 1_000;
/// Keys whose counts a lane keeps when it forgets the rarer ones. It counts at most twice as many.
pub const HOT_KEYS: usize = 64;
/// A lane counts the present load of keys in windows of this length, and shows the last one and the present one.
pub const HOT_KEYS_WINDOW_MS: u64 = 10_000;

/// Statement shapes that the gateway remembers per database, and for a short time twice as many. Beyond that
/// it forgets old ones.
pub const SHAPES_MAX: usize = 5_000;
/// Bytes of the texts of remembered shapes. Beyond that the gateway forgets old ones.
pub const SHAPES_BYTES_MAX: usize = 16 << 20;
/// Time that a new statement waits for its verdict. Without a wait it is passed through, which is as fast as without the gateway,
/// until the catalog is asked. Calls of functions wait in any case, for as long as a connection may take.
pub const VERDICT_WAIT_MS: u64 = 0;
/// Facts of one kind about a database's catalog that the gateway remembers for a pool, and for a short time twice as many.
/// Beyond that it forgets old ones and asks again.
pub const FACTS_MAX: usize = 10_000;
/// Bytes of remembered facts of one kind, mostly of functions' sources.
pub const FACTS_BYTES_MAX: usize = 8 << 20;
/// Proofs of what statements leave behind that the gateway remembers for a pool. Beyond that it forgets all of them.
pub const PROOFS_MAX: usize = 2_000;
/// Statements of a pool that wait until the catalog is asked about them. One more is passed through and asked about later.
pub const JUDGEMENTS_WAITING_MAX: usize = 1_000;
/// Statements prepared on one upstream connection. The gateway closes the oldest for one more.
pub const PREPARED_MAX: usize = 500;
/// Tables that the batches of one lane are checked for. Beyond that the lane starts again with the tables of
/// the next batch.
pub const LANE_TABLES_MAX: usize = 500;
/// Batches with calls of functions with pack rules, after the login of a lane, that compare all settings of its session. After
/// them each `STATE_CHECK_EVERY`th does, because listing all settings takes some 400 microseconds. The others compare the role
/// and the settings that decide what statements mean.
pub const STATE_CHECKS_FIRST: u64 = 16;
pub const STATE_CHECK_EVERY: u64 = 16;
/// Bytes of a statement whose reach into the catalog is examined. The state that a longer one leaves counts as unknown if it
/// calls functions.
pub const REACHING_BYTES_MAX: usize = 64 << 10;
/// Texts of code that one statement can reach and that the gateway reads: functions, views, defaults and others. Beyond
/// these bounds the state that the statement leaves counts as unknown.
pub const REACHED_CODE_MAX: usize = 1_000;
/// Bytes of these texts.
pub const REACHED_BYTES_MAX: usize = 1 << 20;
/// Names in the statement and in these texts.
pub const REACHED_NAMES_MAX: usize = 10_000;
/// The same, if the gateway remembers them: the next judgement of the statement then needs one query.
pub const REACHED_REMEMBERED_MAX: usize = 500;
/// Queries of the catalog about them. Each finds what the code that the last one found can reach.
pub const REACHED_DEPTH_MAX: usize = 12;
/// Statements of one unit whose state is not known yet. Beyond that it counts as unknown.
pub const UNJUDGED_MAX: usize = 64;
/// Named statements of one client. A Parse of one more is an error.
pub const CLIENT_STATEMENTS_MAX: usize = 10_000;
/// Savepoints of one transaction after it has changed a setting of the gateway. One more ends the session.
pub const SAVEPOINTS_MAX: usize = 1_000;
/// Bytes of a statement that is parsed. A longer one is passed through without being read.
pub const STATEMENT_BYTES_MAX: usize = 64 << 10;
/// Tokens of a statement that is parsed. The parser needs half a microsecond per token. A longer statement is
/// passed through, and its tokens show its possible effects on the session.
pub const PARSED_TOKENS_MAX: usize = 4_096;
/// Bytes of a statement that is classified on an I/O thread. A longer one is classified on a thread of its
/// own.
pub const CLASSIFIED_INLINE_BYTES_MAX: usize = 4 << 10;
/// Long statements that are classified at one time. Others wait.
pub const CLASSIFIED_AT_ONCE_MAX: usize = 2;
/// Time that the gateway uses facts about a table without a new query of the catalog.
pub const CATALOG_AGE_MS: u64 = 5_000;

/// Bytes of a TLS handshake from the peer. More bytes end the connection. Certificates of several authorities
/// need 10 KB.
pub const TLS_HANDSHAKE_BYTES_MAX: usize = 128 << 10;
/// Bytes that are encrypted before the socket accepts them: four records of the largest size. More bytes
/// wait.
pub const TLS_WRITE_BYTES: usize = 64 << 10;

/// Time that a client has to authenticate. After that the connection is closed.
pub const STARTUP_TIMEOUT_MS: u64 = 10_000;
/// Users whose secrets from the server are cached. With one more, old ones are forgotten.
pub const SECRETS_MAX: usize = 10_000;
/// Time that the gateway uses a secret from the server without asking again.
pub const SECRET_AGE_MS: u64 = 5_000;
/// Time after a login at the server during which more clients of the same user, database and startup
/// settings are accepted without another login.
pub const LOGIN_AGE_MS: u64 = 1_000;
/// Time to open a connection to the server. After that the attempt fails.
pub const CONNECT_TIMEOUT_MS: u64 = 5_000;
/// Longest such time that a server's URL can set, in seconds.
pub const CONNECT_TIMEOUT_SECONDS_MAX: u64 = 600;
/// Time that the first connection waits for the answers of the other hosts, when one host has answered. A host that answers
/// later is not compared.
pub const COMPARE_HOSTS_MS: u64 = 1_000;
/// Time between two looks for a second host that accepts writes.
pub const RIVALS_MS: u64 = 15_000;
/// Bytes of the names and timelines of the servers that a gateway hands over. Servers beyond that are left out.
pub const HANDED_OVER_BYTES_MAX: usize = 100_000;
/// Time without an acknowledgement from the server's machine. After that the connection is lost: a machine
/// without power sends no reset.
pub const SERVER_SILENT_MS: u64 = 16_000;
/// Replicas that the gateway reads from.
pub const REPLICAS_MAX: usize = 16;
/// Replicas, by address, whose lags the metrics show.
pub const REPLICA_LAGS_MAX: usize = 256;
/// Longest lag of a replica that serves reads.
pub const REPLICA_LAG_MAX_MS: u64 = 1_000;
/// Longest wait of a read for a replica that has the session's last commit. After that the primary runs it.
pub const REPLICA_WAIT_MS: u64 = 50;
/// Longest pause between two questions about a replica's lag. It is a quarter of the longest lag if that is less.
pub const REPLICA_PROBE_MS: u64 = 250;
/// Longest time that a replica has to answer such a question.
pub const REPLICA_ANSWER_MS: u64 = 1_000;
/// Pause between two questions to a replica for which reads wait.
pub const REPLICA_POLL_MS: u64 = 1;
/// Positions of the primary that are kept to measure a replica's lag.
pub const LAG_SAMPLES_MAX: usize = 64;
/// Times that a statement is read from the primary after it has failed on a replica.
pub const OFF_REPLICAS: u32 = 1_000;
/// Pause after the first failed connection. It doubles up to [`RECONNECT_MAX_MS`].
pub const RECONNECT_MIN_MS: u64 = 50;
/// Longest pause between two attempts to connect.
pub const RECONNECT_MAX_MS: u64 = 2_000;
/// Time that unsent units wait for an unreachable server. After that their clients get SQLSTATE 57P03.
pub const SERVER_WAIT_MS: u64 = 5_000;
/// Rows of a transaction that are counted.
pub const ROWS_OF_TRANSACTION_MAX: usize = 8;
/// Multiple of [`SERVER_WAIT_MS`] for which the gateway asks for the outcome of a commit. After that the
/// client gets SQLSTATE 08007.
pub const RESOLVE_WAITS: u32 = 6;
/// Time that a lane's new connection waits for the old connection's backend to end and to release its mark.
/// After that the connection takes a new mark, if it can.
pub const MARK_WAIT_MS: u64 = 100;
/// The same time if a commit is in doubt. The backend notices the lost connection only after it has run
/// everything that it received.
pub const MARK_IN_DOUBT_WAIT_MS: u64 = 1_000;
/// Bound of the transaction IDs of one connection, for recognising the values that it can have set its mark to.
pub const MARK_ID_MAX: u64 = 1 << 48;
/// IDs from that of a commit in doubt to that of the batch that followed it on the same connection. If other
/// transactions took more IDs in between, the mark does not prove the commit.
pub const MARK_IDS_AHEAD_MAX: u64 = 1 << 20;
/// Transaction IDs that the gateway checks if a batch's ID did not arrive. With more candidates the outcome
/// is unknown.
pub const DOUBT_IDS_MAX: u64 = 1_000;
/// Time that a client of a replaced gateway process can be idle. After that its connection is closed. A
/// client may need this time to send its first request.
pub const HANDED_QUIET_MS: u64 = 1_000;
/// Time that a new gateway process has to start serving. After that it is ended and the old process keeps
/// running.
pub const SUCCESSOR_MS: u64 = 30_000;
/// Time that a stop waits for work under way. After that the gateway ends.
pub const DRAIN_TIMEOUT_MS: u64 = 10_000;

const _: () = {
    assert!(ROWS_PER_COMMIT_MIN <= ROWS_PER_COMMIT_MAX);
    assert!(ROWS_PER_COMMIT_MAX as usize <= BATCH_UNITS_MAX);
    assert!(UNIT_BYTES_MAX <= BATCH_BYTES_MAX);
    assert!(UNIT_STATEMENTS_MAX <= UNIT_ROWS_MAX);
    assert!(STATEMENT_BYTES_MAX <= UNIT_BYTES_MAX);
    assert!(POOLS_WITH_SETTINGS_PER_ROLE_MAX < POOLS_PER_ROLE_MAX); // clients that log in find room
    assert!(POOLS_PER_ROLE_MAX < POOLS_MAX); // one role cannot use all pools
    assert!(READ_ROW_BYTES_MAX <= ANSWER_BYTES_MAX);
    assert!(ANSWER_BYTES_MAX <= BATCH_ANSWER_BYTES_MAX);
    assert!(SESSION_BUFFER_BYTES <= UNREAD_BYTES_MAX);
    assert!(CLASSIFIED_INLINE_BYTES_MAX < STATEMENT_BYTES_MAX);
    assert!(SESSION_BUFFER_BYTES <= MESSAGE_BYTES_MAX && MESSAGE_BYTES_MAX <= BUFFERED_BYTES_MAX);
    assert!(LANE_LOCK_TIMEOUT_MS < 1_000); // below deadlock_timeout: a lane gives way before PostgreSQL searches for deadlocks
    assert!(RECONNECT_MAX_MS < SERVER_WAIT_MS);
    assert!(SPANS_SENT_MAX <= SPANS_WAITING_MAX);
};
