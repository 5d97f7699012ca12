//! The requests of paying customers, and the meaning of the payment service's answers. It sends no requests.

use super::{Kind, Outcome};
use hotrow_bench::http::Post;
use hyper::StatusCode;
use hyper::body::Bytes;
use std::sync::atomic::{AtomicU64, Ordering};

/// Payments that are confirmed and captured at once: each request is one payment.
#[derive(Debug)]
pub struct Orders {
    /// A prefix that makes the keys of this load unique.
    name: String,
    sent: AtomicU64,
}

/// The number of merchants.
const MERCHANTS: u64 = 10;
const MODES: [&str; 3] = ["upi", "card", "wallet"];

impl Orders {
    /// Without requests so far.
    pub fn new(name: String) -> Self {
        Self { name, sent: AtomicU64::new(0) }
    }
}

impl Kind for Orders {
    fn request(&self) -> Post {
        let number = self.sent.fetch_add(1, Ordering::Relaxed);
        let (merchant, mode) = (number % MERCHANTS, MODES[number as usize % MODES.len()]);
        let amount = fastrand::u32(100..100_000);
        let body = format!(
            r#"{{"merchant":"m{merchant}","customer":"c{number}","mode":"{mode}","amount":{amount},"currency":"INR","confirm":true}}"#
        );
        Post {
            path: "/v1/payments".to_owned(),
            idempotency_key: Some(format!("{}-{number}", self.name)),
            body: Bytes::from(body),
        }
    }

    fn outcome(&self, status: StatusCode, body: &[u8]) -> Result<Outcome, String> {
        match status {
            // The payment is captured, declined, or has an unknown outcome, which the service determines later.
            StatusCode::CREATED | StatusCode::PAYMENT_REQUIRED | StatusCode::ACCEPTED => {
                Ok(Outcome::Executed)
            }
            // No payment gateway was reachable, or too many requests were under way.
            StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS => Ok(Outcome::Again),
            _ => Err(format!("{status}: {}", String::from_utf8_lossy(body))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Kind, Orders, Outcome};
    use hyper::StatusCode;

    #[test]
    fn each_request_has_its_own_key_and_a_json_body() {
        let orders = Orders::new("7".into());
        let (first, second) = (orders.request(), orders.request());
        assert_ne!(first.idempotency_key, second.idempotency_key);
        let body: serde_json::Value = serde_json::from_slice(&second.body).unwrap();
        assert_eq!((body["merchant"].as_str(), body["mode"].as_str()), (Some("m1"), Some("card")));
    }

    #[test]
    fn a_payment_under_way_counts_and_one_that_was_not_begun_is_sent_again() {
        let outcome = |status| Orders::new("7".into()).outcome(status, b"no");
        assert_eq!(outcome(StatusCode::CREATED), Ok(Outcome::Executed));
        assert_eq!(outcome(StatusCode::ACCEPTED), Ok(Outcome::Executed));
        assert_eq!(outcome(StatusCode::SERVICE_UNAVAILABLE), Ok(Outcome::Again));
        assert_eq!(outcome(StatusCode::CONFLICT), Err("409 Conflict: no".into()));
    }
}
