//! The table of the cost of new traffic in all scenarios, before their sections.

use super::super::numbers::{milliseconds, whole};
use crate::novelty::{QUESTIONS_MAX, SHARE_MIN};
use crate::results::{GatewayWork, Novelty, Report};
use std::fmt::{Error, Write};

/// Writes the table, if the report has such scenarios.
pub(super) fn write_novelties(text: &mut String, report: &Report) -> Result<(), Error> {
    let novelties: Vec<(&str, &Novelty)> = report
        .scenarios
        .iter()
        .flat_map(|scenario| scenario.novelties.iter().map(|novelty| (scenario.name, novelty)))
        .collect();
    if novelties.is_empty() {
        return Ok(());
    }
    let within = novelties.iter().filter(|(_, novelty)| novelty.is_within).count();
    writeln!(text, "## Traffic that is new all the time\n")?;
    writeln!(
        text,
        "A share is (`hotrow-new` / `hotrow`) / (`direct-new` / `direct`): the part of its rate that Hotrow keeps, divided by the \
         part that the server keeps. It is computed for each round, and the median counts. A scenario is within the \
         bounds if its share is {SHARE_MIN} or more and there are at most {QUESTIONS_MAX} catalog questions per statement, or if \
         its first executions take at most one round trip longer than directly. {within} of {} workloads are.\n",
        novelties.len()
    )?;
    writeln!(
        text,
        "| scenario | clients | share | lowest to highest | within the bounds | `hotrow-new` / `direct-new` | gateway CPU time per statement, without and with | catalog questions per statement | memory |"
    )?;
    writeln!(text, "|---|---:|---:|---:|:-:|---:|---:|---:|---:|")?;
    for (scenario, novelty) in &novelties {
        let unknown = || "-".to_owned();
        writeln!(
            text,
            "| {scenario} | {} | {:.2} | {:.2} to {:.2} | {} | {:.2} | {} | {} | {} |",
            whole(novelty.clients.into()),
            novelty.share.median,
            novelty.share.min,
            novelty.share.max,
            if novelty.is_within { "yes" } else { "no" },
            novelty.through_by_direct,
            novelty.gateway_without.zip(novelty.gateway).map_or_else(unknown, cpu),
            novelty.gateway.as_ref().map_or_else(unknown, questions),
            novelty.gateway.as_ref().map_or_else(unknown, memory),
        )?;
    }
    writeln!(
        text,
        "\nCatalog questions are rounds of questions of the gateway to the server, in the runs of `hotrow-new` after their \
         warm-ups. The memory is the gateway's resident memory before the first of these runs and after the last.\n"
    )?;
    for (scenario, first_use) in
        novelties.iter().filter_map(|(name, novelty)| Some((name, novelty.first_use?)))
    {
        let added_us = first_use.hotrow_us.saturating_sub(first_use.direct_us);
        writeln!(
            text,
            "`{scenario}`: a first execution takes {} directly and {} through Hotrow, {} more. A statement that is passed through \
             takes {} (medians).\n",
            milliseconds(first_use.direct_us),
            milliseconds(first_use.hotrow_us),
            milliseconds(added_us),
            milliseconds(first_use.round_trip_us)
        )?;
    }
    Ok(())
}

fn questions(work: &GatewayWork) -> String {
    let per_statement = format!("{:.4}", work.questions_per_statement());
    match work.beside {
        0 => per_statement,
        beside => {
            format!(
                "{per_statement} ({:.2} per statement beside them)",
                work.questions as f64 / beside as f64
            )
        }
    }
}

fn cpu((without, with): (GatewayWork, GatewayWork)) -> String {
    format!("{:.0} and {:.0} µs", without.cpu_us_per_statement(), with.cpu_us_per_statement())
}

fn memory(work: &GatewayWork) -> String {
    let mebibytes = |bytes: u64| whole(bytes as f64 / f64::from(1 << 20));
    format!("{} to {} MiB", mebibytes(work.bytes_before), mebibytes(work.bytes_after))
}

#[cfg(test)]
mod tests {
    use super::super::super::sample;
    use super::super::render;
    use crate::results::{FirstUse, GatewayWork, Novelty};
    use crate::statistics::Spread;

    #[test]
    fn shares_questions_and_memory_are_listed() {
        let mut report = sample::report();
        assert!(!render(&report).contains("Traffic that is new"));
        let gateway = |beside, cpu_us| GatewayWork {
            questions: 50,
            statements: 10_000,
            beside,
            cpu_us,
            bytes_before: 10 << 20,
            bytes_after: 12 << 20,
        };
        let novelty = |beside: u64| Novelty {
            clients: 8,
            share: Spread { median: 0.954, min: 0.9, max: 1.0 },
            through_by_direct: 2.5,
            is_within: beside == 0,
            first_use: (beside > 0).then_some(FirstUse {
                direct_us: 500,
                hotrow_us: 1_250,
                round_trip_us: 300,
            }),
            gateway_without: Some(gateway(0, 300_000)),
            gateway: Some(gateway(beside, 450_000)),
        };
        report.scenarios[0].novelties = vec![novelty(0), novelty(100)];
        let text = render(&report);
        for expected in [
            "1 of 2 workloads are.",
            "| hot-row | 8 | 0.95 | 0.90 to 1.00 | yes | 2.50 | 30 and 45 µs | 0.0050 | 10 to 12 MiB |",
            "| no | 2.50 | 30 and 45 µs | 0.0050 (0.50 per statement beside them) |",
            "`hot-row`: a first execution takes 0.50 ms directly and 1.25 ms through Hotrow, 0.75 ms more.",
        ] {
            assert!(text.contains(expected), "{expected} is missing:\n{text}");
        }
    }
}
