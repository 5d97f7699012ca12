//! What a person types after `hotrow bench`; the plan it becomes is in `plan.rs`.

use crate::scenario::Scenario;
use crate::scenarios;
use clap::ValueEnum;
use clap::builder::PossibleValue;
use std::path::PathBuf;
use std::sync::LazyLock;

/// Compares Hotrow with the techniques people use today, side by side, on a private server.
#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// What to measure
    #[arg(value_enum)]
    pub scenario: Choice,

    /// Measure on this server (in a schema hotrow_bench, dropped afterwards) instead of a private one
    #[arg(long, value_name = "URL")]
    pub upstream: Option<String>,

    /// Measure this running gateway before the upstream instead of starting one
    #[arg(long, value_name = "URL")]
    pub gateway: Option<String>,

    /// How long each run lasts
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=3600))]
    pub seconds: u32,

    /// How long each run is warmed up for
    #[arg(long, value_name = "SECONDS", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=600))]
    pub warmup: u32,

    /// How often each technique is measured; the median is reported
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub rounds: u32,

    /// How many clients at once, as a list [default: what the scenario is about]
    #[arg(long, value_name = "N,N,...", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub clients: Vec<u32>,

    /// Only these techniques, as a list of their names in the report
    #[arg(long, value_name = "NAME,NAME,...", value_delimiter = ',')]
    pub techniques: Vec<String>,

    /// Requests a second in an open loop [default: 20000 in `open-loop`, 10000 in `counter-http`]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub rate: Option<u32>,

    /// Folder for report.md, report.json and plot.svg [default: bench-results/DATE-SCENARIO]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,

    /// Let Debezium and Kafka read the change stream of the payment service, run by this script (examples/payments/cdc/cdc.sh)
    #[arg(long, value_name = "SCRIPT")]
    pub change_stream: Option<PathBuf>,

    /// Also measure River, graphile-worker and pg-boss in `queue-lease` and `queue-batch`: where `make peers` has installed them
    /// (crates/hotrow-bench/peers)
    #[arg(long, value_name = "DIR")]
    pub peers: Option<PathBuf>,

    /// See that everything works: one short round on few rows; its figures mean little
    #[arg(long)]
    pub quick: bool,

    /// The program that is run as the gateway, instead of this one
    #[arg(long, value_name = "PROGRAM", hide = true)]
    pub gateway_program: Option<PathBuf>,
}

/// Scenarios that are asked for together.
const FAMILIES: [&str; 2] = ["queue", "feed"];

/// One scenario, or several of them.
#[derive(Debug, Clone, Copy)]
pub enum Choice {
    /// Each one after the other.
    All,
    /// Those whose names begin with this.
    Family(&'static str),
    /// This one.
    One(&'static Scenario),
}

impl Choice {
    /// What it's called on the command line and in the report's folder.
    pub fn name(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Family(name) => name,
            Self::One(scenario) => scenario.name,
        }
    }

    /// The scenarios it stands for.
    pub fn scenarios(self) -> Vec<&'static Scenario> {
        match self {
            Self::All => scenarios::ALL.into_iter().filter(|scenario| !scenario.takes_long).collect(),
            Self::Family(name) => {
                let mut all = Self::All.scenarios();
                all.retain(|scenario| {
                    scenario.name.strip_prefix(name).is_some_and(|rest| rest.starts_with('-'))
                });
                all
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
                Self::All => {
                    "All of these but `platform`, `counter-restart`, `queue-held`, `queue-batch-held` and the payment service's, one after the other"
                        .to_owned()
                }
                Self::Family(name) => format!("All of `{name}-...` that don't take long, in one report"),
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
    fn the_help_says_what_each_scenario_shows() {
        Command::command().debug_assert();
        let help = Command::command().term_width(0).render_long_help().to_string();
        for scenario in crate::scenarios::ALL {
            assert!(help.contains(scenario.name) && help.contains(scenario.shows), "{help}");
        }
    }

    #[test]
    fn lists_are_split_at_commas() {
        let command = Command::try_parse_from(["bench", "hot-row", "--clients", "1,64"]).unwrap();
        assert_eq!(command.args.clients, [1, 64]);
        assert_eq!(command.args.scenario.name(), "hot-row");
    }
}
