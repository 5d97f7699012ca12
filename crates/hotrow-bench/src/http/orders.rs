//! The requests of customers who pay, and what the payment service's answers mean; sends none.

use super::connection::Post;
use super::{Kind, Outcome};
use hyper::StatusCode;
use hyper::body::Bytes;
use std::sync::atomic::{AtomicU64, Ordering};

/// Payments that are confirmed and captured at once: one request, one payment.
#[derive(Debug)]
pub struct Orders {
    /// Makes the ids of this load its own.
    name: String,
    sent: AtomicU64,
}

/// So many merchants share the crowd.
const MERCHANTS: u64 = 10;
const MODES: [&str; 3] = ["upi", "card", "wallet"];

impl Orders {
    /// None is sent yet.
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
            // Captured; declined; not known yet, which the service finds out.
            StatusCode::CREATED | StatusCode::PAYMENT_REQUIRED | StatusCode::ACCEPTED => {
                Ok(Outcome::CarriedOut)
            }
            // No payment gateway could be reached, or too many requests are under way.
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
    fn requests_have_keys_of_their_own_and_a_body_that_is_json() {
        let orders = Orders::new("7".into());
        let (first, second) = (orders.request(), orders.request());
        assert_ne!(first.idempotency_key, second.idempotency_key);
        let body: serde_json::Value = serde_json::from_slice(&second.body).unwrap();
        assert_eq!((body["merchant"].as_str(), body["mode"].as_str()), (Some("m1"), Some("card")));
    }

    #[test]
    fn a_payment_that_is_under_way_counts_and_one_that_was_not_begun_is_sent_again() {
        let outcome = |status| Orders::new("7".into()).outcome(status, b"no");
        assert_eq!(outcome(StatusCode::CREATED), Ok(Outcome::CarriedOut));
        assert_eq!(outcome(StatusCode::ACCEPTED), Ok(Outcome::CarriedOut));
        assert_eq!(outcome(StatusCode::SERVICE_UNAVAILABLE), Ok(Outcome::Again));
        assert_eq!(outcome(StatusCode::CONFLICT), Err("409 Conflict: no".into()));
    }
}
