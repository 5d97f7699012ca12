//! The callers of the applications: each sends a command to the queue of its application, waits for the answer and measures
//! the time. None of them connects to the server.

use super::{APPLICATIONS, Answer, Command, Queue};
use hotrow_bench::arrivals::arrivals;
use hotrow_bench::load::{Answers, Failure, Part, joined};
use hotrow_bench::statistics::Latencies;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::sync::{Mutex as AsyncMutex, oneshot};

/// One of this number of commands is a drain.
const COMMANDS_PER_DRAIN: i64 = 1000;

/// The state that all callers of a run share.
struct Shared {
    /// A prefix that makes the transaction IDs of this part unique.
    name: String,
    checked: bool,
    sent: AtomicI64,
    latencies: Mutex<Latencies>,
    due: Option<AsyncMutex<UnboundedReceiver<Instant>>>,
    end: Instant,
}

/// Runs the callers until the time is over and every call is answered.
pub(super) async fn run(part: &Part, queues: Vec<Queue>) -> Result<Answers, Failure> {
    let began = Instant::now();
    let end = began + part.lasting();
    let kind = if part.is_warm_up() { "warm-up" } else { "measured" };
    let shared = Arc::new(Shared {
        name: format!("{}-{kind}", part.number),
        checked: part.is_warm_up(),
        sent: AtomicI64::new(0),
        latencies: Mutex::new(Latencies::new()),
        due: part.rate.map(|rate| AsyncMutex::new(arrivals(rate, began, end))),
        end,
    });
    let mut callers = Vec::new();
    for caller in 0..part.run.clients as usize {
        let queue = queues[caller % APPLICATIONS].clone();
        callers.push(tokio::spawn(call_until_the_end(Arc::clone(&shared), queue)));
    }
    drop(queues);
    for caller in callers {
        joined(caller.await)?;
    }
    let latencies = shared.latencies.lock().unwrap_or_else(PoisonError::into_inner).clone();
    Ok(Answers::since(began, latencies.count(), latencies))
}

/// Runs one caller.
async fn call_until_the_end(shared: Arc<Shared>, queue: Queue) -> Result<(), Failure> {
    while let Some(due) = shared.next().await {
        let (command, answer) = shared.command();
        let lost = || Failure("an application gave up before it had answered".into());
        queue.send(command).map_err(|_| lost())?;
        let answer = answer.await.map_err(|_| lost())?;
        shared.check(answer)?;
        shared.latencies.lock().unwrap_or_else(PoisonError::into_inner).record_since(due);
    }
    Ok(())
}

impl Shared {
    /// The time of the next call. `None` if the time is over.
    async fn next(&self) -> Option<Instant> {
        match &self.due {
            Some(due) => due.lock().await.recv().await,
            None => Some(Instant::now()).filter(|now| *now < self.end),
        }
    }

    fn command(&self) -> (Command, oneshot::Receiver<Answer>) {
        let number = self.sent.fetch_add(1, Ordering::Relaxed) + 1;
        let drain = !self.checked && number % COMMANDS_PER_DRAIN == 0;
        let (sender, receiver) = oneshot::channel();
        let transaction_id = format!("{}-{number}", self.name);
        (Command { transaction_id, drain, amount: i64::from(!drain), answer: sender }, receiver)
    }

    fn check(&self, answer: Answer) -> Result<(), Failure> {
        if self.checked && answer.returned != answer.version {
            let Answer { version, returned } = answer;
            return Err(Failure(format!("increment {version} by one was answered with {returned}")));
        }
        Ok(())
    }
}
