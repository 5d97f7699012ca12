//! The report as Markdown: tables of the compared techniques, the machine and the settings.

mod gains;
mod novelties;
mod scenario;

use super::numbers::counted;
use crate::results::Report;
use gains::write_gains;
use novelties::write_novelties;
use scenario::write_scenario;
use std::fmt::{Error, Write};

/// The text of report.md.
pub(super) fn render(report: &Report) -> String {
    let mut text = String::new();
    write_report(&mut text, report).expect("writing to a string cannot fail");
    text
}

fn write_report(text: &mut String, report: &Report) -> Result<(), Error> {
    writeln!(text, "# Hotrow {}: benchmark of {}\n", report.hotrow, report.date)?;
    if report.quick {
        writeln!(text, "**A quick run: it shows that everything works. Its figures are not meaningful.**\n")?;
    }
    write_doubts(text, report)?;
    for setting in report.server.not_durable() {
        writeln!(
            text,
            "**Not durable: this server runs with {} = {}. Its figures cannot be compared with those of a durable \
             server.**\n",
            setting.name, setting.value
        )?;
    }
    if !report.quick {
        writeln!(
            text,
            "Each figure is the median of {} of {} s each, after {} s of warm-up.",
            counted(report.rounds, "round"),
            report.seconds,
            report.warm_up_seconds
        )?;
    }
    writeln!(
        text,
        "The techniques run in turn on the same server. After each run, the rows were compared with the clients' answers. \
         [Chart](plot.svg), [all numbers](report.json).\n"
    )?;
    write_gains(text, report)?;
    write_novelties(text, report)?;
    for scenario in &report.scenarios {
        write_scenario(text, scenario)?;
    }
    write_surroundings(text, report)
}

/// Circumstances that make the figures less reliable.
fn write_doubts(text: &mut String, report: &Report) -> Result<(), Error> {
    let machine = &report.machine;
    if let Some(load) = machine.load_average.filter(|load| *load > machine.cores as f64) {
        writeln!(
            text,
            "**A busy machine: the load average was {load:.2} at the start, with {}. Other programs took part of the \
             processors, so the figures are too low. Repeat the run on an idle machine.**\n",
            counted(machine.cores as u32, "core")
        )?;
    }
    if report.rounds == 1 && !report.quick {
        writeln!(
            text,
            "**One round: the figures do not show how much they vary. Repeat the run with --rounds 3.**\n"
        )?;
    }
    Ok(())
}

