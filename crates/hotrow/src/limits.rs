//! Relations between the bounds of the HTTP API and those of the gateway, whose client it is.

use hotrow_core::limits as gateway;
use hotrow_http::limits as http;

const _: () = {
    assert!(http::HTTP_REQUESTS_MAX <= gateway::LANE_QUEUE_UNITS_MAX);
    assert!(http::HTTP_GROUP_REQUESTS_MAX <= http::HTTP_GROUP_SESSIONS * gateway::PIPELINE_UNITS_MAX);
    assert!(http::HTTP_BODY_BYTES_MAX <= gateway::UNIT_BYTES_MAX);
    assert!(http::PACKED_BYTES_MAX == gateway::UNIT_BYTES_MAX);
    assert!(
        gateway::SERVER_WAIT_MS < http::HTTP_SEND_TIMEOUT_MS
            && http::HTTP_ANSWER_TIMEOUT_MS > gateway::SERVER_WAIT_MS * gateway::RESOLVE_WAITS as u64
    ); // the gateway's own error is more precise than a timeout
    assert!(http::HTTP_WAITS_MAX < gateway::WAITING_CALLS_MAX);
};
