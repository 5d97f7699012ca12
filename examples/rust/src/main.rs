//! Processes an ordered queue with tokio-postgres: takes orders and extends their lease while it works, until it is stopped.
//!
//! On SIGTERM or SIGINT it finishes the current order, releases the others, and cancels a take that waits.

#![expect(clippy::print_stdout, reason = "the number of completed orders is its output")]

mod session;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use session::{Interval, Session, Value as Parameter};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tokio_postgres::{Error, Row};

// The gateway merges these calls with those of other workers, because they run in autocommit and select nothing else.
const TAKE: &str = "select receipt, payload, attempt from hotrow.take($1, $2, $3, $4)";
const COMPLETE: &str = "select outcome from hotrow.complete($1, $2, 0, $3)";
const FAIL: &str = "select outcome from hotrow.fail($1, $2, $3)";
const RELEASE: &str = "select outcome from hotrow.release($1, $2)";
const EXTEND: &str = "select outcome from hotrow.extend_lease($1, $2, $3)";

const ORDERS_PER_TAKE: i32 = 10;

struct Settings {
    url: String,
    queue: String,
    lease: Duration,
    /// The time for the work of one order.
    work: Duration,
    /// Whether to end when the queue is empty. Without this setting it works until it is stopped.
    stop_when_empty: bool,
}

/// An order that belongs to this worker as long as its lease lasts.
struct Order {
    receipt: i64,
    payload: Option<Value>,
    attempt: i32,
}

struct Worker {
    settings: Arc<Settings>,
    session: Session,
    stop: watch::Receiver<bool>,
    /// The current receipt. The queue has one shard, so the leases of all orders of one take end together, and one receipt extends
    /// all of them.
    current: Arc<Mutex<Option<i64>>>,
    completed: u64,
}

impl Worker {
    async fn work(&mut self) -> Result<(), Error> {
        while !*self.stop.borrow() {
            let orders = self.take().await?;
            if orders.is_empty() && self.settings.stop_when_empty {
                break;
            }
            for order in orders {
                self.hold(Some(order.receipt));
                if *self.stop.borrow() {
                    self.session.call(RELEASE, &[&self.settings.queue, &order.receipt], None).await?;
                } else {
                    self.settle(order).await?;
                }
            }
            self.hold(None);
        }
        Ok(())
    }

    async fn take(&mut self) -> Result<Vec<Order>, Error> {
        let wait = Duration::from_secs(if self.settings.stop_when_empty { 1 } else { 20 });
        let (lease, wait) = (Interval(self.settings.lease), Interval(wait));
        let values: [Parameter<'_>; 4] = [&self.settings.queue, &ORDERS_PER_TAKE, &lease, &wait];
        let rows = self.session.call(TAKE, &values, Some(&mut self.stop)).await?;
        let order = |row: &Row| Order { receipt: row.get(0), payload: row.get(1), attempt: row.get(2) };
        Ok(rows.iter().map(order).collect())
    }

    async fn settle(&mut self, order: Order) -> Result<(), Error> {
        match handle(&order, self.settings.work).await {
            Ok(result) => {
                let values: [Parameter<'_>; 3] = [&self.settings.queue, &order.receipt, &result];
                let rows = self.session.call(COMPLETE, &values, None).await?;
                self.completed += u64::from(outcome(&rows) == "completed");
            }
            // Another attempt may succeed.
            Err(error) => {
                self.session.call(FAIL, &[&self.settings.queue, &order.receipt, &error], None).await?;
            }
        }
        Ok(())
    }

    fn hold(&self, receipt: Option<i64>) {
        *self.current.lock().expect("no thread panics while it holds the lock") = receipt;
    }
}

/// Here a shop would ship the order. If a lease ends too early, the work is done twice, so it must recognise the order's ID.
async fn handle(order: &Order, work: Duration) -> Result<Value, String> {
    let fails = order.payload.as_ref().and_then(|payload| payload.get("fails")).and_then(Value::as_i64);
    if fails.unwrap_or(0) >= i64::from(order.attempt) {
        return Err("not yet".to_owned());
    }
    tokio::time::sleep(work).await;
    Ok(json!({"shipped": true}))
}

/// Extends the lease on its own connection, until the task is aborted after the last order.
async fn extend_leases(settings: Arc<Settings>, current: Arc<Mutex<Option<i64>>>) {
    let mut session = Session::new(&settings.url);
    let lease = Interval(settings.lease);
    loop {
        tokio::time::sleep(settings.lease / 3).await;
        let receipt = *current.lock().expect("no thread panics while it holds the lock");
        let Some(receipt) = receipt else { continue };
        // The lease of a settled order is lost. The next attempt has another receipt.
        let _ = session.call(EXTEND, &[&settings.queue, &receipt, &lease], None).await;
    }
}

fn outcome(rows: &[Row]) -> &str {
    rows.first().map_or("", |row| row.get(0))
}

fn seconds(name: &str, default: f64) -> Duration {
    let text = std::env::var(name).unwrap_or_default();
    Duration::from_secs_f64(text.parse().unwrap_or(default))
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let settings = Arc::new(Settings {
        url: std::env::var("DATABASE_URL")?,
        queue: std::env::var("QUEUE").unwrap_or_else(|_| "orders".to_owned()),
        lease: seconds("LEASE_SECONDS", 30.0),
        work: seconds("WORK_SECONDS", 0.0),
        stop_when_empty: std::env::var("STOP_WHEN_EMPTY").is_ok_and(|value| value == "1"),
    });
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let (stopping, stop) = watch::channel(false);
    tokio::spawn(async move {
        tokio::select! { _ = terminate.recv() => {}, _ = interrupt.recv() => {} }
        stopping.send_replace(true);
        stopping.closed().await;
    });
    let current = Arc::new(Mutex::new(None));
    let extending = tokio::spawn(extend_leases(settings.clone(), current.clone()));
    let session = Session::new(&settings.url);
    let mut worker = Worker { settings: settings.clone(), session, stop, current, completed: 0 };
    let worked = worker.work().await;
    extending.abort();
    println!("completed {} orders of {}", worker.completed, settings.queue);
    Ok(worked?)
}
