//! The command line of `hotrow bench`. The plan made from it is in `plan.rs`.

use crate::scenario::Scenario;
use crate::scenarios;
use clap::ValueEnum;
use clap::builder::PossibleValue;
use std::path::PathBuf;
use std::sync::LazyLock;

/// Compares Hotrow with other techniques in one run, on a private server.
#[derive(Debug, Clone, clap::Args)]
#[command(after_help = "\
Examples:\n  \
hotrow bench hot-row --clients 2,64\n  \
hotrow bench predictions    # what the doctor predicts for twelve workloads, and what is measured\n  \
hotrow bench novelty --seconds 10    # the cost of statements, tables and settings that are new all the time\n  \
hotrow bench --like report.json    # a load like that in a report of `hotrow doctor --json report.json`")]
pub struct Args {
    /// Scenario, or group of scenarios
    #[arg(value_enum, required_unless_present = "like")]
    pub scenario: Option<Choice>,

    /// Instead of a scenario: a load like that in this report, which `hotrow doctor --json FILE` wrote, directly and through
    /// Hotrow, and the measured gain beside the predicted one
    #[arg(long, value_name = "REPORT", conflicts_with_all = ["scenario", "upstream", "gateway"])]
    pub like: Option<PathBuf>,

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

    /// Requests per second in an open loop [default: 20000 in `open-loop`, 10000 in `counter-http`, 50 in
    /// `novelty-first-use`]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub rate: Option<u32>,

    /// Folder for report.md, report.json and plot.svg [default: bench-results/DATE-SCENARIO]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,

    /// Script that runs Debezium and Kafka to read the payment service's change stream (examples/payments/cdc/cdc.sh)
    #[arg(long, value_name = "SCRIPT")]
    pub change_stream: Option<PathBuf>,

    /// Folder with River, graphile-worker and pg-boss, which `make peers` installs (crates/hotrow-bench/peers), to measure them
    /// in `queue-lease` and `queue-batch`
    #[arg(long, value_name = "DIR")]
    pub peers: Option<PathBuf>,

    /// Check that everything works: one short round on few rows, without meaningful figures
    #[arg(long)]
    pub quick: bool,

    /// Program to run as the gateway, instead of this one
    #[arg(long, value_name = "PROGRAM", hide = true)]
    pub gateway_program: Option<PathBuf>,
}

/// Groups of scenarios.
const FAMILIES: [&str; 5] = ["queue", "feed", "disks", "predictions", "novelty"];

/// One scenario, or several of them.
#[derive(Debug, Clone, Copy)]
pub enum Choice {
    /// All scenarios that do not take long.
    All,
    /// Scenarios whose names begin with this. Those that take long are omitted, unless all of them do.
    Family(&'static str),
    /// One scenario.
    One(&'static Scenario),
}

impl Choice {
    /// Its name on the command line and in the report's folder.
    pub fn name(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Family(name) => name,
            Self::One(scenario) => scenario.name,
        }
    }

    /// Its scenarios.
    pub fn scenarios(self) -> Vec<&'static Scenario> {
        match self {
            Self::All => scenarios::ALL.into_iter().filter(|scenario| !scenario.takes_long).collect(),
            Self::Family(name) => {
                let belongs = |scenario: &&Scenario| {
                    scenario.name.strip_prefix(name).is_some_and(|rest| rest.starts_with('-'))
                };
                let (long, short): (Vec<_>, Vec<_>) =
                    scenarios::ALL.into_iter().filter(belongs).partition(|scenario| scenario.takes_long);
                if short.is_empty() { long } else { short }
            }
            Self::One(scenario) => vec![scenario],
        }
    }
}

impl ValueEnum for Choice {
    fn value_variants<'a>() -> &'a [Self] {
        static CHOICES: LazyLock<Vec<Choice>> = LazyLock::new(|| {
            let families = FAMILIES.into_iter().map(Choice::Family);
            scenarios::ALL.into_iter().map(Choice::One).chain(families).chain([Choice::All]).collect()
        });
        &CHOICES
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(
            PossibleValue::new(self.name()).help(match self {
                Self::All => "All scenarios except `platform`, `counter-restart`, `fleet`, `queue-held`, `queue-batch-held`, `disks-...`, \
                    `predictions-...`, `novelty-...` and those of the payment service"
                    .to_owned(),
                Self::Family(name @ "disks") => format!("All scenarios `{name}-...`, in one report"),
                Self::Family("predictions") => "Twelve workloads in the scenarios `predictions-...`: the gain that `hotrow \
                    doctor` predicts and the measured one, in one report"
                    .to_owned(),
                Self::Family("novelty") => "Traffic that is new all the time in the scenarios `novelty-...`: its cost through Hotrow \
                    divided by its direct cost, in one report"
                    .to_owned(),
                Self::Family(name) => format!("All scenarios `{name}-...` that do not take long, in one report"),
                Self::One(scenario) => scenario.shows.to_owned(),
            }),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::Args;
    use clap::{CommandFactory, Parser};

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        args: Args,
    }

    #[test]
    fn the_help_describes_each_scenario() {
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
            args.scenario.unwrap().scenarios().iter().map(|scenario| scenario.name).collect::<Vec<_>>()
        };
        assert_eq!(names("queue"), ["queue-take", "queue-lease", "queue-batch", "queue-enqueue"]);
        assert_eq!(names("disks"), ["disks-hot-row", "disks-spread", "disks-transaction", "disks-payments"]);
        assert_eq!(names("novelty").len(), 9);
        assert!(!names("all").iter().any(|name| name.starts_with("disks") || name.starts_with("novelty")));
    }

    #[test]
    fn lists_are_split_at_commas() {
        let command = Command::try_parse_from(["bench", "hot-row", "--clients", "1,64"]).unwrap();
        assert_eq!(command.args.clients, [1, 64]);
        assert_eq!(command.args.scenario.unwrap().name(), "hot-row");
    }
}
