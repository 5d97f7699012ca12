//! One run of one technique: rows restored, warm-up, load, check. It is independent of other runs.

use crate::control::Snapshot;
use crate::cost::Cost;
use crate::doctor;
use crate::doctor_report::Examined;
use crate::endpoint::Endpoint;
use crate::error::Error;
use crate::gateway::Footprint;
use crate::load::{Answers, Failure, NoFigure, Part, Run};
use crate::plan::Plan;
use crate::results::Round;
use crate::scenario::{Ageing, LoadBy, Through, Worth};
use crate::statistics::Latencies;
use crate::testbed::{Running, Testbed};
use crate::verdict::{Acknowledgements, Work, judge};
use crate::{novelty, pgbench, second_load, statements, workers};

/// A run whose check passed.
#[derive(Debug)]
pub struct Measured {
    /// The figures of the run.
    pub round: Round,
    /// The latencies of its requests.
    pub latencies: Latencies,
}

/// Makes a run and checks it.
pub async fn measure(plan: &Plan, testbed: &mut Testbed, run: Run) -> Result<Measured, NoFigure> {
    // If a failed run has left something, such as a lock, only this run has no figure.
    let started = testbed.before_run(run).await;
    let (number, mut other) = started.map_err(|error| Failure(error.to_string()))?;
    let measured = measure_started(plan, testbed, run, number, &mut other).await;
    let stopped = match other {
        Some(other) => other.stop().await,
        None => Ok(()),
    };
    let measured = measured?;
    stopped?;
    Ok(measured)
}

async fn measure_started(
    plan: &Plan,
    testbed: &mut Testbed,
    run: Run,
    number: u32,
    other: &mut Running,
) -> Result<Measured, NoFigure> {
    let ageing = run.technique.ageing;
    let snapshot = match ageing {
        Some(_) => Some(Snapshot::hold(testbed.server()).await?),
        None => None,
    };
    let warm_up = Part {
        ages: ageing.is_some(),
        script: ageing.map_or(run.technique.script.warm_up, |ageing| ageing.script),
        seconds: ageing.map_or(plan.warm_up_seconds, |ageing| plan.ageing_seconds(ageing.seconds)),
        rate: ageing.map_or(run.rate, |Ageing { rate, .. }| Some(plan.rate(rate))),
        quick: plan.quick,
        rows: plan.rows(run.scenario),
        run,
        number,
        warmed_up: None,
    };
    let warmed_up = checked(testbed, other, &warm_up).await.map_err(|failure| failure.of("warm-up"))?;
    let part = Part {
        ages: false,
        script: run.technique.script.measured,
        seconds: plan.seconds,
        rate: run.rate,
        warmed_up: Some(warmed_up.answers.per_second),
        ..warm_up
    };
    let cost = Cost::start(testbed, run, other).await?;
    let url = testbed.upstream_url.clone();
    let examined = async {
        match run.scenario.is_examined(run.technique) {
            true => doctor::examine(plan, &url, &part).await.map(Some),
            false => Ok(None),
        }
    };
    let before = footprint(testbed, run).await;
    let (loaded, examined) = tokio::join!(checked(testbed, other, &part), examined);
    let (loaded, examined) = (loaded?, examined?);
    let gateway = before.zip(footprint(testbed, run).await).map(|(before, after)| {
        novelty::gateway_work(before, after, loaded.answers.acknowledged, loaded.answers.beside)
    });
    let server = cost.finish(other, loaded.work.done).await?;
    if let Some(flush_us) = server.as_ref().and_then(|work| work.flush_us)
        && flush_us < f64::from(run.technique.disk.delay_us)
    {
        return Err(Failure(format!("a flush took only {flush_us:.0} µs: it was not delayed")).into());
    }
    if let Some(snapshot) = snapshot {
        let lost = |lost| Failure(format!("the snapshot was not held to the end: {lost}"));
        snapshot.release().await.map_err(lost)?;
    }
    let measured = loaded.measured(run, examined);
    Ok(Measured { round: Round { server, gateway, ..measured.round }, ..measured })
}

/// The footprint of the gateway, if the run is about what is new to it.
async fn footprint(testbed: &Testbed, run: Run) -> Option<Footprint> {
    let is_wanted = novelty::is_about(run.scenario) && run.technique.through == Through::Hotrow;
    if is_wanted { testbed.footprint().await } else { None }
}

/// A part that was made and checked.
struct Loaded {
    answers: Answers,
    work: Work,
    wal_bytes: u64,
}

impl Loaded {
    fn measured(self, run: Run, prediction: Option<Examined>) -> Measured {
        let Self { answers, work, wal_bytes } = self;
        let share = |count: u64| answers.per_second * count as f64 / answers.acknowledged as f64;
        // The rate of an open loop is one of requests, so its results are counted in requests too.
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
            server: None,
            gateway: None,
            prediction,
        };
        Measured { round, latencies: answers.latencies }
    }
}

/// Makes a part and compares the rows with its answers.
async fn checked(testbed: &mut Testbed, other: &mut Running, part: &Part) -> Result<Loaded, NoFigure> {
    let Run { scenario, technique, .. } = part.run;
    if let Some(other) = other {
        other.prepare(testbed, part).await?;
    }
    let unreadable = |error: Error| Failure(format!("its check failed to run: {error}"));
    let before = testbed.read(scenario, other).await.map_err(unreadable)?;
    let wal_began = testbed.control.wal_position().await?;
    let answers = match load(testbed, other, part).await {
        Err(NoFigure::Failed(failure)) => return Err(testbed.explain(technique, other, failure).into()),
        answers => answers?,
    };
    let wal_bytes = testbed.control.wal_position().await?.saturating_sub(wal_began);
    if let Some(other) = other {
        other.settle().await?;
    }
    let after = testbed.read(scenario, other).await.map_err(unreadable)?;
    let acknowledgements = Acknowledgements { acknowledged: answers.acknowledged, beside: answers.beside };
    let work = judge(technique.worth, acknowledgements, before, after).map_err(Failure)?;
    Ok(Loaded { answers, work, wal_bytes })
}

/// Makes the load of a part.
async fn load(testbed: &Testbed, other: &mut Running, part: &Part) -> Result<Answers, NoFigure> {
    let Run { technique, clients, .. } = part.run;
    if let (LoadBy::Other(_), Some(other)) = (part.load_by(), other) {
        return other.run(testbed, part).await;
    }
    let endpoint = testbed.endpoint(technique.through, clients)?;
    let answers = match part.load_by() {
        LoadBy::Pgbench => return by_pgbench(testbed, endpoint, part).await,
        LoadBy::Workers(steps) => workers::run(endpoint, steps, part).await,
        LoadBy::Statements(text) => statements::run(endpoint, text, part).await,
        LoadBy::FirstSecond { change } => {
            statements::run_after_pause(endpoint, testbed.server(), change, part).await
        }
        LoadBy::Other(_) => Err(Failure("its load was not started".into())),
    };
    Ok(answers?)
}

/// Runs pgbench, and a second load at the same time if the technique has one.
async fn by_pgbench(testbed: &Testbed, endpoint: &Endpoint, part: &Part) -> Result<Answers, NoFigure> {
    let load = pgbench::Load::of(part, endpoint, part.run.clients);
    let Some(second) = part.run.technique.beside else { return testbed.pgbench.run(&load).await };
    second_load::run(&testbed.pgbench, second, &load).await
}
