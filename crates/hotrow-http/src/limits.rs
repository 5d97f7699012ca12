//! Every bound of the HTTP API and of the operations page. The unit is the last part of the name. Each comment says what is
//! bounded and what happens beyond the bound.

/// HTTP connections at one time. One more gets status 503.
pub const HTTP_CONNECTIONS_MAX: usize = 2_000;
/// Requests of one HTTP/2 connection at one time. The client cannot open more streams.
pub const HTTP_STREAMS_MAX: u32 = 250;
/// HTTP requests under way at one time. One more gets status 503.
pub const HTTP_REQUESTS_MAX: usize = 4_000;
/// Groups of gateway sessions that HTTP requests share, for calls that are merged. Other calls have the same
/// number of groups. Calls of one key share a group. A locked row therefore stops one group only.
pub const HTTP_GROUPS: usize = 8;
/// Sessions of one group. More requests share them.
pub const HTTP_GROUP_SESSIONS: usize = 4;
/// HTTP requests under way in one group. One more gets status 503.
pub const HTTP_GROUP_REQUESTS_MAX: usize = 1_000;
/// Bytes of the body of an HTTP request. A larger body gets status 413.
pub const HTTP_BODY_BYTES_MAX: usize = 64 << 10;
/// Bytes of the body of an HTTP request with many orders. A larger body gets status 413.
pub const HTTP_BATCH_BYTES_MAX: usize = 1 << 20;
/// Bytes of the answers of one HTTP connection that its client has not read, with those of calls under way. A request over
/// the bound waits for [`HTTP_SEND_TIMEOUT_MS`] before it is executed, and then gets status 503.
pub const HTTP_CONNECTION_ANSWER_BYTES_MAX: usize = 64 << 20;
/// The same for the answers of all HTTP connections.
pub const HTTP_ANSWER_BYTES_MAX: usize = 512 << 20;
/// Rows of an answer over HTTP.
pub const HTTP_ROWS_MAX: usize = 1_000;
/// Bytes that a row of an answer over HTTP is expected to have before it arrives, apart from texts and documents of
/// clients. A client can send [`HTTP_BODY_BYTES_MAX`] of them.
pub const HTTP_ROW_BYTES: usize = 1 << 10;
/// HTTP requests with many orders at one time. One more gets status 503.
pub const HTTP_BATCHES_MAX: usize = 100;
/// HTTP requests that wait for an order, each on a session of its own. One more gets status 503.
pub const HTTP_WAITS_MAX: usize = 256;
/// Sessions that stay open for such requests while there are none. More sessions are closed.
pub const HTTP_WAIT_SESSIONS_KEPT: usize = 32;
/// Longest wait that such a request can ask for. A longer one is an error.
pub const HTTP_WAIT_SECONDS_MAX: i64 = 60;
/// Bytes of the request line and the headers of an HTTP request. A request with more is rejected.
pub const HTTP_HEADER_BYTES_MAX: usize = 16 << 10;
/// Streams of the operations page at one time. One more gets status 503.
pub const LIVE_STREAMS_MAX: usize = 100;
/// Time between two events of the operations page.
pub const LIVE_MS: u64 = 1_000;
/// Seconds that the operations page shows as history.
pub const LIVE_HISTORY_SECONDS: usize = 900;
/// Statements, applications, clients and lanes that one event of the operations page has, of each.
pub const LIVE_ROWS_MAX: usize = 100;
/// Time that an HTTP client has to send the headers, and again to send the body. After that the request times
/// out.
pub const HTTP_REQUEST_TIMEOUT_MS: u64 = 30_000;
/// Time that a request waits until the server accepts it. After that it gets status 503.
pub const HTTP_SEND_TIMEOUT_MS: u64 = 10_000;
/// Time that a request waits for its answer. After that it gets status 504.
pub const HTTP_ANSWER_TIMEOUT_MS: u64 = 60_000;
/// Time that an HTTP connection can be idle. After that it is closed.
pub const HTTP_IDLE_MS: u64 = 150_000;
/// Bytes of a name in the hotrow schema: of a counter, an item or a buyer. A longer name is an error.
pub const NAME_BYTES_MAX: usize = 500;
/// Time between two looks whether the hotrow schema is there, while it is missing or the server does not answer.
pub const MISSING_PACK_MS: u64 = 15_000;
/// Bytes of a call that the gateway packs. A larger one does not share a session with calls that fit a lane.
pub const PACKED_BYTES_MAX: usize = 64 << 10;

const _: () = {
    assert!(HTTP_GROUP_REQUESTS_MAX < HTTP_REQUESTS_MAX);
    // A client that waits for an answer is idle.
    assert!(
        2 * HTTP_SEND_TIMEOUT_MS + HTTP_WAIT_SECONDS_MAX as u64 * 1_000 + HTTP_ANSWER_TIMEOUT_MS
            < HTTP_IDLE_MS
    ); // it waits for room first
    assert!(HTTP_ROWS_MAX * HTTP_BODY_BYTES_MAX <= HTTP_CONNECTION_ANSWER_BYTES_MAX);
    assert!(HTTP_CONNECTION_ANSWER_BYTES_MAX <= HTTP_ANSWER_BYTES_MAX);
    assert!(HTTP_WAIT_SESSIONS_KEPT <= HTTP_WAITS_MAX);
};
