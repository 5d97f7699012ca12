//! Problem details (RFC 9457): the responses to requests that were not carried out. Refusals of the hotrow schema are answers, not
//! problems.

use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use hotrow_core::page;
use serde::Serialize;

/// The page that explains each kind, under a heading with its name.
const PAGE: &str = page!("http.md");

/// Declares the kinds of problems: for each its status, the name in its `type`, and its title.
macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident: $status:ident $name:literal $title:literal,)*) => {
        /// The kinds of problems.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Kind {
            $($(#[$doc])* $kind,)*
        }

        impl Kind {
            /// All kinds, for the test that compares them with the page.
            #[cfg(test)]
            const ALL: &[Kind] = &[$(Kind::$kind),*];

            /// The status, the name in the `type`, and the title.
            fn describe(self) -> (StatusCode, &'static str, &'static str) {
                match self {
                    $(Kind::$kind => (StatusCode::$status, $name, $title),)*
                }
            }
        }
    };
}

kinds! {
    /// The request is invalid.
    BadRequest: BAD_REQUEST "bad-request" "Invalid request",
    /// No token, or a wrong one.
    Unauthorized: UNAUTHORIZED "unauthorized" "A valid token is required",
    /// The token is for reading, and the request could change something.
    ReadOnly: FORBIDDEN "read-only" "The token is for reading",
    /// The request comes or could come from a web page.
    ForeignOrigin: FORBIDDEN "foreign-origin" "Requests from web pages need a token",
    /// The path or the queue does not exist.
    NotFound: NOT_FOUND "not-found" "Not found",
    /// The path does not have this method.
    MethodNotAllowed: METHOD_NOT_ALLOWED "method-not-allowed" "Method not allowed",
    /// The body did not arrive in time.
    RequestTimeout: REQUEST_TIMEOUT "request-timeout" "The request did not arrive in time",
    /// The body is too large.
    BodyTooLarge: PAYLOAD_TOO_LARGE "body-too-large" "The request body is too large",
    /// The body is not JSON.
    NotJson: UNSUPPORTED_MEDIA_TYPE "not-json" "The request body must be JSON",
    /// The hotrow schema rejects an argument.
    RefusedArgument: UNPROCESSABLE_ENTITY "refused-argument" "An argument was rejected",
    /// Too many calls wait, or the server ran out of a resource. The call changed nothing.
    QueueFull: TOO_MANY_REQUESTS "queue-full" "Too many calls wait, or a resource is exhausted",
    /// Another limit is reached.
    Busy: SERVICE_UNAVAILABLE "busy" "A limit is reached",
    /// The server cannot be reached, or aborted the call. The call changed nothing.
    ServerAway: SERVICE_UNAVAILABLE "server-away" "The database server is unreachable or aborted the call",
    /// The hotrow schema is missing, or the user cannot execute or trust its functions.
    PackMissing: SERVICE_UNAVAILABLE "pack-missing" "The hotrow schema cannot be called",
    /// The call was executed once or not at all.
    OutcomeUnknown: GATEWAY_TIMEOUT "outcome-unknown" "The outcome of the call is unknown",
    /// A bug in Hotrow.
    Internal: INTERNAL_SERVER_ERROR "internal" "Internal error",
}

impl Kind {
    /// The seconds after which a retry can succeed.
    fn retry_after(self) -> Option<HeaderValue> {
        let seconds = match self {
            Kind::QueueFull | Kind::Busy | Kind::ServerAway => "1",
            Kind::PackMissing => "30",
            _ => return None,
        };
        Some(HeaderValue::from_static(seconds))
    }
}

/// A problem: its kind, with the details of one request.
#[derive(Debug)]
pub struct Problem {
    kind: Kind,
    detail: String,
    hint: String,
    sqlstate: Option<String>,
}

impl Problem {
    /// A problem with an explanation and the next step.
    pub fn new(kind: Kind, detail: impl Into<String>, hint: impl Into<String>) -> Self {
        Problem { kind, detail: detail.into(), hint: hint.into(), sqlstate: None }
    }

    /// Whether the hotrow schema is missing or cannot be used.
    pub fn is_missing_pack(&self) -> bool {
        self.kind == Kind::PackMissing
    }

    /// The explanation.
    pub fn detail(&self) -> &str {
        &self.detail
    }

    /// Adds the SQLSTATE of the database server or the gateway.
    pub fn with_sqlstate(self, sqlstate: &str) -> Self {
        Problem { sqlstate: Some(sqlstate.to_owned()), ..self }
    }

    /// The limit of calls under way is reached.
    pub fn full() -> Self {
        let hint = "Nothing was executed. Repeat the request after the time in Retry-After.";
        Self::new(Kind::Busy, "too many requests are under way", hint)
    }

    /// Answers that were not read take all room.
    pub fn unread() -> Self {
        let hint = "Nothing was executed. Read the answers that have arrived on the connection, and repeat the request \
                    after the time in Retry-After. A smaller max needs less room.";
        Self::new(Kind::Busy, "answers that were not read take up the memory for answers", hint)
    }

    /// A bug. The log has the error, and the answer does not.
    pub fn internal(error: &dyn std::fmt::Display) -> Self {
        tracing::error!(%error, "an HTTP request failed");
        Self::new(Kind::Internal, "the error is in Hotrow's log", "Check the log, and report the error.")
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
            r#type: format!("{PAGE}#{name}"),
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
