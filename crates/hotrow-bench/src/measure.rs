//! One run of one technique: rows put back, warm-up, load, check; knows nothing of other runs.

use crate::error::Error;
use crate::load::{Answers, Failure};
use crate::peers::Job;
use crate::plan::Plan;
use crate::results::Round;
use crate::run::Run;
use crate::scenario::{Ageing, LoadBy, Protocol, Worth};
use crate::slow_flush::LONGER_US;
use crate::statistics::Latencies;
use crate::testbed::Testbed;
use crate::verdict::{Told, Work, judge};
use crate::watch::{ServerWork, Watch};
use crate::{applications, connections, fresh, http, pgbench, workers};
use std::time::Duration;

/// A run whose check passed.
#[derive(Debug)]
pub struct Measured {
    /// Its figures.
    pub round: Round,
    /// Its requests.
    pub latencies: Latencies,
}

/// pgbench writes a line for each logged transaction, which takes it about 0.2 µs: this many take 0.2 % of a core.
const LOGGED_PER_SECOND: f64 = 10_000.0;

/// Makes a run and checks it. A failure means: no figure.
pub async fn measure(
    plan: &Plan,
    testbed: &mut Testbed,
    run: Run,
) -> Result<Result<Measured, Failure>, Error> {
    // What a failed run left behind, such as a lock, takes the figure of this one only, not those of all others.
    let number = match testbed.before_run(plan, run.scenario, run.technique).await {
        Ok(number) => number,
        Err(error) => return Ok(Err(Failure(error.to_string()))),
    };

    let ageing = run.technique.ageing;
    let rate = run.rate.or(plan.hurried_rate(run.scenario));
    let snapshot = match ageing {
        Some(_) => Some(testbed.hold_snapshot().await?),
        None => None,
    };
    let warm_up = Part {
        ages: ageing.is_some(),
        script: ageing.map_or(run.technique.script.warm_up, |ageing| ageing.script),
        seconds: ageing.map_or(plan.warm_up_seconds, |ageing| plan.ageing_seconds(ageing.seconds)),
        rate: ageing.map_or(rate, |Ageing { rate, .. }| Some(plan.rate(rate))),
        rows: plan.rows(run.scenario),
        run,
        number,
        warmed_up: None,
    };
    let per_second = match checked(plan, testbed, &warm_up).await? {
        Ok(loaded) => loaded.answers.per_second,
        Err(failure) => return Ok(Err(Failure(format!("warm-up: {}", failure.0)))),
    };
    let part = Part {
        ages: false,
        script: run.technique.script.measured,
        seconds: plan.seconds,
        rate,
        warmed_up: Some(per_second),
        ..warm_up
    };
    let watch = if run.technique.is_watched() { Some(Watch::start(testbed.server()).await?) } else { None };
    let loaded = match checked(plan, testbed, &part).await? {
        Ok(loaded) => loaded,
        Err(failure) => return Ok(Err(failure)),
    };
    let server = match watch {
        Some(watch) => Some(watch.finish(loaded.work.done).await?),
        None => None,
    };
    if run.technique.slow_flush
        && let Some(flush_us) = server.as_ref().and_then(|work| work.flush_us)
        && flush_us < f64::from(LONGER_US)
    {
        return Ok(Err(Failure(format!("a flush took {flush_us:.0} µs and was not delayed"))));
    }
    if let Some(snapshot) = snapshot
        && let Err(lost) = snapshot.release().await
    {
        return Ok(Err(Failure(format!("the snapshot was not held to the end: {lost}"))));
    }
    Ok(Ok(loaded.measured(run, server)))
}

/// A part that was made and checked.
struct Loaded {
    answers: Answers,
    work: Work,
    wal_bytes: u64,
}

impl Loaded {
    fn measured(self, run: Run, server: Option<ServerWork>) -> Measured {
        let Self { answers, work, wal_bytes } = self;
        let share = |count: u64| answers.per_second * count as f64 / answers.acknowledged as f64;
        // In an open loop the rate is one of requests, so what is done must be told in requests too.
        let pieces = match (run.technique.worth, run.rate) {
            (Worth::Each(pieces), Some(_)) => f64::from(pieces),
            _ => 1.0,
        };
        let round = Round {
            per_second: share(work.done) / pieces,
            turned_away_per_second: share(work.turned_away),
            done: work.done,
            turned_away: work.turned_away,
            wal_bytes_each: wal_bytes as f64 / work.done.max(1) as f64,
            latency: answers.latencies.quantiles(),
            pace: answers.pace,
            server,
        };
        Measured { round, latencies: answers.latencies }
    }
}