fn write_surroundings(text: &mut String, report: &Report) -> Result<(), Error> {
    let machine = &report.machine;
    writeln!(text, "## Machine, server and settings\n\n| | |\n|---|---|")?;
    writeln!(text, "| processor | {}, {} |", machine.processor, counted(machine.cores as u32, "core"))?;
    if let Some(bytes) = machine.memory_bytes {
        writeln!(text, "| memory | {:.1} GiB |", bytes as f64 / f64::from(1 << 30))?;
    }
    writeln!(text, "| system | {}, {} |", machine.system, machine.kernel)?;
    if let Some(load) = machine.load_average {
        writeln!(text, "| load average at the start | {load:.2} |")?;
    }
    let kind = if report.server.private { "private to this benchmark" } else { "named with --upstream" };
    writeln!(text, "| PostgreSQL | {}, {kind} |", report.server.version)?;
    if let Some(flush) = report.server.flush {
        writeln!(
            text,
            "| flush of 8 kB (`fdatasync`) | p50 {:.2} ms, p99 {:.2} ms |",
            flush.p50_us as f64 / 1000.0,
            flush.p99_us as f64 / 1000.0
        )?;
    }
    writeln!(text, "| load programs | {} |", report.tools.join(", "))?;
    writeln!(text, "| Hotrow | {} |", report.hotrow)?;
    for setting in &report.server.settings {
        writeln!(text, "| `{}` | {} |", setting.name, setting.value)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::render;
    use crate::load::Pace;
    use crate::results::{CellOutcome, Round};

    fn line(text: &str, start: &str) -> String {
        let found: Vec<_> = text.lines().filter(|line| line.starts_with(start)).collect();
        found.last().unwrap_or_else(|| panic!("no line begins with {start}:\n{text}")).to_string()
    }

    #[test]
    fn a_row_has_median_range_and_comparison() {
        let text = render(&sample::report());
        let details = text.split("### 64 clients").nth(1).unwrap();
        let hot_row = details.split("## open-loop").next().unwrap();
        assert_eq!(
            line(hot_row, "| `hotrow`"),
            "| `hotrow` | 75,335 | 67,802 to 82,868 | 0 | 26.5× `direct` | 0.88 ms | 1.46 ms | 312 B |"
        );
        assert_eq!(
            line(hot_row, "| `direct`"),
            "| `direct` | 2,844 | 2,560 to 3,128 | 0 | 1 | 0.88 ms | 1.46 ms | 312 B |"
        );
        assert!(line(hot_row, "| `try-lock`").contains("| 40,000 |"));
        assert_eq!(line(&text, "| `select-1` | 9,000 | -"), "| `select-1` | 9,000 | - |");
    }

    #[test]
    fn techniques_without_figures_are_named_with_the_reason() {
        let text = render(&sample::report());
        assert!(text.contains(
            "**There is no figure for `liar`, because its check failed: 10 sales were acknowledged, but the rows show 9**"
        ));
        assert!(text.contains("`select-1` was not run: the server has room for 50 of 64 connections"));
        assert_eq!(line(&text, "| `liar` | 1 | -"), "| `liar` | 1 | - |");
    }

    #[test]
    fn latencies_that_pgbench_could_not_measure_are_omitted_with_the_reason() {
        let text = render(&sample::report());
        assert_eq!(
            line(&text, "| `select-1` | 9,000 | 8"),
            "| `select-1` | 9,000 | 8,100 to 9,900 | 1.33× `direct` | - | 1.46 ms | 312 B |"
        );
        assert!(line(&text, "`select-1`: more than half").contains("before pgbench could measure"));
    }

    #[test]
    fn an_open_loop_below_its_rate_is_named() {
        let text = render(&sample::report());
        assert_eq!(
            line(&text, "| `hotrow`"),
            "| `hotrow` | 20,000 | 17,000 | 0.88 ms | 1.00 ms | 1.46 ms | 12.3 ms | 139 ms |"
        );
        assert!(text.contains("`hotrow` did not reach the rate that was due"));
        assert!(!text.contains("`direct` did not reach"));
    }

    #[test]
    fn a_late_load_is_named() {
        let mut report = sample::report();
        let mut with = |arrived_per_second: f64, late_p99_us: u64| {
            let CellOutcome::Measured(figures) = &mut report.scenarios[1].techniques[1].cells[0].outcome
            else {
                panic!("the sample has figures there")
            };
            let pace = Some(Pace { arrived_per_second, late_p99_us, refused: 3 });
            let round = Round {
                per_second: 17_000.0,
                turned_away_per_second: 0.0,
                done: 17_000,
                turned_away: 0,
                wal_bytes_each: 0.0,
                latency: None,
                pace,
                server: None,
                gateway: None,
                prediction: None,
            };
            figures.rounds = vec![round];
            render(&report)
        };
        let punctual = with(20_010.0, 700);
        assert!(punctual.contains(
            "`hotrow`: the load made 20,010 to 20,010 requests per second, 99 % of them at most 0.70 ms after they were \
             due. 3 were rejected."
        ));
        assert!(!punctual.contains("did not keep its rate"));
        assert!(with(17_000.0, 700).contains("**The load of `hotrow` did not keep its rate"));
        assert!(with(20_010.0, 7_000).contains("**The load of `hotrow` did not keep its rate"));
    }

    #[test]
    fn a_busy_machine_or_a_single_round_is_named_at_the_top() {
        let mut report = sample::report();
        assert!(!render(&report).contains("A busy machine") && !render(&report).contains("One round"));
        report.machine.load_average = Some(7.4);
        report.rounds = 1;
        let text = render(&report);
        let top = text.split("## ").next().unwrap();
        assert!(
            top.contains("**A busy machine: the load average was 7.40 at the start, with 2 cores."),
            "{top}"
        );
        assert!(top.contains("**One round: "), "{top}");
    }

    #[test]
    fn a_server_without_durability_is_named() {
        let mut report = sample::report();
        assert!(!render(&report).contains("Not durable"));
        report.server.settings[0].value = "off".into();
        assert!(render(&report).contains("**Not durable: this server runs with fsync = off."));
    }

    #[test]
    fn machine_and_settings_are_in_the_report() {
        let text = render(&sample::report());
        for fact in [
            "Some <fast> CPU, 2 cores",
            "24.0 GiB",
            "| PostgreSQL | 15.18",
            "p50 0.11 ms",
            "| `fsync` | on |",
        ] {
            assert!(text.contains(fact), "{fact} is missing:\n{text}");
        }
    }
}
