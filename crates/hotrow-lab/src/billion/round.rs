//! One round: load with kills, then the check of every answer.

use super::answers::Record;
use super::check::{Found, check};
use super::client::{Client, Shared};
use super::observer::Observer;
use super::plan::Progress;
use super::testbed::{Changes, Testbed};
use super::totals::{Happened, Totals};
use hotrow_bench::Error;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::{Duration, Instant};
use tokio::task::{JoinHandle, spawn_local};
use tokio::time::{sleep, timeout};

/// How often the load is looked at.
const TICK: Duration = Duration::from_millis(20);
/// Pause between two changes of the schema. After each, the gateways judge the statements again.
const CHANGE_EVERY: Duration = Duration::from_secs(10);
/// Clients that get no answer for this long have found a fault.
const PATIENCE: Duration = Duration::from_secs(180);
/// Much more memory than a gateway with these clients needs. It would grow without bound.
const GATEWAY_BYTES_MAX: u64 = 256 << 20;
/// A round with more statements would need too much memory for its check.
const STATEMENTS_MAX: u64 = 5_000_000;

/// Bounds of a round.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    pub clients: u32,
    pub lasts: Duration,
    /// The end of the run by time.
    pub deadline: Option<Instant>,
    /// Whether the schema changes beside the load.
    pub changes: bool,
}

/// The reason why a round has no result.
#[derive(Debug)]
pub enum Stop {
    Error(Error),
    /// A contradiction, with the records of all clients whose requests have ended.
    Fault(String, Vec<Vec<Record>>),
}

impl<E: Into<Error>> From<E> for Stop {
    fn from(error: E) -> Self {
        Self::Error(error.into())
    }
}

/// A round that runs.
struct Load<'a> {
    testbed: &'a mut Testbed,
    shared: Rc<Shared>,
    happened: Happened,
    progress: Progress,
    /// The counts of the gateways at the beginning, which are zero for gateways that were started in this round.
    before: [BTreeMap<String, u64>; 2],
    random: fastrand::Rng,
}

/// Runs and checks the next round.
pub async fn run(
    testbed: &mut Testbed,
    totals: &Totals,
    bounds: Bounds,
    observer: &mut impl Observer,
) -> Result<(Happened, Found), Stop> {
    let round = totals.rounds + 1;
    testbed.prepare(round, bounds.clients).await?;
    let shared = Rc::new(Shared::new(round, testbed.ports()));
    let (before, _) = testbed.counted().await;
    let clients =
        (1..=bounds.clients).map(|number| spawn_local(Client::new(Rc::clone(&shared), number).run()));
    let clients: Vec<_> = clients.collect();
    let changes = bounds.changes.then(|| spawn_local(change(testbed.changes(), Rc::clone(&shared))));
    let mut load = Load {
        testbed,
        shared: Rc::clone(&shared),
        happened: Happened::default(),
        progress: totals.progress(),
        before,
        random: fastrand::Rng::with_seed(round),
    };
    let began = Instant::now();
    let lasted = load.last(totals, bounds, observer).await;
    shared.stop.set(true);
    let records = end(clients, &shared).await;
    lasted?;
    if let Some(changes) = changes {
        load.happened.ddl = changes.await.unwrap_or_default();
    }
    let fault = shared.fault.borrow_mut().take();
    if let Some(fault) = fault {
        return Err(Stop::Fault(fault, records));
    }
    load.happened.load_ms = milliseconds(began);
    load.happened.connections = shared.connections.get();
    load.check(records).await
}

fn milliseconds(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX)
}

/// Waits for the clients' last answers. Returns the records of those that have ended.
async fn end(clients: Vec<JoinHandle<Vec<Record>>>, shared: &Shared) -> Vec<Vec<Record>> {
    let deadline = Instant::now() + PATIENCE;
    let mut records = Vec::new();
    for (number, client) in (1..).zip(clients) {
        match timeout(deadline.saturating_duration_since(Instant::now()), client).await {
            Ok(ended) => records.push(hotrow_bench::load::joined(ended)),
            Err(_) => {
                shared.fail(format!("client {number} got no answer for {PATIENCE:?}"));
                records.push(Vec::new());
            }
        }
    }
    records
}

/// Changes the schema until the load ends. Returns the number of changes.
async fn change(changes: Changes, shared: Rc<Shared>) -> u64 {
    let mut made = 0;
    while !shared.stop.get() {
        match changes.make(made).await {
            Ok(was_made) => made += u64::from(was_made),
            Err(error) => shared.fail(format!("a change of the schema failed: {error}")),
        }
        let began = Instant::now();
        while began.elapsed() < CHANGE_EVERY && !shared.stop.get() {
            sleep(TICK).await;
        }
    }
    made
}

impl Load<'_> {
    /// Lets the load last, and events happen, until a bound is reached.
    async fn last(
        &mut self,
        totals: &Totals,
        bounds: Bounds,
        observer: &mut impl Observer,
    ) -> Result<(), Error> {
        let (base, began) = (self.progress.statements, Instant::now());
        let mut flowed = (0, began);
        while !self.shared.stop.get() {
            sleep(TICK).await;
            let acknowledged = self.shared.acknowledged.get();
            self.progress.statements = base + acknowledged;
            let unknown = self.shared.unknown.get();
            observer.loaded(self.testbed, totals, &self.progress, unknown).await?;
            if acknowledged > flowed.0 {
                flowed = (acknowledged, Instant::now());
            } else if flowed.1.elapsed() > PATIENCE {
                self.shared.fail(format!("no client got an answer for {PATIENCE:?}"));
            }
            if let Some(report) = self.testbed.trouble() {
                self.shared.fail(format!("a gateway has ended by itself: {report}"));
            }
            let is_over = began.elapsed() >= bounds.lasts
                || bounds.deadline.is_some_and(|deadline| Instant::now() >= deadline)
                || acknowledged >= STATEMENTS_MAX;
            if is_over || totals.goal.is_reached(&self.progress) {
                break;
            }
            let Some(event) = totals.goal.next(&self.progress) else { continue };
            let which = self.random.usize(0..bounds.clients as usize);
            let ports = self.testbed.ports();
            if !self.testbed.happen(event, which, &self.shared).await? {
                continue;
            }
            for (gateway, port) in self.testbed.ports().into_iter().enumerate() {
                if port != ports[gateway] {
                    self.before[gateway].clear();
                }
            }
            self.happened.events.push(event);
            self.progress.events += 1;
            self.progress.kills += u64::from(event.is_kill());
            self.progress.at_last_event = base + self.shared.acknowledged.get();
        }
        Ok(())
    }

    /// Compares answers and rows after the load.
    async fn check(mut self, records: Vec<Vec<Record>>) -> Result<(Happened, Found), Stop> {
        let began = Instant::now();
        self.testbed.settle(self.shared.unknown.get() > 0).await?;
        let (units, most) = self.testbed.counted().await;
        self.happened.gateway_bytes = most;
        for (units, before) in units.into_iter().zip(&self.before) {
            for (way, count) in units {
                let before = before.get(&way).copied().unwrap_or_default();
                *self.happened.units.entry(way).or_default() += count.saturating_sub(before);
            }
        }
        if most > GATEWAY_BYTES_MAX {
            return Err(Stop::Fault(format!("a gateway needs {} MiB of memory", most >> 20), records));
        }
        let rows = self.testbed.rows().await?;
        match check(&records, &rows, !self.happened.events.is_empty()) {
            Ok(found) => {
                self.happened.check_ms = milliseconds(began);
                Ok((self.happened, found))
            }
            Err(fault) => Err(Stop::Fault(fault, records)),
        }
    }
}
