//! One run of one technique: rows put back, warm-up, load, check; knows nothing of other runs.

use crate::error::Error;
use crate::load::{Answers, Failure};
use crate::plan::Plan;
use crate::results::Round;
use crate::scenario::{LoadBy, Scenario, Technique};
use crate::statistics::Latencies;
use crate::testbed::Testbed;
use crate::verdict::{Work, judge};
use crate::{applications, connections, fresh, http, pgbench};

/// One run to be made.
#[derive(Debug, Clone, Copy)]
pub struct Run {
    /// Of this scenario.
    pub scenario: &'static Scenario,
    /// In this way.
    pub technique: &'static Technique,
    /// With this many.
    pub clients: u32,
    /// At this rate, in an open loop.
    pub rate: Option<u32>,
}

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
    let number = match testbed.before_run(run.scenario, run.technique).await {
        Ok(number) => number,
        Err(error) => return Ok(Err(Failure(error.to_string()))),
    };

    let warm_up = Part {
        script: run.technique.warm_up,
        seconds: plan.warm_up_seconds,
        rows: plan.rows(run.scenario),
        run,
        number,
        warmed_up: None,
    };
    let per_second = match checked(plan, testbed, &warm_up).await? {
        Ok((answers, _)) => answers.per_second,
        Err(failure) => return Ok(Err(Failure(format!("warm-up: {}", failure.0)))),
    };
    let part =
        Part { script: run.technique.script, seconds: plan.seconds, warmed_up: Some(per_second), ..warm_up };
    let measured = checked(plan, testbed, &part).await?;
    Ok(measured.map(|(answers, work)| {
        let share = |count: u64| answers.per_second * count as f64 / answers.acknowledged as f64;
        let round = Round {
            per_second: share(work.done),
            turned_away_per_second: share(work.turned_away),
            done: work.done,
            turned_away: work.turned_away,
            latency: answers.latencies.quantiles(),
            pace: answers.pace,
        };
        Measured { round, latencies: answers.latencies }
    }))
}

/// A run's warm-up, or what is measured after it.
struct Part {
    run: Run,
    /// A number that no other run has.
    number: u32,
    script: &'static str,
    seconds: u32,
    rows: u32,
    /// The rate of the warm-up, once there was one.
    warmed_up: Option<f64>,
}

impl Part {
    fn logged_part(&self) -> f64 {
        self.warmed_up.map_or(0.0, |per_second| (LOGGED_PER_SECOND / per_second).min(1.0))
    }

    /// redis-benchmark is told a number, not a time.
    fn requests(&self) -> u64 {
        const IN_A_WARM_UP: f64 = 5_000.0;
        (self.warmed_up.unwrap_or(IN_A_WARM_UP) * f64::from(self.seconds)) as u64 + 1
    }
}

/// Makes a part and compares the rows with its answers.
async fn checked(
    plan: &Plan,
    testbed: &mut Testbed,
    part: &Part,
) -> Result<Result<(Answers, Work), Failure>, Error> {
    let Run { scenario, technique, .. } = part.run;
    let unreadable = |error: Error| Ok(Err(Failure(format!("its check could not be made: {error}"))));
    let before = match testbed.read(scenario, technique).await {
        Ok(before) => before,
        Err(error) => return unreadable(error),
    };
    let answers = match load(plan, testbed, part).await? {
        Ok(answers) => answers,
        Err(failure) => return Ok(Err(testbed.explain(technique.through, failure))),
    };
    let after = match testbed.read(scenario, technique).await {
        Ok(after) => after,
        Err(error) => return unreadable(error),
    };
    Ok(match judge(technique.worth, answers.acknowledged, before, after) {
        Ok(work) => Ok((answers, work)),
        Err(disagreement) => Err(Failure(disagreement)),
    })
}

/// Lets whoever makes this technique's load make it.
async fn load(plan: &Plan, testbed: &mut Testbed, part: &Part) -> Result<Result<Answers, Failure>, Error> {
    let Run { technique, clients, rate, .. } = part.run;
    if technique.load_by == LoadBy::RedisBenchmark {
        return match testbed.redis() {
            Ok(redis) => redis.reserve(clients, part.requests()).await,
            Err(reason) => Ok(Err(Failure(reason))),
        };
    }
    if technique.load_by == LoadBy::FreshConnections {
        return fresh::run(plan, testbed, part.run, part.seconds).await;
    }
    if technique.load_by == LoadBy::Http {
        return Ok(over_http(testbed, part).await);
    }
    let endpoint = match testbed.endpoint(technique.through, clients) {
        Ok(endpoint) => endpoint,
        Err(reason) => return Ok(Err(Failure(reason))),
    };
    if technique.load_by == LoadBy::Connections {
        return Ok(connections::run(endpoint, clients, part.seconds).await);
    }
    if let LoadBy::Applications(batching) = technique.load_by {
        let counter = &part.number.to_string();
        let (seconds, checked) = (part.seconds, part.warmed_up.is_none());
        let load =
            applications::Load { endpoint, batching, counter, callers: clients, seconds, rate, checked };
        return Ok(applications::run(&load).await);
    }
    let load = pgbench::Load {
        endpoint,
        script: part.script,
        protocol: testbed.protocol(technique.through, technique.protocol),
        clients,
        seconds: part.seconds,
        rate,
        rows: part.rows,
        run: part.number,
        logged_part: part.logged_part(),
    };
    testbed.pgbench.run(&load).await
}

/// The load over HTTP, which is always an open loop.
async fn over_http(testbed: &Testbed, part: &Part) -> Result<Answers, Failure> {
    let addresses = testbed.http_addresses().map_err(Failure)?;
    let rate = part.run.rate.ok_or_else(|| Failure("a load over HTTP needs a rate".into()))?;
    let load = http::Load {
        addresses,
        counter: &part.number.to_string(),
        connections: part.run.clients,
        seconds: part.seconds,
        rate,
        checked: part.warmed_up.is_none(),
    };
    http::run(&load).await
}
