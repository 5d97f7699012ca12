//! Simulated shoppers that repeat a request with the same key until they receive an answer.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::stage::{Caller, PATIENCE, payment};

/// The final answer to one shopper: the payment's ID, state, and sums.
pub type FinalAnswer = (String, String, i64, i64);

/// The running shoppers.
pub struct Load {
    stop: Arc<AtomicBool>,
    done: Arc<AtomicUsize>,
    shoppers: Vec<JoinHandle<Vec<FinalAnswer>>>,
}

/// Whether the request must be repeated after this answer.
fn must_repeat(status: u16, body: &Value) -> bool {
    let kind = body["type"].as_str().unwrap_or_default();
    status == 202 || status == 503 || kind.ends_with("running") || kind.ends_with("under-way")
}

/// Repeats a request until there is a final answer.
pub async fn repeat_until_answered(caller: &Caller, path: &str, key: &str, body: &Value) -> (u16, Value) {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let answer = caller.try_post(path, key, body).await;
        match answer {
            Ok((status, body)) if !must_repeat(status, &body) => return (status, body),
            answer => assert!(Instant::now() < deadline, "{path} {key}: {answer:?}"),
        }
        tokio::time::sleep(Duration::from_millis(200)).await; // a client's pause before it tries again
    }
}

impl Load {
    /// Starts this number of shoppers.
    pub fn start(caller: &Caller, shoppers: usize) -> Self {
        let (stop, done) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let shopper = |shopper| {
            let (caller, stop, done) = (caller.clone(), stop.clone(), done.clone());
            tokio::spawn(async move {
                let mut answers = Vec::new();
                while !stop.load(Relaxed) {
                    answers.push(shop(&caller, &format!("{shopper}-{}", answers.len())).await);
                    done.fetch_add(1, Relaxed);
                }
                answers
            })
        };
        Self { shoppers: (0..shoppers).map(shopper).collect(), stop, done }
    }

    /// Waits until this number of further payments is complete. Returns the number.
    pub async fn wait_for(&self, more: usize) -> usize {
        let before = self.done.load(Relaxed);
        let deadline = Instant::now() + PATIENCE;
        while self.done.load(Relaxed) < before + more {
            assert!(Instant::now() < deadline, "the load makes no progress");
            tokio::time::sleep(Duration::from_millis(10)).await; // the condition has no signal
        }
        self.done.load(Relaxed) - before
    }

    /// Stops the load and returns all final answers.
    pub async fn stop(self) -> Vec<FinalAnswer> {
        self.stop.store(true, Relaxed);
        let mut answers = Vec::new();
        for shopper in self.shoppers {
            answers.extend(shopper.await.unwrap());
        }
        answers
    }
}

/// Makes one payment of one of three kinds, from start to end.
async fn shop(caller: &Caller, key: &str) -> FinalAnswer {
    let kind = fastrand::u32(0..3);
    let mut new = payment(1000, kind == 0);
    new["merchant"] = json!(["shop", "fair", "mall"][fastrand::usize(0..3)]);
    new["mode"] = json!(["upi", "card", "wallet"][fastrand::usize(0..3)]);
    let (status, mut reply) = repeat_until_answered(caller, "/v1/payments", key, &new).await;
    assert!([201, 402].contains(&status), "{key}: {status} {reply}");
    if status == 201 {
        let commands = match kind {
            0 => [("refund", json!({ "amount": 100 })), ("refund", json!({ "amount": 200 }))],
            1 => [("capture", json!({ "amount": 300 })), ("cancel", json!({}))],
            _ => [("capture", json!({ "amount": 400 })), ("capture", json!({}))],
        };
        for (step, (command, body)) in commands.into_iter().enumerate() {
            let path = format!("/v1/payments/{}/{command}", reply["id"].as_str().unwrap());
            let (status, now) = repeat_until_answered(caller, &path, &format!("{key}-{step}"), &body).await;
            assert!([200, 402].contains(&status), "{key} {command}: {status} {now}");
            reply = now;
        }
    }
    let number = |name: &str| reply[name].as_i64().unwrap();
    let text = |name: &str| reply[name].as_str().unwrap().to_owned();
    (text("id"), text("state"), number("captured"), number("refunded"))
}
