//! Works off an ordered queue with tokio-postgres: takes orders, keeps their lease while it works, and stops when told to.
//!
//! SIGTERM or SIGINT: the order in hand is finished, the others go back, and a take that waits is cancelled.

#![expect(clippy::print_stdout, reason = "what it has done is all it has to say")]

mod session;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use session::{Interval, Session, Value as Parameter};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tokio_postgres::{Error, Row};

// Autocommit, and nothing around the calls: then the gateway merges them with those of other workers.
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
    /// How long the work of one order takes.
    work: Duration,
    /// For whoever wants to see the end of it: without this it works until it is stopped.
    stop_when_empty: bool,
}

/// An order that is this worker's for as long as its lease lasts.
struct Order {
    receipt: i64,
    payload: Option<Value>,
    attempt: i32,
}

struct Worker {
    settings: Arc<Settings>,
    session: Session,
    stop: watch::Receiver<bool>,
    /// The receipt in hand. All that one take gave ends together, so that one receipt keeps all of it.
    in_hand: Arc<Mutex<Option<i64>>>,
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
                    let values = [&self.settings.queue as Parameter<'_>, &order.receipt as Parameter<'_>];
                    self.session.call(RELEASE, &values, None).await?;
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
        let values = [
            &self.settings.queue as Parameter<'_>,
            &ORDERS_PER_TAKE as Parameter<'_>,
            &lease as Parameter<'_>,
            &wait as Parameter<'_>,
        ];
        let rows = self.session.call(TAKE, &values, Some(&mut self.stop)).await?;
        Ok(rows
            .iter()
            .map(|row| Order { receipt: row.get(0), payload: row.get(1), attempt: row.get(2) })
            .collect())
    }

    async fn settle(&mut self, order: Order) -> Result<(), Error> {
        match handle(&order, self.settings.work).await {
            Ok(result) => {
                let values = [
                    &self.settings.queue as Parameter<'_>,
                    &order.receipt as Parameter<'_>,
                    &result as Parameter<'_>,
                ];
                let rows = self.session.call(COMPLETE, &values, None).await?;
                self.completed += u64::from(outcome(&rows) == "completed");
            }
            // Whatever it is, another attempt may do better.
            Err(error) => {
                let values = [
                    &self.settings.queue as Parameter<'_>,
                    &order.receipt as Parameter<'_>,
                    &error as Parameter<'_>,
                ];
                self.session.call(FAIL, &values, None).await?;
            }
        }
        Ok(())
    }

    fn hold(&self, receipt: Option<i64>) {
        *self.in_hand.lock().expect("nobody panics while it is locked") = receipt;
    }
}

/// Here a shop would ship. Work may be done twice when a lease ends too early: let it recognise the order's id.
async fn handle(order: &Order, work: Duration) -> Result<Value, String> {
    let fails = order.payload.as_ref().and_then(|payload| payload.get("fails")).and_then(Value::as_i64);
    if fails.unwrap_or(0) >= i64::from(order.attempt) {
        return Err("not yet".to_owned());
    }
    tokio::time::sleep(work).await;
    Ok(json!({"shipped": true}))
}

/// Keeps the lease, on a connection of its own, until it is dropped: also while the last order is finished.
async fn beat(settings: Arc<Settings>, in_hand: Arc<Mutex<Option<i64>>>) {
    let mut session = Session::new(&settings.url);
    let lease = Interval(settings.lease);
    loop {
        tokio::time::sleep(settings.lease / 3).await;
        let receipt = *in_hand.lock().expect("nobody panics while it is locked");
        let Some(receipt) = receipt else { continue };
        let values = [&settings.queue as Parameter<'_>, &receipt as Parameter<'_>, &lease as Parameter<'_>];
        // Once it is settled it is lost: the next beat has another one.
        let _ = session.call(EXTEND, &values, None).await;
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
    let in_hand = Arc::new(Mutex::new(None));
    let heart = tokio::spawn(beat(settings.clone(), in_hand.clone()));
    let session = Session::new(&settings.url);
    let mut worker = Worker { settings: settings.clone(), session, stop, in_hand, completed: 0 };
    let worked = worker.work().await;
    heart.abort();
    println!("completed {} orders of {}", worker.completed, settings.queue);
    Ok(worked?)
}
