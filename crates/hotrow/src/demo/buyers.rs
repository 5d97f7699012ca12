//! The buyers: many connections in one thread, and their answers. The connections are in `target`, the output in `view`.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use super::answer::Answer;
use super::error::Error;
use super::target::{Connection, Target};

/// The longest wait of the histogram; longer waits count as this one.
const LONGEST_WAIT_US: u64 = 60_000_000;

/// The demo fails if the buyers still wait for answers this long after the end of the round.
const PATIENCE: Duration = Duration::from_secs(30);

/// The end of a round.
#[derive(Clone, Copy, Debug)]
pub enum Demand {
    /// Each buyer buys again until the time is over.
    For(Duration),
    /// This number of buyers buy once each.
    Buyers(u64),
}

/// The answers up to now.
#[derive(Clone)]
pub struct Answers {
    /// The time of the first purchase.
    pub since: Option<Instant>,
    /// Sales acknowledged.
    pub sold: u64,
    /// Purchases refused because nothing is left.
    pub refused: u64,
    /// Purchases that ended in an error.
    pub failed: u64,
    /// The first of those errors.
    pub first_failure: Option<String>,
    /// Microseconds from sending a purchase to the end of its answer.
    pub waits: Histogram<u64>,
}

impl Answers {
    /// No answers yet.
    pub fn none() -> Self {
        let waits = Histogram::new_with_bounds(1, LONGEST_WAIT_US, 3)
            .expect("bounds and precision are constants within what the histogram allows");
        Self { since: None, sold: 0, refused: 0, failed: 0, first_failure: None, waits }
    }

    /// The number of all answers.
    pub fn total(&self) -> u64 {
        self.sold + self.refused + self.failed
    }

    fn note(&mut self, answer: Answer, wait: Duration) {
        match answer {
            Answer::Sold => self.sold += 1,
            Answer::Refused => self.refused += 1,
            Answer::Failed(words) => {
                self.failed += 1;
                self.first_failure.get_or_insert(words);
            }
        }
        self.waits.saturating_record(u64::try_from(wait.as_micros()).unwrap_or(LONGEST_WAIT_US).max(1));
    }
}

/// Running buyers. Dropping this stops them.
pub struct Buyers {
    answers: Arc<Mutex<Answers>>,
    done: oneshot::Receiver<Result<Duration, Error>>,
}

impl Buyers {
    /// Connects `connections` buyers to `target`, who then all buy at the same time until `demand` is met.
    pub fn send(target: Target, connections: usize, demand: Demand) -> Result<Self, Error> {
        let answers = Arc::new(Mutex::new(Answers::none()));
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Error::Runtime)?;
        let (mut report, done) = oneshot::channel();
        let shared = Arc::clone(&answers);
        thread::Builder::new()
            .name("buyers".to_owned())
            .spawn(move || {
                let outcome = runtime.block_on(async {
                    tokio::select! {
                        outcome = shop(&target, connections, demand, &shared) => Some(outcome),
                        () = report.closed() => None,
                    }
                });
                if let Some(outcome) = outcome {
                    // There is no receiver if the demo was stopped at this moment.
                    let _ = report.send(outcome);
                }
            })
            .map_err(Error::Runtime)?;
        Ok(Self { answers, done })
    }

    /// The answers up to now.
    pub fn so_far(&self) -> Answers {
        lock(&self.answers).clone()
    }

    /// Waits for the last answer. Returns the time since the first purchase.
    pub async fn finished(&mut self) -> Result<Duration, Error> {
        // The thread always reports, unless this value was dropped.
        (&mut self.done).await.unwrap_or(Err(Error::Stopped))
    }
}

async fn shop(
    target: &Target,
    connections: usize,
    demand: Demand,
    answers: &Arc<Mutex<Answers>>,
) -> Result<Duration, Error> {
    let patience = PATIENCE + if let Demand::For(time) = demand { time } else { Duration::ZERO };
    let silent = |_| Error::Silent { address: target.address(), after: PATIENCE };
    tokio::time::timeout(patience, async {
        let lines = connect(target, connections).await?;
        let start = Instant::now();
        lock(answers).since = Some(start);
        let queue = Arc::new(Queue::opened(demand, start));
        let mut buyers = JoinSet::new();
        for line in lines {
            buyers.spawn(buy(line, Arc::clone(&queue), Arc::clone(answers)));
        }
        while let Some(ended) = buyers.join_next().await {
            ended?.map_err(|source| Error::Line { address: target.address(), source })?;
        }
        Ok(start.elapsed())
    })
    .await
    .map_err(silent)?
}

/// Connects all buyers at the same time. The round begins when the last one is connected.
async fn connect(target: &Target, connections: usize) -> Result<Vec<Connection>, Error> {
    let mut opening = JoinSet::new();
    for _ in 0..connections {
        let target = target.clone();
        opening.spawn(async move { Connection::open(&target).await });
    }
    let mut lines = Vec::with_capacity(connections);
    while let Some(opened) = opening.join_next().await {
        lines.push(opened??);
    }
    Ok(lines)
}

async fn buy(mut line: Connection, queue: Arc<Queue>, answers: Arc<Mutex<Answers>>) -> std::io::Result<()> {
    while queue.next() {
        let asked = Instant::now();
        let answer = line.buy().await?;
        lock(&answers).note(answer, asked.elapsed());
    }
    Ok(())
}

/// The purchases that are left.
enum Queue {
    Until(Instant),
    Left(AtomicU64),
}

impl Queue {
    fn opened(demand: Demand, at: Instant) -> Self {
        match demand {
            Demand::For(time) => Self::Until(at + time),
            Demand::Buyers(count) => Self::Left(AtomicU64::new(count)),
        }
    }

    fn next(&self) -> bool {
        match self {
            Self::Until(end) => Instant::now() < *end,
            Self::Left(left) => {
                left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |count| count.checked_sub(1)).is_ok()
            }
        }
    }
}

/// The counts stay usable after a panic of a buyer: no count is ever half written.
fn lock(answers: &Mutex<Answers>) -> MutexGuard<'_, Answers> {
    answers.lock().unwrap_or_else(PoisonError::into_inner)
}
