//! The command line of `hotrow bench`, and the options that it shares with other programs that measure. The plan made from
//! them is in `plan.rs`.

use crate::menu::{Choice, Menu};
use crate::scenarios;
use std::path::PathBuf;

/// Compares Hotrow with other techniques in one run, on a private server.
#[derive(Debug, Clone, clap::Args)]
#[command(after_help = "\
Examples:\n  \
hotrow bench hot-row --clients 2,64\n  \
hotrow bench novelty --seconds 10    # the cost of statements, tables and settings that are new all the time\n  \
hotrow bench --like report.json    # a load like that in a report of `hotrow doctor --json report.json`")]
pub struct Args {
    /// Scenario, or group of scenarios
    #[arg(value_parser = MENU.parser(), required_unless_present = "like")]
    pub scenario: Option<Choice>,

    /// Instead of a scenario: a load like that in this report, which `hotrow doctor --json FILE` wrote, directly and through
    /// Hotrow, and the measured gain beside the predicted one
    #[arg(long, value_name = "REPORT", conflicts_with_all = ["scenario", "upstream", "gateway"])]
    pub like: Option<PathBuf>,

    /// How it is measured
    #[command(flatten)]
    pub options: Options,
}

/// How scenarios are measured.
#[derive(Debug, Clone, clap::Args)]
pub struct Options {
    /// Server to measure on instead of a private one; the schema hotrow_bench is created and dropped there
    #[arg(long, value_name = "URL")]
    pub upstream: Option<String>,

    /// Running gateway of that server, instead of one that the benchmark starts
    #[arg(long, value_name = "URL")]
    pub gateway: Option<String>,

    /// Length of each run, in seconds
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=3600))]
    pub seconds: u32,

    /// Warm-up before each run, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=600))]
    pub warmup: u32,

    /// Runs of each technique; the report has the median
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub rounds: u32,

    /// Numbers of concurrent clients, as a list [default: those of the scenario]
    #[arg(long, value_name = "N,N,...", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub clients: Vec<u32>,

    /// Techniques to measure, as a list of their names in the report [default: all]
    #[arg(long, value_name = "NAME,NAME,...", value_delimiter = ',')]
    pub techniques: Vec<String>,

    /// Requests per second in an open loop [default: 20000 in `open-loop`, 50 in `novelty-first-use`]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub rate: Option<u32>,

    /// Folder for report.md, report.json and plot.svg [default: bench-results/DATE-SCENARIO]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,

    /// Check that everything works: one short round on few rows, without meaningful figures
    #[arg(long)]
    pub quick: bool,

    /// Program to run as the gateway, instead of this one
    #[arg(long, value_name = "PROGRAM", hide = true)]
    pub gateway_program: Option<PathBuf>,
}

/// The scenarios of `hotrow bench`.
pub static MENU: Menu = Menu {
    scenarios: &scenarios::ALL,
    families: &[
        ("queue", "All scenarios `queue-...` that do not take long, in one report"),
        ("feed", "All scenarios `feed-...`, in one report"),
        (
            "novelty",
            "Traffic that is new all the time in the scenarios `novelty-...`: its cost through Hotrow divided by its direct \
             cost, in one report",
        ),
    ],
    all: "All scenarios except `queue-held`, `queue-batch-held` and `novelty-...`",
};

#[cfg(test)]
mod tests {
    use super::{Args, MENU};
    use clap::{CommandFactory, Parser};

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        args: Args,
    }

    #[test]
    fn the_help_describes_each_scenario() {
        MENU.check();
        Command::command().debug_assert();
        let help = Command::command().term_width(0).render_long_help().to_string();
        for scenario in crate::scenarios::ALL {
            assert!(help.contains(scenario.name) && help.contains(scenario.shows), "{help}");
        }
    }

    #[test]
    fn a_family_omits_what_takes_long_unless_all_of_it_does() {
        let names = |family: &str| {
            let args = Command::try_parse_from(["bench", family]).unwrap().args;
            args.scenario.unwrap().scenarios.iter().map(|scenario| scenario.name).collect::<Vec<_>>()
        };
        assert_eq!(
            names("queue"),
            [
                "queue-take",
                "queue-head",
                "queue-head-vacuumed",
                "queue-lease",
                "queue-batch",
                "queue-enqueue"
            ]
        );
        assert_eq!(names("novelty").len(), 9);
        assert_eq!(names("all").len(), 22);
        assert!(!names("all").iter().any(|name| name.ends_with("held") || name.starts_with("novelty")));
    }

    #[test]
    fn lists_are_split_at_commas() {
        let command = Command::try_parse_from(["bench", "hot-row", "--clients", "1,64"]).unwrap();
        assert_eq!(command.args.options.clients, [1, 64]);
        assert_eq!(command.args.scenario.unwrap().name, "hot-row");
    }
}
