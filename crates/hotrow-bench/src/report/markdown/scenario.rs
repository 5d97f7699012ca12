//! One scenario of the Markdown report: its techniques, its tables, and techniques without figures.

use super::super::numbers::{bytes, counted, milliseconds, times, whole};
use crate::results::{CellOutcome, Figures, ScenarioResult, TechniqueResult};
use crate::scenario::Figure;
use crate::statistics::{Quantiles, Spread};
use crate::watch::ServerWork;
use std::collections::BTreeMap;
use std::fmt::{Error, Write};

/// Writes the scenario's section.
pub(super) fn write_scenario(text: &mut String, scenario: &ScenarioResult) -> Result<(), Error> {
    let rows = counted(scenario.rows, "row");
    writeln!(text, "## {}\n\n{}. The table held {rows}.\n", scenario.name, scenario.shows)?;
    for technique in &scenario.techniques {
        writeln!(text, "- `{}`: {}", technique.name, technique.about)?;
    }
    writeln!(text)?;
    if scenario.figure == Figure::Throughput && scenario.clients().len() > 1 {
        write_overview(text, scenario)?;
    }
    for clients in scenario.clients() {
        writeln!(text, "### {}\n", counted(clients, "client"))?;
        match scenario.figure {
            Figure::Throughput => write_throughput(text, scenario, clients)?,
            Figure::Latency => write_latency(text, scenario, clients)?,
        }
        write_server_work(text, scenario, clients)?;
        write_missing(text, scenario, clients)?;
    }
    for remark in &scenario.remarks {
        writeln!(text, "{remark}\n")?;
    }
    Ok(())
}

/// Throughput for all numbers of clients, before the tables for each number.
fn write_overview(text: &mut String, scenario: &ScenarioResult) -> Result<(), Error> {
    let clients = scenario.clients();
    let titles: Vec<_> = clients.iter().map(|clients| counted(*clients, "client")).collect();
    writeln!(text, "| done per second with | {} |", titles.join(" | "))?;
    writeln!(text, "|---|{}", "---:|".repeat(clients.len()))?;
    for technique in &scenario.techniques {
        let done =
            |clients: &u32| technique.figures(*clients).map(|figures| whole(figures.per_second.median));
        let row: Vec<_> =
            clients.iter().map(|clients| done(clients).unwrap_or_else(|| "-".to_owned())).collect();
        writeln!(text, "| `{}` | {} |", technique.name, row.join(" | "))?;
    }
    writeln!(text)
}

fn write_throughput(text: &mut String, scenario: &ScenarioResult, clients: u32) -> Result<(), Error> {
    let turned_away =
        measured(scenario, clients).any(|(_, figures)| figures.turned_away_per_second.max > 0.0);
    let (title, rule) = if turned_away { (" rejected per second |", "---:|") } else { ("", "") };
    writeln!(
        text,
        "| technique | done per second | lowest to highest |{title} compared | p50 | p99 | WAL per unit |"
    )?;
    writeln!(text, "|---|---:|---:|{rule}---:|---:|---:|---:|")?;
    for (technique, figures) in measured(scenario, clients) {
        write!(
            text,
            "| `{}` | {} | {} |",
            technique.name,
            whole(figures.per_second.median),
            range(figures.per_second)
        )?;
        if turned_away {
            write!(text, " {} |", whole(figures.turned_away_per_second.median))?;
        }
        let compared = match scenario.ratio(technique, clients) {
            Some(_) if technique.against == technique.name => "1".to_owned(),
            Some(ratio) => format!("{} `{}`", times(ratio), technique.against),
            None => "-".to_owned(),
        };
        let [p50, p99] = latencies(figures, [|latency| latency.p50_us, |latency| latency.p99_us]);
        let log = bytes(figures.wal_bytes_each.median);
        writeln!(text, " {compared} | {p50} | {p99} | {log} |")?;
    }
    writeln!(text)?;
    write_untimed(text, scenario, clients)
}

