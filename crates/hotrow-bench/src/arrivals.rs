//! The due times of the requests in an open loop, for loads that this program makes itself. It sends no requests.

use std::time::{Duration, Instant};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

/// Random times with a constant average rate, as pgbench's `--rate` makes them. Each is sent to the receiver when it is due.
pub fn arrivals(rate: u32, began: Instant, end: Instant) -> UnboundedReceiver<Instant> {
    let (sender, receiver) = unbounded_channel();
    // This needs a thread: the runtime's timer rounds up to a millisecond, which would count as latency.
    std::thread::spawn(move || {
        let mut due = began;
        loop {
            due += Duration::from_secs_f64(-(1.0 - fastrand::f64()).ln() / f64::from(rate));
            if due >= end {
                return;
            }
            std::thread::sleep(due.saturating_duration_since(Instant::now()));
            if sender.send(due).is_err() {
                return;
            }
        }
    });
    receiver
}

#[cfg(test)]
mod tests {
    use super::arrivals;
    use std::time::{Duration, Instant};

    #[tokio::test]
    async fn arrivals_keep_the_rate_and_end() {
        let began = Instant::now();
        let mut due = arrivals(5_000, began, began + Duration::from_millis(200));
        let mut moments = Vec::new();
        while let Some(moment) = due.recv().await {
            moments.push(moment);
        }
        assert!((700..1_300).contains(&moments.len()), "{} instead of about 1,000", moments.len());
        assert!(moments.is_sorted());
    }
}
