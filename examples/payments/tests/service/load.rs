//! Shoppers who repeat what they don't hear an answer to, with the same key, until they do.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::stage::{Caller, PATIENCE, payment};

/// What one shopper was told in the end: the payment's id, state, and sums.
pub type Told = (String, String, i64, i64);

/// Shoppers at work.
pub struct Load {
    stop: Arc<AtomicBool>,
    done: Arc<AtomicUsize>,
    shoppers: Vec<JoinHandle<Vec<Told>>>,
}

/// Whether an answer means: ask again.
fn is_not_yet(status: u16, body: &Value) -> bool {
    let kind = body["type"].as_str().unwrap_or_default();
    status == 202 || status == 503 || kind.ends_with("running") || kind.ends_with("under-way")
}

/// Asks until there is a final answer.
pub async fn insist(caller: &Caller, path: &str, key: &str, body: &Value) -> (u16, Value) {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let answer = caller.try_post(path, key, body).await;
        match answer {
            Ok((status, body)) if !is_not_yet(status, &body) => return (status, body),
            answer => assert!(Instant::now() < deadline, "{path} {key}: {answer:?}"),
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

impl Load {
    /// So many at once.
    pub fn start(caller: &Caller, shoppers: usize) -> Self {
        let (stop, done) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let shopper = |shopper| {
            let (caller, stop, done) = (caller.clone(), stop.clone(), done.clone());
            tokio::spawn(async move {
                let mut told = Vec::new();
                while !stop.load(Relaxed) {
                    told.push(shop(&caller, &format!("{shopper}-{}", told.len())).await);
                    done.fetch_add(1, Relaxed);
                }
                told
            })
        };
        Self { shoppers: (0..shoppers).map(shopper).collect(), stop, done }
    }

    /// Waits until so many more payments are through; how many were.
    pub async fn flows(&self, more: usize) -> usize {
        let before = self.done.load(Relaxed);
        let deadline = Instant::now() + PATIENCE;
        while self.done.load(Relaxed) < before + more {
            assert!(Instant::now() < deadline, "the load does not flow");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        self.done.load(Relaxed) - before
    }

    /// What everybody was told.
    pub async fn stop(self) -> Vec<Told> {
        self.stop.store(true, Relaxed);
        let mut told = Vec::new();
        for shopper in self.shoppers {
            told.extend(shopper.await.unwrap());
        }
        told
    }
}

/// One payment of one of three kinds, from start to end.
async fn shop(caller: &Caller, key: &str) -> Told {
    let kind = fastrand::u32(0..3);
    let mut new = payment(1000, kind == 0);
    new["merchant"] = json!(["shop", "fair", "mall"][fastrand::usize(0..3)]);
    new["mode"] = json!(["upi", "card", "wallet"][fastrand::usize(0..3)]);
    let (status, mut told) = insist(caller, "/v1/payments", key, &new).await;
    assert!([201, 402].contains(&status), "{key}: {status} {told}");
    if status == 201 {
        let commands = match kind {
            0 => [("refund", json!({ "amount": 100 })), ("refund", json!({ "amount": 200 }))],
            1 => [("capture", json!({ "amount": 300 })), ("cancel", json!({}))],
            _ => [("capture", json!({ "amount": 400 })), ("capture", json!({}))],
        };
        for (step, (command, body)) in commands.into_iter().enumerate() {
            let path = format!("/v1/payments/{}/{command}", told["id"].as_str().unwrap());
            let (status, now) = insist(caller, &path, &format!("{key}-{step}"), &body).await;
            assert!([200, 402].contains(&status), "{key} {command}: {status} {now}");
            told = now;
        }
    }
    let number = |name: &str| told[name].as_i64().unwrap();
    let text = |name: &str| told[name].as_str().unwrap().to_owned();
    (text("id"), text("state"), number("captured"), number("refunded"))
}
