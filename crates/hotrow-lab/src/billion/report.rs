//! The report of a run, as Markdown and as data. No I/O.

use super::plan::EVENTS;
use super::totals::Totals;
use super::work::Kind;
use hotrow_bench::machine::Machine;
use hotrow_bench::report::numbers::whole;
use serde::Serialize;

/// All facts of a report.
#[derive(Debug, Serialize)]
pub struct Report<'a> {
    /// The day of the last round.
    pub date: String,
    pub machine: &'a Machine,
    /// The version of the server.
    pub server: &'a str,
    pub totals: &'a Totals,
}

/// A number with its digits in groups of three.
pub fn count(number: u64) -> String {
    whole(number as f64)
}

/// A duration such as `2 h 5 min`.
pub fn duration(seconds: f64) -> String {
    let seconds = seconds.max(0.0) as u64;
    match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
        (0, 0, seconds) => format!("{seconds} s"),
        (0, minutes, seconds) => format!("{minutes} min {seconds} s"),
        (hours, minutes, _) => format!("{hours} h {minutes} min"),
    }
}

impl Report<'_> {
    /// The report as Markdown.
    pub fn markdown(&self) -> String {
        let Totals { goal, statements, events, .. } = self.totals;
        let mut text =
            format!("# {} acknowledged statements under kill -9\n\n", count(self.totals.acknowledged()));
        text += &self.verdict();
        text += "\n\n| | |\n|---|---|\n";
        self.facts().iter().for_each(|(name, fact)| text += &format!("| {name} | {fact} |\n"));
        text += &format!("\n## Acknowledged statements\n\nThe goal is {}.\n", count(goal.statements));
        text += "\n| kind | usual way | statements |\n|---|---|---:|\n";
        for (_, _, name, way) in Kind::ALL {
            text += &format!(
                "| {name} | {way} | {} |\n",
                count(statements.get(name).copied().unwrap_or_default())
            );
        }
        text += "\nUnits by way, as counted by gateways that were alive at the end of a round:\n\n| way | units |\n|---|---:|\n";
        for (way, units) in &self.totals.units {
            text += &format!("| {way} | {} |\n", count(*units));
        }
        text += &format!("\n## Kills and restarts\n\nThe goal is {} kills.\n", count(goal.kills));
        text += "\n| event | times |\n|---|---:|\n";
        for (_, name) in EVENTS {
            text += &format!("| {name} | {} |\n", count(events.get(name).copied().unwrap_or_default()));
        }
        text
    }

    fn verdict(&self) -> String {
        let totals = self.totals;
        match &totals.fault {
            Some(fault) => format!("**The run stopped at a contradiction:** {fault}"),
            None if totals.is_done() => {
                "The goal is reached. No answer contradicts the rows: 0 faults.".to_owned()
            }
            None => "The run is not finished. No answer contradicts the rows so far: 0 faults.".to_owned(),
        }
    }

    fn facts(&self) -> Vec<(&'static str, String)> {
        let Self { date, machine, server, totals } = self;
        let faults = if totals.fault.is_some() { "1" } else { "0" };
        let memory = machine.memory_bytes.map_or("unknown".into(), |bytes| format!("{} GB", bytes >> 30));
        let per_second = 1000.0 * totals.acknowledged() as f64 / totals.load_ms.max(1) as f64;
        vec![
            ("faults", faults.to_owned()),
            ("rounds checked", count(totals.rounds)),
            ("time under load", duration(totals.load_ms as f64 / 1000.0)),
            ("time of the checks", duration(totals.check_ms as f64 / 1000.0)),
            ("acknowledged statements per second under load", whole(per_second)),
            ("requests whose answer did not say what happened", count(totals.unknown)),
            ("applied among them, as the rows show", count(totals.applied)),
            ("not applied among them, as the rows show", count(totals.unknown - totals.applied)),
            ("requests answered as not executed, and found not executed", count(totals.not_run)),
            ("changes of tables, indexes and functions", count(totals.ddl)),
            ("connections of clients", count(totals.connections)),
            ("most memory of a gateway", format!("{} MiB", totals.gateway_bytes >> 20)),
            ("starts of this program", count(totals.starts)),
            ("first and last day", format!("{}, {date}", totals.began)),
            ("versions", format!("Hotrow {}, PostgreSQL {server}", totals.version)),
            (
                "machine",
                format!("{} cores, {}, {memory}, {}", machine.cores, machine.processor, machine.system),
            ),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::{Report, duration};
    use crate::billion::plan::Goal;
    use crate::billion::totals::Totals;
    use hotrow_bench::machine::Machine;

    #[test]
    fn a_report_says_whether_the_goal_is_reached() {
        let mut totals = Totals::new(Goal { statements: 1_000, kills: 1 }, "2026-01-31".into());
        totals.statements.insert("insert".into(), 2_000);
        (totals.unknown, totals.applied, totals.load_ms) = (5, 2, 1_000);
        let machine = Machine::this();
        let markdown = |totals: &Totals| {
            Report { date: "2026-02-01".into(), machine: &machine, server: "17.1", totals }.markdown()
        };
        let text = markdown(&totals);
        assert!(text.starts_with("# 2,000 acknowledged statements"), "{text}");
        assert!(text.contains("The run is not finished"), "{text}");
        assert!(text.contains("| not applied among them, as the rows show | 3 |"), "{text}");
        totals.kills = 1;
        assert!(markdown(&totals).contains("The goal is reached"));
        totals.fault = Some("two answers".into());
        assert!(markdown(&totals).contains("contradiction:** two answers"));
    }

    #[test]
    fn durations_have_two_units() {
        assert_eq!([59.9, 61.0, 7_260.0].map(duration), ["59 s", "1 min 1 s", "2 h 1 min"]);
    }
}