/// A run's warm-up, or what is measured after it.
struct Part {
    run: Run,
    /// A number that no other run has.
    number: u32,
    /// It makes the rows old, by pgbench, whoever makes the technique's own load.
    ages: bool,
    script: &'static str,
    seconds: u32,
    /// Requests a second, in an open loop.
    rate: Option<u32>,
    rows: u32,
    /// What the warm-up did in a second, once there was one.
    warmed_up: Option<f64>,
}

impl Part {
    fn load_by(&self) -> LoadBy {
        if self.ages { LoadBy::Pgbench } else { self.run.technique.load_by }
    }

    fn protocol(&self) -> Protocol {
        if self.ages { Protocol::Prepared } else { self.run.technique.protocol }
    }

    fn logged_part(&self) -> f64 {
        self.warmed_up.map_or(0.0, |per_second| (LOGGED_PER_SECOND / per_second).min(1.0))
    }

    /// redis-benchmark and queues that others wrote are told a number, not a time.
    fn requests(&self) -> u64 {
        const IN_A_WARM_UP: f64 = 5_000.0;
        (self.warmed_up.unwrap_or(IN_A_WARM_UP) * f64::from(self.seconds)) as u64 + 1
    }
}

/// Makes a part and compares the rows with its answers.
async fn checked(plan: &Plan, testbed: &mut Testbed, part: &Part) -> Result<Result<Loaded, Failure>, Error> {
    let Run { scenario, technique, .. } = part.run;
    if let Err(failure) = enqueue(testbed, part).await {
        return Ok(Err(failure));
    }
    let unreadable = |error: Error| Ok(Err(Failure(format!("its check failed to run: {error}"))));
    let before = match testbed.read(scenario, technique).await {
        Ok(before) => before,
        Err(error) => return unreadable(error),
    };
    let wal_began = testbed.control.wal_position().await?;
    let answers = match load(plan, testbed, part).await? {
        Ok(answers) => answers,
        Err(failure) => return Ok(Err(testbed.explain(technique.through, failure))),
    };
    let wal_bytes = testbed.control.wal_position().await?.saturating_sub(wal_began);
    if let Some(payments) = &testbed.payments
        && let Err(failure) = payments.settle().await?
    {
        return Ok(Err(failure));
    }
    let after = match testbed.read(scenario, technique).await {
        Ok(after) => after,
        Err(error) => return unreadable(error),
    };
    let told = Told { acknowledged: answers.acknowledged, beside: answers.beside };
    Ok(match judge(technique.worth, told, before, after) {
        Ok(work) => Ok(Loaded { answers, work, wal_bytes }),
        Err(disagreement) => Err(Failure(disagreement)),
    })
}

/// What a program of `peers/` is to do, if it makes this technique's load.
fn job<'a>(testbed: &'a Testbed, part: &Part) -> Result<Option<Job<'a>>, Failure> {
    let Run { technique, clients, .. } = part.run;
    let LoadBy::Peer(peer) = part.load_by() else { return Ok(None) };
    Ok(Some(Job {
        peer,
        technique: technique.name,
        server: testbed.server(),
        endpoint: testbed.endpoint(technique.through, clients).map_err(Failure)?,
        orders: part.requests(),
        workers: clients,
        run: part.number,
    }))
}

/// Such a program works off what it has put in before.
async fn enqueue(testbed: &Testbed, part: &Part) -> Result<(), Failure> {
    match job(testbed, part)? {
        Some(job) => testbed.peers.enqueue(&job).await,
        None => Ok(()),
    }
}