/// The cost of a unit of work for the server, if it was watched: medians of the rounds, waits of all rounds together.
fn write_server_work(text: &mut String, scenario: &ScenarioResult, clients: u32) -> Result<(), Error> {
    let watched: Vec<_> = measured(scenario, clients)
        .map(|(technique, figures)| {
            (technique, figures.rounds.iter().filter_map(|round| round.server.as_ref()))
        })
        .map(|(technique, rounds)| (technique, rounds.collect::<Vec<_>>()))
        .filter(|(_, rounds)| !rounds.is_empty())
        .collect();
    if watched.is_empty() {
        return Ok(());
    }
    writeln!(
        text,
        "| technique | commits per unit | WAL flushes per unit | time per flush | walsender time per unit | waits of busy sessions |"
    )?;
    writeln!(text, "|---|---:|---:|---:|---:|---|")?;
    for (technique, rounds) in watched {
        let median = |figure: fn(&ServerWork) -> Option<f64>| {
            let figures: Vec<_> = rounds.iter().filter_map(|work| figure(work)).collect();
            Spread::of(&figures).map(|spread| spread.median)
        };
        let commits = median(|work| Some(work.commits_per_unit)).unwrap_or_default();
        let flushes = median(|work| Some(work.flushes_per_unit)).unwrap_or_default();
        let microseconds =
            |figure: Option<f64>| figure.map_or("-".to_owned(), |figure| format!("{} µs", whole(figure)));
        let flush = microseconds(median(|work| work.flush_us));
        let walsender = microseconds(median(|work| work.walsender_us_per_unit));
        let waits = waits(&rounds);
        let name = technique.name;
        writeln!(text, "| `{name}` | {commits:.2} | {flushes:.3} | {flush} | {walsender} | {waits} |")?;
    }
    writeln!(text)
}

/// The waits by frequency; rare ones are omitted.
fn waits(rounds: &[&ServerWork]) -> String {
    const AT_LEAST: f64 = 0.02;
    let mut seen = BTreeMap::<&str, u64>::new();
    for (name, sessions) in rounds.iter().flat_map(|work| &work.waits) {
        *seen.entry(name).or_default() += sessions;
    }
    let all: u64 = seen.values().sum();
    let mut shares: Vec<_> =
        seen.into_iter().map(|(name, sessions)| (sessions as f64 / all as f64, name)).collect();
    shares.sort_by(|one, other| other.0.total_cmp(&one.0));
    let shown = shares.iter().filter(|(share, _)| *share >= AT_LEAST);
    shown.map(|(share, name)| format!("{name} {:.0} %", share * 100.0)).collect::<Vec<_>>().join(", ")
}

fn write_untimed(text: &mut String, scenario: &ScenarioResult, clients: u32) -> Result<(), Error> {
    let untimed = |figures: &Figures| figures.latency.is_some_and(|latency| latency.p50_us == 0);
    let names: Vec<_> = measured(scenario, clients)
        .filter(|(_, figures)| untimed(figures))
        .map(|(technique, _)| format!("`{}`", technique.name))
        .collect();
    if names.is_empty() {
        return Ok(());
    }
    writeln!(
        text,
        "{}: more than half of the answers arrived before pgbench's `send` had returned, before pgbench could measure \
         them.\n",
        names.join(", ")
    )
}

