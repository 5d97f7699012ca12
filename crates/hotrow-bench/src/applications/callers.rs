//! The callers of the applications: each sends a command to its application's queue, waits for the answer and times it; none
//! touches the server.

use super::{APPLICATIONS, Answer, Command, Load, Queue};
use crate::arrivals::arrivals;
use crate::load::{Answers, Failure};
use crate::statistics::Latencies;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::sync::{Mutex as AsyncMutex, oneshot};

/// What the callers do.
#[derive(Debug)]
pub(super) struct Calls {
    callers: u32,
    lasting: Duration,
    rate: Option<u32>,
    checked: bool,
    /// Makes this run's transaction ids its own.
    name: String,
}

impl Calls {
    pub(super) fn of(load: &Load<'_>) -> Self {
        let kind = if load.checked { "warm-up" } else { "measured" };
        Self {
            callers: load.callers,
            lasting: Duration::from_secs(load.seconds.into()),
            rate: load.rate,
            checked: load.checked,
            name: format!("{}-{kind}", load.counter),
        }
    }
}

/// One command of so many is a drain.
const COMMANDS_PER_DRAIN: i64 = 1000;

/// What all callers of a run share.
struct Crowd {
    name: String,
    checked: bool,
    sent: AtomicI64,
    latencies: Mutex<Latencies>,
    due: Option<AsyncMutex<UnboundedReceiver<Instant>>>,
    end: Instant,
}

/// Lets them call until the time is up and all have their answers.
pub(super) async fn run(calls: &Calls, queues: Vec<Queue>) -> Result<Answers, Failure> {
    let began = Instant::now();
    let end = began + calls.lasting;
    let crowd = Arc::new(Crowd {
        name: calls.name.clone(),
        checked: calls.checked,
        sent: AtomicI64::new(0),
        latencies: Mutex::new(Latencies::new()),
        due: calls.rate.map(|rate| AsyncMutex::new(arrivals(rate, began, end))),
        end,
    });
    let callers: Vec<_> = (0..calls.callers as usize)
        .map(|caller| {
            tokio::spawn(call_until_the_end(Arc::clone(&crowd), queues[caller % APPLICATIONS].clone()))
        })
        .collect();
    drop(queues);
    let mut acknowledged = 0;
    for caller in callers {
        match caller.await {
            Ok(answered) => acknowledged += answered?,
            Err(panicked) => std::panic::resume_unwind(panicked.into_panic()),
        }
    }
    let per_second = acknowledged as f64 / began.elapsed().as_secs_f64();
    let latencies = crowd.latencies.lock().unwrap_or_else(PoisonError::into_inner).clone();
    Ok(Answers { acknowledged, beside: 0, per_second, latencies, pace: None })
}

/// One caller: how many answers it got.
async fn call_until_the_end(crowd: Arc<Crowd>, queue: Queue) -> Result<u64, Failure> {
    let mut answered = 0;
    while let Some(due) = crowd.next().await {
        let (command, answer) = crowd.command();
        let lost = || Failure("an application gave up before it had answered".into());
        queue.send(command).map_err(|_| lost())?;
        let answer = answer.await.map_err(|_| lost())?;
        crowd.check(answer)?;
        let microseconds = u64::try_from(due.elapsed().as_micros()).unwrap_or(u64::MAX);
        crowd.latencies.lock().unwrap_or_else(PoisonError::into_inner).record(microseconds);
        answered += 1;
    }
    Ok(answered)
}

impl Crowd {
    /// When the next call is due; none once the time is up.
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
