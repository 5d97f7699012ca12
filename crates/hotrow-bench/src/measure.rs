//! One run of one technique: rows put back, warm-up, load, check; knows nothing of other runs.

use crate::error::Error;
use crate::pgbench::{Answers, Failure, Load};
use crate::plan::Plan;
use crate::results::Round;
use crate::scenario::{Scenario, Technique};
use crate::statistics::Latencies;
use crate::testbed::Testbed;
use crate::verdict::{Work, judge};

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
    if let Err(error) = testbed.before_run(run.scenario).await {
        return Ok(Err(Failure(error.to_string())));
    }

    let warm_up = part(plan, testbed, run, run.technique.warm_up, plan.warm_up_seconds, 0.0).await?;
    let (warmed_up, _) = match warm_up {
        Ok(answers) => answers,
        Err(failure) => return Ok(Err(Failure(format!("warm-up: {}", failure.0)))),
    };
    let logged_part = (LOGGED_PER_SECOND / warmed_up.per_second).min(1.0);
    let measured = part(plan, testbed, run, run.technique.script, plan.seconds, logged_part).await?;
    Ok(measured.map(|(answers, work)| {
        let share = |count: u64| answers.per_second * count as f64 / answers.acknowledged as f64;
        let round = Round {
            per_second: share(work.done),
            turned_away_per_second: share(work.turned_away),
            done: work.done,
            turned_away: work.turned_away,
            latency: answers.latencies.quantiles(),
        };
        Measured { round, latencies: answers.latencies }
    }))
}

/// Runs one script for some seconds and compares the rows with its answers.
async fn part(
    plan: &Plan,
    testbed: &mut Testbed,
    run: Run,
    script: &str,
    seconds: u32,
    logged_part: f64,
) -> Result<Result<(Answers, Work), Failure>, Error> {
    let through = run.technique.through;
    let endpoint = match testbed.endpoint(through, run.clients) {
        Ok(endpoint) => endpoint,
        Err(reason) => return Ok(Err(Failure(reason))),
    };
    let load = Load {
        endpoint,
        script,
        protocol: testbed.protocol(through, run.technique.protocol),
        clients: run.clients,
        seconds,
        rate: run.rate,
        rows: plan.rows(run.scenario),
        logged_part,
    };
    let before = testbed.control.read(run.scenario).await?;
    let answers = match testbed.pgbench.run(&load).await? {
        Ok(answers) => answers,
        Err(failure) => return Ok(Err(testbed.explain(through, failure))),
    };
    let after = testbed.control.read(run.scenario).await?;
    Ok(match judge(run.technique.worth, answers.acknowledged, before, after) {
        Ok(work) => Ok((answers, work)),
        Err(disagreement) => Err(Failure(disagreement)),
    })
}