fn write_latency(text: &mut String, scenario: &ScenarioResult, clients: u32) -> Result<(), Error> {
    writeln!(text, "| technique | due per second | done per second | p50 | p90 | p99 | p99.9 | longest |")?;
    writeln!(text, "|---|---:|---:|---:|---:|---:|---:|---:|")?;
    for (technique, figures) in measured(scenario, clients) {
        let due = figures.due_per_second.map_or("-".to_owned(), |due| whole(due.into()));
        let done = whole(figures.per_second.median);
        let [p50, p90, p99, p999, max] = latencies(
            figures,
            [
                |latency| latency.p50_us,
                |latency| latency.p90_us,
                |latency| latency.p99_us,
                |latency| latency.p999_us,
                |latency| latency.max_us,
            ],
        );
        writeln!(text, "| `{}` | {due} | {done} | {p50} | {p90} | {p99} | {p999} | {max} |", technique.name)?;
    }
    writeln!(text)?;
    let fell_behind = |figures: &Figures| is_behind(figures, figures.per_second.median);
    for (technique, _) in measured(scenario, clients).filter(|(_, figures)| fell_behind(figures)) {
        writeln!(
            text,
            "`{}` did not reach the rate that was due: its latencies grow with the length of the run.\n",
            technique.name
        )?;
    }
    write_pace(text, scenario, clients)
}

/// The rate and lateness of loads that measure them, with the worst of the rounds.
fn write_pace(text: &mut String, scenario: &ScenarioResult, clients: u32) -> Result<(), Error> {
    const NOT_TO_BE_NEGLECTED_US: u64 = 5_000;
    for (technique, figures) in measured(scenario, clients) {
        let paces: Vec<_> = figures.rounds.iter().filter_map(|round| round.pace).collect();
        let Some(arrived) = Spread::of(&paces.iter().map(|pace| pace.arrived_per_second).collect::<Vec<_>>())
        else {
            continue;
        };
        let late_us = paces.iter().map(|pace| pace.late_p99_us).max().unwrap_or_default();
        let refused: u64 = paces.iter().map(|pace| pace.refused).sum();
        writeln!(
            text,
            "`{}`: the load made {} requests per second, 99 % of them at most {} after they were due. {} were rejected.\n",
            technique.name,
            range(arrived),
            milliseconds(late_us),
            whole(refused as f64)
        )?;
        if late_us > NOT_TO_BE_NEGLECTED_US || is_behind(figures, arrived.min) {
            writeln!(
                text,
                "**The load of `{}` did not keep its rate: the latencies include delays of the load.**\n",
                technique.name
            )?;
        }
    }
    Ok(())
}

/// Random arrivals cause differences of a few per cent.
fn is_behind(figures: &Figures, per_second: f64) -> bool {
    const NOT_BY_CHANCE: f64 = 0.9;
    figures.due_per_second.is_some_and(|due| per_second < NOT_BY_CHANCE * f64::from(due))
}

/// The techniques without a figure, and why. A table that omits them would look complete.
fn write_missing(text: &mut String, scenario: &ScenarioResult, clients: u32) -> Result<(), Error> {
    for technique in &scenario.techniques {
        for cell in technique.cells.iter().filter(|cell| cell.clients == clients) {
            match &cell.outcome {
                CellOutcome::Failed { reason } => {
                    writeln!(
                        text,
                        "**There is no figure for `{}`, because its check failed: {}**\n",
                        technique.name,
                        one_line(reason)
                    )?;
                }
                CellOutcome::Skipped { reason } => {
                    writeln!(text, "`{}` was not run: {}\n", technique.name, one_line(reason))?;
                }
                CellOutcome::Measured(_) => {}
            }
        }
    }
    Ok(())
}

fn measured(scenario: &ScenarioResult, clients: u32) -> impl Iterator<Item = (&TechniqueResult, &Figures)> {
    scenario.techniques.iter().filter_map(move |technique| Some((technique, technique.figures(clients)?)))
}

fn latencies<const N: usize>(figures: &Figures, wanted: [fn(&Quantiles) -> u64; N]) -> [String; N] {
    wanted.map(|quantile| match figures.latency.as_ref().map(quantile) {
        None | Some(0) => "-".to_owned(),
        Some(microseconds) => milliseconds(microseconds),
    })
}

fn range(spread: Spread) -> String {
    format!("{} to {}", whole(spread.min), whole(spread.max))
}

fn one_line(reason: &str) -> String {
    reason.lines().map(str::trim).collect::<Vec<_>>().join(" / ")
}
