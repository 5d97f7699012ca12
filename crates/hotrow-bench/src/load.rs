//! A part of a run as it is planned, and the answers of its load. It makes no load.

use crate::error::Error;
use crate::scenario::{LoadBy, Protocol, Scenario, Technique};
use crate::statistics::Latencies;
use serde::Serialize;
use std::time::{Duration, Instant};
use tokio::task::JoinError;

/// One run to be made.
#[derive(Debug, Clone, Copy)]
pub struct Run {
    pub scenario: &'static Scenario,
    pub technique: &'static Technique,
    /// The number of clients.
    pub clients: u32,
    /// Requests per second in an open loop.
    pub rate: Option<u32>,
}

/// A run's warm-up, or its measurement after that.
#[derive(Debug, Clone, Copy)]
pub struct Part {
    pub run: Run,
    /// A number that no other run has.
    pub number: u32,
    /// Whether this part only ages the rows. pgbench makes its load, regardless of the technique.
    pub ages: bool,
    /// The pgbench script.
    pub script: &'static str,
    /// Its length.
    pub seconds: u32,
    /// Requests per second in an open loop.
    pub rate: Option<u32>,
    /// Whether this is a short check: pgbench sends a few requests, and other loads take a moment, regardless of the length.
    pub quick: bool,
    /// The number of rows.
    pub rows: u32,
    /// Requests per second in the warm-up, if there was one.
    pub warmed_up: Option<f64>,
}

impl Part {
    /// The program that makes the load.
    pub fn load_by(&self) -> LoadBy {
        if self.ages { LoadBy::Pgbench } else { self.run.technique.load_by }
    }

    /// How statements are sent, if the clients can choose.
    pub fn protocol(&self) -> Protocol {
        if self.ages { Protocol::Prepared } else { self.run.technique.protocol }
    }

    /// Whether this is the warm-up, which can check every answer.
    pub fn is_warm_up(&self) -> bool {
        self.warmed_up.is_none()
    }

    /// The length of loads that take a time.
    pub fn lasting(&self) -> Duration {
        const A_MOMENT: Duration = Duration::from_millis(200);
        // A server that is watched reports its flushes once per second.
        let short = self.quick && !self.run.technique.is_watched();
        if short { A_MOMENT } else { Duration::from_secs(self.seconds.into()) }
    }

    /// The number of requests for redis-benchmark and queues of other projects, which take a number and not a time.
    pub fn requests(&self) -> u64 {
        const IN_A_WARM_UP: f64 = 5_000.0;
        (self.warmed_up.unwrap_or(IN_A_WARM_UP) * f64::from(self.seconds)) as u64 + 1
    }
}

/// The answers that the clients received.
#[derive(Debug)]
pub struct Answers {
    /// Acknowledged requests.
    pub acknowledged: u64,
    /// Acknowledged units of work of the second load.
    pub beside: u64,
    /// Acknowledged requests of the technique per second.
    pub per_second: f64,
    /// The latencies of its requests, if they were logged.
    pub latencies: Latencies,
    /// The pace of the load itself, if it reports one.
    pub pace: Option<Pace>,
}

impl Answers {
    /// The answers of a load without a second one.
    pub fn new(acknowledged: u64, per_second: f64, latencies: Latencies) -> Self {
        Self { acknowledged, beside: 0, per_second, latencies, pace: None }
    }

    /// The answers of a load that has just ended.
    pub fn since(began: Instant, acknowledged: u64, latencies: Latencies) -> Self {
        Self::new(acknowledged, acknowledged as f64 / began.elapsed().as_secs_f64(), latencies)
    }
}

/// The pace of an open loop. Its own delays must not be attributed to the system under test.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Pace {
    /// Requests that were made per second, answered or not.
    pub arrived_per_second: f64,
    /// 99th percentile of the requests' lateness, in microseconds.
    pub late_p99_us: u64,
    /// Requests that were refused because too many were under way. Nothing was executed, and no latency counts them.
    pub refused: u64,
}

/// The reason why a run gives no figure, or is not made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Failure(pub String);

impl Failure {
    /// The end of a client of this kind: `a worker`.
    pub fn of_client(kind: &str, error: &tokio_postgres::Error) -> Self {
        Self(match error.as_db_error() {
            Some(reported) => {
                format!("{kind}'s statement failed: {} ({})", reported.message(), reported.code().code())
            }
            None => format!("{kind} failed: {error}"),
        })
    }
}

/// The end of a run without a figure.
#[derive(Debug, thiserror::Error)]
pub enum NoFigure {
    /// This run failed. Others may succeed.
    #[error(transparent)]
    Failed(#[from] Failure),
    /// The benchmark cannot go on.
    #[error(transparent)]
    Error(#[from] Error),
}

impl NoFigure {
    /// Names what failed.
    pub fn of(self, what: &str) -> Self {
        match self {
            Self::Failed(Failure(reason)) => Failure(format!("{what}: {reason}")).into(),
            error @ Self::Error(_) => error,
        }
    }
}

/// The result of a task. A panic of the task continues here.
pub fn joined<T>(ended: Result<T, JoinError>) -> T {
    ended.unwrap_or_else(|panicked| std::panic::resume_unwind(panicked.into_panic()))
}