/// Lets whoever makes this technique's load make it.
async fn load(plan: &Plan, testbed: &mut Testbed, part: &Part) -> Result<Result<Answers, Failure>, Error> {
    let (Run { technique, clients, .. }, rate) = (part.run, part.rate);
    if part.load_by() == LoadBy::RedisBenchmark {
        return match testbed.redis() {
            Ok(redis) => redis.reserve(clients, part.requests()).await,
            Err(reason) => Ok(Err(Failure(reason))),
        };
    }
    match job(testbed, part) {
        Ok(None) => {}
        Ok(Some(job)) => return Ok(testbed.peers.work(&job).await),
        Err(failure) => return Ok(Err(failure)),
    }
    if part.load_by() == LoadBy::FreshConnections {
        return fresh::run(plan, testbed, part.run, part.seconds).await;
    }
    if part.load_by() == LoadBy::Http {
        return Ok(over_http(testbed, part).await);
    }
    if let LoadBy::Payments { gateway_dies } = part.load_by() {
        return pay(testbed, part, gateway_dies).await;
    }
    let endpoint = match testbed.endpoint(technique.through, clients) {
        Ok(endpoint) => endpoint,
        Err(reason) => return Ok(Err(Failure(reason))),
    };
    if part.load_by() == LoadBy::Connections {
        return Ok(connections::run(endpoint, clients, part.seconds).await);
    }
    if let LoadBy::Workers(steps) = part.load_by() {
        let (run, seconds) = (part.number, part.seconds);
        return Ok(workers::run(&workers::Load { endpoint, steps, run, workers: clients, seconds }).await);
    }
    if let LoadBy::Applications(batching) = part.load_by() {
        let counter = &part.number.to_string();
        let (seconds, checked) = (part.seconds, part.warmed_up.is_none());
        let load =
            applications::Load { endpoint, batching, counter, callers: clients, seconds, rate, checked };
        return Ok(applications::run(&load).await);
    }
    let load = pgbench::Load {
        endpoint,
        script: part.script,
        protocol: testbed.protocol(technique.through, part.protocol()),
        clients,
        seconds: part.seconds,
        rate,
        rows: part.rows,
        run: part.number,
        logged_part: part.logged_part(),
    };
    let Some(beside) = technique.beside else { return testbed.pgbench.run(&load).await };
    let others = pgbench::Load {
        script: beside.script,
        clients: beside.clients,
        rate: None,
        logged_part: 0.0,
        ..load.clone()
    };
    let (answers, others) = tokio::join!(testbed.pgbench.run(&load), testbed.pgbench.run(&others));
    Ok(match (answers?, others?) {
        (Ok(answers), Ok(others)) => Ok(Answers { beside: others.acknowledged, ..answers }),
        (Err(failure), _) => Err(failure),
        (Ok(_), Err(failure)) => Err(Failure(format!("the second load: {}", failure.0))),
    })
}

/// Commands on a counter over HTTP.
async fn over_http(testbed: &Testbed, part: &Part) -> Result<Answers, Failure> {
    let addresses = testbed.http_addresses().map_err(Failure)?;
    let kind = http::Commands { counter: part.number.to_string(), checked: part.warmed_up.is_none() };
    let (connections, rate) = (part.run.clients, part.rate);
    http::run(http::Load { addresses, kind, connections, seconds: part.seconds, rate }).await
}

/// Payments over HTTP. After the warm-up, which every payment gateway survives, one of them may die halfway.
async fn pay(
    testbed: &mut Testbed,
    part: &Part,
    gateway_dies: bool,
) -> Result<Result<Answers, Failure>, Error> {
    let Some(payments) = &mut testbed.payments else {
        return Ok(Err(Failure("the payment service is not running".into())));
    };
    let measured = part.warmed_up.is_some();
    let addresses = [payments.address];
    let kind = http::Orders::new(format!("{}-{measured}", part.number));
    let (connections, rate) = (part.run.clients, part.rate);
    let load =
        http::run(http::Load { addresses: &addresses, kind, connections, seconds: part.seconds, rate });
    let death = async {
        if measured && gateway_dies {
            let third = Duration::from_secs(part.seconds.into()) / 3;
            tokio::time::sleep(third).await;
            return payments.lose_a_gateway(third).await;
        }
        Ok(())
    };
    let (answers, died) = tokio::join!(load, death);
    died?;
    Ok(answers)
}
