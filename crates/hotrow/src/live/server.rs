//! The server's numbers, on a connection that exists only while the page is watched. A server that does not answer delays
//! nothing: the page gets the last numbers and the problem.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use hotrow_doctor::{ServerNow, Watch};
use serde::Serialize;

use super::seconds_since_1970;

/// The time between two looks.
const PERIOD: Duration = Duration::from_secs(1);
/// The sampling ends if the numbers were not asked for in this time.
const UNASKED: Duration = Duration::from_secs(5);

/// Samples in the background while the numbers are asked for.
pub struct ServerSampler {
    url: String,
    shared: Arc<Mutex<Shared>>,
}

#[derive(Default)]
struct Shared {
    /// The last request for the numbers, while the task runs.
    asked: Option<Instant>,
    latest: Latest,
}

/// The last numbers.
#[derive(Clone, Debug, Default)]
pub struct Latest {
    /// None before the first answer.
    pub now: Option<ServerNow>,
    /// The problem, if the server does not answer now.
    pub problem: Option<Problem>,
}

/// The server does not answer.
#[derive(Clone, Debug, Serialize)]
pub struct Problem {
    /// Seconds since 1970.
    since: u64,
    text: String,
}

impl Problem {
    /// The problem, of which the gateway itself has known for this long.
    fn known_for(mut self, gateway: Option<Duration>) -> Self {
        let since = gateway.map(|gateway| seconds_since_1970(SystemTime::now() - gateway));
        self.since = since.map_or(self.since, |since| since.min(self.since));
        self
    }
}

impl Latest {
    /// WAL flushes, unless the numbers are old.
    pub fn flushes_per_second(&self) -> Option<f64> {
        let now = self.now.as_ref().filter(|_| self.problem.is_none())?;
        now.per_second()?.flushes
    }
}

impl ServerSampler {
    /// Nothing is asked yet.
    pub fn new(url: String) -> Self {
        ServerSampler { url, shared: Arc::default() }
    }

    /// The last numbers. Starts the sampling if it does not run. `lost_for` says for how long the gateway has not reached the
    /// server.
    pub fn latest(&self, lost_for: Option<Duration>) -> Latest {
        let mut shared = lock(&self.shared);
        if shared.asked.replace(Instant::now()).is_none() {
            tokio::spawn(sample(self.url.clone(), self.shared.clone()));
        }
        let Latest { now, problem } = shared.latest.clone();
        Latest { now, problem: problem.map(|problem| problem.known_for(lost_for)) }
    }
}

async fn sample(url: String, shared: Arc<Mutex<Shared>>) {
    let mut watch = None;
    while go_on(&shared) {
        let looked = match &mut watch {
            None => match Watch::connect(&url).await {
                Ok(connected) => watch.insert(connected).look().await,
                Err(error) => Err(error),
            },
            Some(watch) => watch.look().await,
        };
        match looked {
            Ok(now) => lock(&shared).latest = Latest { now: Some(now), problem: None },
            Err(error) => {
                watch = None;
                let mut shared = lock(&shared);
                let since = seconds_since_1970(SystemTime::now());
                let since = shared.latest.problem.as_ref().map_or(since, |problem| problem.since);
                shared.latest.problem = Some(Problem { since, text: error.reason() });
            }
        }
        tokio::time::sleep(PERIOD).await;
    }
}

/// Whether the numbers are still asked for. If not, the next request starts again, without old numbers.
fn go_on(shared: &Mutex<Shared>) -> bool {
    let mut shared = lock(shared);
    let is_asked = shared.asked.is_some_and(|asked| asked.elapsed() < UNASKED);
    if !is_asked {
        *shared = Shared::default();
    }
    is_asked
}

fn lock(shared: &Mutex<Shared>) -> MutexGuard<'_, Shared> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}
