//! The requests that change one counter, and the meaning of their answers. It sends no requests.

use super::{Kind, Outcome};
use hotrow_bench::http::Post;
use hotrow_bench::load::Part;
use hyper::StatusCode;
use hyper::body::Bytes;
use serde::Deserialize;

/// Commands on the counter that all clients use.
#[derive(Debug)]
pub struct Commands {
    /// The name of the counter.
    counter: String,
    /// Whether all commands increment by one, so that each answer must be the number of commands so far.
    checked: bool,
}

/// One of this number of commands is a drain.
const COMMANDS_PER_DRAIN: u32 = 1000;

/// The API's answer to both requests.
#[derive(Deserialize)]
struct Answer {
    value: i64,
    version: i64,
    status: String,
}

impl Commands {
    /// The commands of a part, on a counter that no other run uses.
    pub fn of(part: &Part) -> Self {
        Self { counter: part.number.to_string(), checked: part.is_warm_up() }
    }
}

impl Kind for Commands {
    fn request(&self) -> Post {
        let drain = !self.checked && fastrand::u32(..COMMANDS_PER_DRAIN) == 0;
        let (command, body) = if drain { ("drain", "") } else { ("increment", r#"{"amount":1}"#) };
        Post {
            path: format!("/v1/counters/{}/{command}", self.counter),
            idempotency_key: None,
            body: Bytes::from_static(body.as_bytes()),
        }
    }

    fn outcome(&self, status: StatusCode, body: &[u8]) -> Result<Outcome, String> {
        if status == StatusCode::TOO_MANY_REQUESTS || status == StatusCode::SERVICE_UNAVAILABLE {
            return Ok(Outcome::Refused);
        }
        match serde_json::from_slice::<Answer>(body) {
            Ok(Answer { value, version, status: word }) if status == StatusCode::OK && word == "ok" => {
                if self.checked && value != version {
                    return Err(format!("{value} after {version} increments by one"));
                }
                Ok(Outcome::Executed)
            }
            _ => Err(format!("{status}: {}", String::from_utf8_lossy(body))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Commands, Kind, Outcome};
    use hyper::StatusCode;

    #[test]
    fn only_successes_count_and_only_requests_that_were_not_executed_are_refused() {
        let outcome =
            |checked, status, body: &[u8]| Commands { counter: "1".into(), checked }.outcome(status, body);
        let ok = br#"{"value":5,"version":1,"status":"ok"}"#;
        assert_eq!(outcome(false, StatusCode::OK, ok), Ok(Outcome::Executed));
        assert!(outcome(true, StatusCode::OK, ok).unwrap_err().contains("5 after 1"));
        assert_eq!(outcome(false, StatusCode::TOO_MANY_REQUESTS, b"{}"), Ok(Outcome::Refused));
        assert_eq!(outcome(false, StatusCode::SERVICE_UNAVAILABLE, b""), Ok(Outcome::Refused));
        let unknown = outcome(false, StatusCode::GATEWAY_TIMEOUT, b"who knows").unwrap_err();
        assert!(unknown.starts_with("504") && unknown.ends_with("who knows"), "{unknown}");
        let refused = br#"{"value":5,"version":1,"status":"out_of_bounds"}"#;
        assert!(outcome(false, StatusCode::OK, refused).unwrap_err().contains("out_of_bounds"));
    }
}
