//! What is answered when a request is not carried out: RFC 9457's problem details. Refusals of the schema pack are no
//! problems; they are answers.

use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Serialize;

/// Where each kind is explained, under a heading of its name.
const PAGE: &str = "https://github.com/hotrow/hotrow/blob/main/docs/http.md#";

/// All that can go wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The request's words make no sense.
    BadRequest,
    /// No token, or a wrong one.
    Unauthorized,
    /// A web page asks, and anybody's page could.
    ForeignOrigin,
    /// Nothing is there.
    NotFound,
    /// The path has other methods.
    MethodNotAllowed,
    /// The body did not come in time.
    RequestTimeout,
    /// The body is too large.
    BodyTooLarge,
    /// The body is not JSON.
    NotJson,
    /// The schema pack does not accept an argument.
    RefusedArgument,
    /// Too many calls wait for the same rows.
    QueueFull,
    /// Too much is under way.
    Busy,
    /// The server can't be reached, or gave up; nothing was executed.
    ServerAway,
    /// The schema pack is not there, or the user may not call it.
    PackMissing,
    /// Nobody knows whether it was executed.
    OutcomeUnknown,
    /// A mistake of Hotrow's.
    Internal,
}

impl Kind {
    /// Each of them, for the test that compares them with the page that explains them.
    #[cfg(test)]
    const ALL: [Kind; 15] = [
        Kind::BadRequest,
        Kind::Unauthorized,
        Kind::ForeignOrigin,
        Kind::NotFound,
        Kind::MethodNotAllowed,
        Kind::RequestTimeout,
        Kind::BodyTooLarge,
        Kind::NotJson,
        Kind::RefusedArgument,
        Kind::QueueFull,
        Kind::Busy,
        Kind::ServerAway,
        Kind::PackMissing,
        Kind::OutcomeUnknown,
        Kind::Internal,
    ];

    /// Its status, its name in the `type`, and its title.
    fn describe(self) -> (StatusCode, &'static str, &'static str) {
        match self {
            Kind::BadRequest => (StatusCode::BAD_REQUEST, "bad-request", "The request makes no sense"),
            Kind::Unauthorized => (StatusCode::UNAUTHORIZED, "unauthorized", "A valid token is needed"),
            Kind::ForeignOrigin => {
                (StatusCode::FORBIDDEN, "foreign-origin", "Web pages may not call this without a token")
            }
            Kind::NotFound => (StatusCode::NOT_FOUND, "not-found", "Nothing is there"),
            Kind::MethodNotAllowed => {
                (StatusCode::METHOD_NOT_ALLOWED, "method-not-allowed", "The path has other methods")
            }
            Kind::RequestTimeout => {
                (StatusCode::REQUEST_TIMEOUT, "request-timeout", "The request did not come in time")
            }
            Kind::BodyTooLarge => {
                (StatusCode::PAYLOAD_TOO_LARGE, "body-too-large", "The request's body is too large")
            }
            Kind::NotJson => {
                (StatusCode::UNSUPPORTED_MEDIA_TYPE, "not-json", "The request's body must be JSON")
            }
            Kind::RefusedArgument => {
                (StatusCode::UNPROCESSABLE_ENTITY, "refused-argument", "An argument was refused")
            }
            Kind::QueueFull => {
                (StatusCode::TOO_MANY_REQUESTS, "queue-full", "Too many calls wait for the same rows")
            }
            Kind::Busy => (StatusCode::SERVICE_UNAVAILABLE, "busy", "Too much is under way"),
            Kind::ServerAway => {
                (StatusCode::SERVICE_UNAVAILABLE, "server-away", "The database server did not take the call")
            }
            Kind::PackMissing => {
                (StatusCode::SERVICE_UNAVAILABLE, "pack-missing", "The schema pack can't be called")
            }
            Kind::OutcomeUnknown => {
                (StatusCode::GATEWAY_TIMEOUT, "outcome-unknown", "Nobody knows whether it was executed")
            }
            Kind::Internal => (StatusCode::INTERNAL_SERVER_ERROR, "internal", "A mistake of Hotrow's"),
        }
    }

    /// After how many seconds it is worth trying again.
    fn retry_after(self) -> Option<HeaderValue> {
        let seconds = match self {
            Kind::QueueFull | Kind::Busy | Kind::ServerAway => "1",
            Kind::PackMissing => "30",
            _ => return None,
        };
        Some(HeaderValue::from_static(seconds))
    }
}

/// One of them, with what is special about this one.
#[derive(Debug)]
pub struct Problem {
    kind: Kind,
    detail: String,
    hint: String,
    sqlstate: Option<String>,
}

impl Problem {
    /// What happened, and what to do.
    pub fn new(kind: Kind, detail: impl Into<String>, hint: impl Into<String>) -> Self {
        Problem { kind, detail: detail.into(), hint: hint.into(), sqlstate: None }
    }

    /// The same, as the database server or the gateway called it.
    pub fn with_sqlstate(self, sqlstate: &str) -> Self {
        Problem { sqlstate: Some(sqlstate.to_owned()), ..self }
    }

    /// There is no room for one more call.
    pub fn full() -> Self {
        let hint = "Nothing was executed: repeat the request a little later.";
        Self::new(Kind::Busy, "too many requests are under way", hint)
    }

    /// What can only be a mistake of ours is in the log, not in the answer.
    pub fn internal(error: &dyn std::fmt::Display) -> Self {
        tracing::error!(%error, "an HTTP request failed");
        Self::new(Kind::Internal, "what went wrong is in Hotrow's log", "Look there, and report it.")
    }
}

#[derive(Serialize)]
struct Body<'a> {
    r#type: String,
    title: &'static str,
    status: u16,
    detail: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    hint: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    sqlstate: Option<&'a str>,
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let (status, name, title) = self.kind.describe();
        let body = Body {
            r#type: format!("{PAGE}{name}"),
            title,
            status: status.as_u16(),
            detail: &self.detail,
            hint: &self.hint,
            sqlstate: self.sqlstate.as_deref(),
        };
        let body = serde_json::to_vec(&body).expect("strings and a number can always be written as JSON");
        let mut response = (status, body).into_response();
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        if let Some(seconds) = self.kind.retry_after() {
            headers.insert(RETRY_AFTER, seconds);
        }
        if self.kind == Kind::Unauthorized {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"hotrow\""));
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_explains_each_kind_with_its_status() {
        let page = include_str!("../../../docs/http.md");
        for kind in Kind::ALL {
            let (status, name, _) = kind.describe();
            let (_, section) =
                page.split_once(&format!("### {name}\n")).unwrap_or_else(|| panic!("no {name}"));
            let section = section.split("\n### ").next().unwrap();
            assert!(section.contains(status.as_str()), "{name} does not name {status}");
        }
    }
}
