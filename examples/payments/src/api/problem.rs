//! The answers to requests that are not carried out: problem details of RFC 9457.

use std::borrow::Cow;

use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::json;

use crate::database::Error;
use crate::flow::Stop;
use crate::machine::Refusal;

/// Another step of the payment is under way.
const UNDER_WAY: &str = "under-way";

/// An answer: its status, its name, and the next step.
#[derive(Clone, Debug)]
pub struct Problem {
    status: StatusCode,
    name: &'static str,
    detail: Cow<'static, str>,
}

const fn fixed(status: StatusCode, name: &'static str, detail: &'static str) -> Problem {
    Problem { status, name, detail: Cow::Borrowed(detail) }
}

/// Declares the problems that are always the same: for each its status, its name, and the next step.
macro_rules! problems {
    ($($(#[$doc:meta])* $problem:ident: $status:ident $name:literal $detail:literal,)*) => {
        impl Problem {
            $($(#[$doc])* pub const $problem: Self = fixed(StatusCode::$status, $name, $detail);)*
        }
    };
}

problems! {
    /// There is no such path.
    NO_PATH: NOT_FOUND "no-path" "openapi.json lists the paths",
    /// The path has other methods.
    METHOD_NOT_ALLOWED: METHOD_NOT_ALLOWED "method-not-allowed" "openapi.json lists the methods",
    /// There is no payment, gateway or notification with this ID.
    NOT_FOUND: NOT_FOUND "not-found" "there is nothing of this id",
    /// The key is missing or invalid.
    KEY_MISSING: BAD_REQUEST "idempotency-key"
        "send an Idempotency-Key of 1 to 255 visible characters: a new one for each request, the same for a retry",
    /// The key belongs to another request.
    KEY_REUSED: UNPROCESSABLE_ENTITY "idempotency-key-reused"
        "another request has this Idempotency-Key: use a new key",
    /// The request with this key is still running.
    KEY_RUNNING: CONFLICT "idempotency-key-running"
        "the request with this Idempotency-Key is still running: repeat it a little later",
    /// The endpoint has the notification.
    DELIVERED: CONFLICT "delivered"
        "the endpoint has accepted this notification: only notifications that it has not accepted can be sent again",
    /// The notification waits for its time.
    PENDING: CONFLICT "pending"
        "this notification will be sent at its time: in a queue, only a dead notification can be sent again",
    /// Too many requests are under way.
    BUSY: SERVICE_UNAVAILABLE "busy" "too many requests are under way: repeat it later",
    /// No payment gateway can be reached.
    NO_GATEWAY: SERVICE_UNAVAILABLE "no-gateway"
        "no payment gateway could be reached, and nothing was charged: repeat the request with the same key",
    /// The signature of a webhook is invalid.
    DISTRUSTED: UNAUTHORIZED "distrusted" "the signature is missing, wrong or too old",
}

impl Problem {
    /// The part of the request that is invalid.
    pub fn invalid(detail: impl Into<String>) -> Self {
        Self { status: StatusCode::UNPROCESSABLE_ENTITY, name: "invalid", detail: Cow::Owned(detail.into()) }
    }

    /// The status of the answer.
    pub fn status(&self) -> StatusCode {
        self.status
    }

    /// The body of the answer.
    pub fn body(&self) -> String {
        json!({ "type": format!("payments:{}", self.name), "status": self.status.as_u16(),
            "title": self.status.canonical_reason(), "detail": self.detail })
        .to_string()
    }

    /// Whether the same request may succeed in a moment.
    fn will_pass(&self) -> bool {
        let passing = [Self::KEY_RUNNING.name, UNDER_WAY];
        self.status == StatusCode::SERVICE_UNAVAILABLE || passing.contains(&self.name)
    }

    /// With another status.
    pub fn with_status(self, status: StatusCode, name: &'static str) -> Self {
        Self { status, name, ..self }
    }
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        tracing::error!(%error, "a request could not be carried out");
        fixed(
            StatusCode::SERVICE_UNAVAILABLE,
            "database",
            "the database did not answer correctly: repeat the request with the same key",
        )
    }
}

impl From<Stop> for Problem {
    fn from(stop: Stop) -> Self {
        let name = match stop {
            Stop::NotFound => return Self::NOT_FOUND,
            Stop::NoGateway => return Self::NO_GATEWAY,
            Stop::Database(error) => return error.into(),
            Stop::Refused(Refusal::TooMuch) => return Self::invalid(Refusal::TooMuch.to_string()),
            Stop::Refused(Refusal::UnderWay) => UNDER_WAY,
            Stop::Refused(Refusal::WrongState) => "wrong-state",
        };
        Self { status: StatusCode::CONFLICT, name, detail: Cow::Owned(stop.to_string()) }
    }
}

/// The response for a problem, for the first request and for its repetitions.
pub fn answer(status: StatusCode, body: String) -> Response {
    let headers = [(CONTENT_TYPE, "application/problem+json"), (CACHE_CONTROL, "no-store")];
    (status, headers, body).into_response()
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut response = answer(self.status, self.body());
        if self.will_pass() {
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
        }
        response
    }
}
