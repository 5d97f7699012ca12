//! One run of one technique: rows restored, warm-up, load, check. It is independent of other runs.

use crate::control::Snapshot;
use crate::doctor;
use crate::doctor_report::Examined;
use crate::endpoint::Endpoint;
use crate::error::Error;
use crate::gateway::Footprint;
use crate::load::{Answers, Failure, NoFigure, Part, Run};
use crate::peers::Job;
use crate::plan::Plan;
use crate::results::Round;
use crate::scenario::{Ageing, LoadBy, Peer, Through, Worth};
use crate::statistics::Latencies;
use crate::testbed::Testbed;
use crate::verdict::{Acknowledgements, Work, judge};
use crate::watch::Watch;
use crate::{applications, connections, fresh, http, novelty, pgbench, second_load, statements, workers};

/// A run whose check passed.
#[derive(Debug)]
pub struct Measured {
    /// The figures of the run.
    pub round: Round,
    /// The latencies of its requests.
    pub latencies: Latencies,
}

/// pgbench writes a line for each logged transaction, which takes about 0.2 µs: this number per second takes 0.2 % of a
/// core.
const LOGGED_PER_SECOND: f64 = 10_000.0;

/// Makes a run and checks it.
pub async fn measure(plan: &Plan, testbed: &mut Testbed, run: Run) -> Result<Measured, NoFigure> {
    // If a failed run has left something, such as a lock, only this run has no figure.
    let number = testbed.before_run(plan, run.scenario, run.technique, run.clients).await;
    let number = number.map_err(|error| Failure(error.to_string()))?;

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
    let warmed_up = checked(plan, testbed, &warm_up).await.map_err(|failure| failure.of("warm-up"))?;
    let part = Part {
        ages: false,
        script: run.technique.script.measured,
        seconds: plan.seconds,
        rate: run.rate,
        warmed_up: Some(warmed_up.answers.per_second),
        ..warm_up
    };
    let watch = if run.technique.is_watched() { Some(Watch::start(testbed.server()).await?) } else { None };
    let url = testbed.upstream_url.clone();
    let examined = async {
        match run.scenario.is_examined(run.technique) {
            true => doctor::examine(plan, &url, &part).await.map(Some),
            false => Ok(None),
        }
    };
    let before = footprint(testbed, run).await;
    let (loaded, examined) = tokio::join!(checked(plan, testbed, &part), examined);
    let (loaded, examined) = (loaded?, examined?);
    let gateway = before.zip(footprint(testbed, run).await).map(|(before, after)| {
        novelty::gateway_work(before, after, loaded.answers.acknowledged, loaded.answers.beside)
    });
    let server = match watch {
        Some(watch) => Some(watch.finish(loaded.work.done).await?),
        None => None,
    };
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
async fn checked(plan: &Plan, testbed: &mut Testbed, part: &Part) -> Result<Loaded, NoFigure> {
    let Run { scenario, technique, .. } = part.run;
    if let LoadBy::Peer(peer) = part.load_by() {
        testbed.peers.enqueue(&job(testbed, part, peer)?).await?;
    }
    let unreadable = |error: Error| Failure(format!("its check failed to run: {error}"));
    let before = testbed.read(scenario, technique).await.map_err(unreadable)?;
    let wal_began = testbed.control.wal_position().await?;
    let answers = match load(plan, testbed, part).await {
        Err(NoFigure::Failed(failure)) => return Err(testbed.explain(technique.through, failure).into()),
        answers => answers?,
    };
    let wal_bytes = testbed.control.wal_position().await?.saturating_sub(wal_began);
    if let Some(payments) = &testbed.payments {
        payments.settle().await?;
    }
    let after = testbed.read(scenario, technique).await.map_err(unreadable)?;
    let acknowledgements = Acknowledgements { acknowledged: answers.acknowledged, beside: answers.beside };
    let work = judge(technique.worth, acknowledgements, before, after).map_err(Failure)?;
    Ok(Loaded { answers, work, wal_bytes })
}

/// The job of a program in `peers/`, which processes the orders that it enqueued before.
fn job<'a>(testbed: &'a Testbed, part: &'a Part, peer: Peer) -> Result<Job<'a>, Failure> {
    let endpoint = testbed.endpoint(part.run.technique.through, part.run.clients)?;
    Ok(Job { peer, part, server: testbed.server(), endpoint })
}

/// Makes the load of a part.
async fn load(plan: &Plan, testbed: &mut Testbed, part: &Part) -> Result<Answers, NoFigure> {
    let Run { technique, clients, .. } = part.run;
    let endpoint = || testbed.endpoint(technique.through, clients);
    let answers = match part.load_by() {
        LoadBy::Pgbench => return by_pgbench(testbed, endpoint()?, part).await,
        LoadBy::Fleet { own_gateways } => return by_fleet(testbed, own_gateways, part).await,
        LoadBy::RedisBenchmark => return testbed.redis()?.reserve(clients, part.requests()).await,
        LoadBy::FreshConnections => return fresh::run(plan, testbed, part).await,
        LoadBy::Payments { gateway_dies } => return pay(testbed, part, gateway_dies).await,
        LoadBy::Applications(batching) => applications::run(endpoint()?, batching, part).await,
        LoadBy::Workers(steps) => workers::run(endpoint()?, steps, part).await,
        LoadBy::Peer(peer) => testbed.peers.work(&job(testbed, part, peer)?).await,
        LoadBy::Connections => connections::run(endpoint()?, part).await,
        LoadBy::Statements(text) => statements::run(endpoint()?, text, part).await,
        LoadBy::FirstSecond { change } => {
            statements::run_after_pause(endpoint()?, testbed.server(), change, part).await
        }
        LoadBy::Http => http::run(&testbed.http_addresses()?, http::Commands::of(part), part).await,
    };
    Ok(answers?)
}

/// Runs pgbench, and a second load at the same time if the technique has one.
async fn by_pgbench(testbed: &Testbed, endpoint: &Endpoint, part: &Part) -> Result<Answers, NoFigure> {
    let Run { technique, clients, .. } = part.run;
    let logged_part =
        |per_second: f64| if part.quick { 1.0 } else { (LOGGED_PER_SECOND / per_second).min(1.0) };
    let load = pgbench::Load {
        endpoint,
        script: part.script,
        protocol: testbed.protocol(technique.through, part.protocol()),
        clients,
        rate: part.rate,
        logged_part: part.warmed_up.map_or(0.0, logged_part),
        part,
    };
    let Some(second) = technique.beside else { return testbed.pgbench.run(&load).await };
    second_load::run(&testbed.pgbench, second, &load).await
}

/// Runs several pgbenches at the same time, each with its share of the clients and an address of its own.
async fn by_fleet(testbed: &Testbed, own_gateways: bool, part: &Part) -> Result<Answers, NoFigure> {
    let endpoints = testbed.fleet(own_gateways)?;
    let logged_part =
        |per_second: f64| if part.quick { 1.0 } else { (LOGGED_PER_SECOND / per_second).min(1.0) };
    let load = |number: usize| pgbench::Load {
        endpoint: endpoints[number],
        script: part.script,
        protocol: part.protocol(),
        clients: (part.run.clients + number as u32) / endpoints.len() as u32,
        rate: None,
        logged_part: part.warmed_up.map_or(0.0, logged_part),
        part,
    };
    let loads = [0, 1, 2].map(load);
    let [first, second, third] = &loads;
    let pgbench = &testbed.pgbench;
    let (first, second, third) = tokio::join!(pgbench.run(first), pgbench.run(second), pgbench.run(third));
    let mut all = first?;
    for answers in [second?, third?] {
        all.acknowledged += answers.acknowledged;
        all.per_second += answers.per_second;
        all.latencies.add(&answers.latencies);
    }
    Ok(all)
}

/// Payments over HTTP. All payment gateways survive the warm-up. After it, one of them may be killed in the first third.
async fn pay(testbed: &mut Testbed, part: &Part, gateway_dies: bool) -> Result<Answers, NoFigure> {
    let Some(payments) = &mut testbed.payments else {
        return Err(Failure("the payment service is not running".into()).into());
    };
    let addresses = [payments.address];
    let orders = http::Orders::new(format!("{}-{}", part.number, !part.is_warm_up()));
    let load = http::run(&addresses, orders, part);
    let death = async {
        if !part.is_warm_up() && gateway_dies {
            let third = part.lasting() / 3;
            tokio::time::sleep(third).await;
            return payments.kill_a_gateway(third).await;
        }
        Ok(())
    };
    let (answers, died) = tokio::join!(load, death);
    died?;
    Ok(answers?)
}
