//! The report for people: tables with what was compared, on what, and under which settings; judges nothing.

mod scenario;

use super::numbers::whole;
use crate::results::Report;
use scenario::write_scenario;
use std::fmt::{Error, Write};

/// The text of report.md.
pub(super) fn render(report: &Report) -> String {
    let mut text = String::new();
    write_report(&mut text, report).expect("text in memory takes whatever is written to it");
    text
}

fn write_report(text: &mut String, report: &Report) -> Result<(), Error> {
    writeln!(text, "# Hotrow {}: benchmark of {}\n", report.hotrow, report.date)?;
    if report.quick {
        writeln!(text, "**A quick run: it shows that everything works. Its figures mean little.**\n")?;
    }
    for setting in report.server.not_durable() {
        writeln!(
            text,
            "**Not durable: this server runs with {} = {}. Its figures can't be compared with those of one that keeps \
             what it acknowledges.**\n",
            setting.name, setting.value
        )?;
    }
    writeln!(
        text,
        "Each figure is the median of {} of {} s each, after {} s of warm-up; the runs of all techniques take turns on \
         the same server. After each run the rows were compared with the answers the clients got. [Picture](plot.svg), \
         [all numbers](report.json).\n",
        counted(report.rounds, "round"),
        report.seconds,
        report.warm_up_seconds
    )?;
    for scenario in &report.scenarios {
        write_scenario(text, scenario)?;
    }
    write_surroundings(text, report)
}

fn write_surroundings(text: &mut String, report: &Report) -> Result<(), Error> {
    let machine = &report.machine;
    writeln!(text, "## Measured on\n\n| | |\n|---|---|")?;
    writeln!(text, "| processor | {}, {} |", machine.processor, counted(machine.cores as u32, "core"))?;
    if let Some(bytes) = machine.memory_bytes {
        writeln!(text, "| memory | {:.1} GiB |", bytes as f64 / f64::from(1 << 30))?;
    }
    writeln!(text, "| system | {}, {} |", machine.system, machine.kernel)?;
    if let Some(load) = machine.load_average {
        writeln!(text, "| load average before | {load:.2} |")?;
    }
    let kind = if report.server.private { "private to this benchmark" } else { "run by somebody else" };
    writeln!(text, "| PostgreSQL | {}, {kind} |", report.server.version)?;
    if let Some(flush) = report.server.flush {
        writeln!(
            text,
            "| a flush (8 kB, `fdatasync`) | half within {:.2} ms, 99 % within {:.2} ms |",
            flush.p50_us as f64 / 1000.0,
            flush.p99_us as f64 / 1000.0
        )?;
    }
    writeln!(text, "| load | {} |", report.tools.join(", "))?;
    writeln!(text, "| Hotrow | {} |", report.hotrow)?;
    for setting in &report.server.settings {
        writeln!(text, "| `{}` | {} |", setting.name, setting.value)?;
    }
    Ok(())
}

/// A number and the thing counted, in the plural where it must be.
fn counted(count: u32, thing: &str) -> String {
    if count == 1 { format!("1 {thing}") } else { format!("{} {thing}s", whole(count.into())) }
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
    fn a_row_says_how_much_how_sure_and_compared_with_what() {
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
    fn what_has_no_figure_is_named_with_its_reason() {
        let text = render(&sample::report());
        assert!(text.contains(
            "**No figure for `liar`, its check failed: 10 sales were acknowledged, but the rows show 9**"
        ));
        assert!(text.contains("`select-1` was not run: the server has room for 50 of 64 connections"));
        assert_eq!(line(&text, "| `liar` | 1 | -"), "| `liar` | 1 | - |");
    }

    #[test]
    fn latencies_that_pgbench_could_not_take_are_left_out_with_a_reason() {
        let text = render(&sample::report());
        assert_eq!(
            line(&text, "| `select-1` | 9,000 | 8"),
            "| `select-1` | 9,000 | 8,100 to 9,900 | 1.33× `direct` | - | 1.46 ms | 312 B |"
        );
        assert!(line(&text, "`select-1`: more than half").contains("too soon for it to time"));
    }

    #[test]
    fn an_open_loop_that_could_not_keep_up_is_said_to_be_one() {
        let text = render(&sample::report());
        assert_eq!(
            line(&text, "| `hotrow`"),
            "| `hotrow` | 20,000 | 17,000 | 0.88 ms | 1.00 ms | 1.46 ms | 12.3 ms | 139 ms |"
        );
        assert!(text.contains("`hotrow` did not keep up with what was due"));
        assert!(!text.contains("`direct` did not keep up"));
    }

    #[test]
    fn a_load_that_was_late_itself_says_so() {
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
            };
            figures.rounds = vec![round];
            render(&report)
        };
        let punctual = with(20_010.0, 700);
        assert!(punctual.contains(
            "`hotrow`: the load made 20,010 to 20,010 requests a second, 99 in 100 of them at most 0.70 ms after they were \
             due; 3 were refused."
        ));
        assert!(!punctual.contains("did not keep the rate itself"));
        assert!(with(17_000.0, 700).contains("**The load of `hotrow` did not keep the rate itself"));
        assert!(with(20_010.0, 7_000).contains("**The load of `hotrow` did not keep the rate itself"));
    }

    #[test]
    fn a_server_that_forgets_is_not_passed_over() {
        let mut report = sample::report();
        assert!(!render(&report).contains("Not durable"));
        report.server.settings[0].value = "off".into();
        assert!(render(&report).contains("**Not durable: this server runs with fsync = off."));
    }

    #[test]
    fn machine_and_settings_stand_beside_the_figures() {
        let text = render(&sample::report());
        for fact in [
            "Some <fast> CPU, 2 cores",
            "24.0 GiB",
            "| PostgreSQL | 15.18",
            "half within 0.11 ms",
            "| `fsync` | on |",
        ] {
            assert!(text.contains(fact), "{fact} is missing:\n{text}");
        }
    }
}
