//! What the command line asks for, resolved once into what the benchmark runs with; nothing is looked up later.

use crate::args::Args;
use crate::endpoint::Endpoint;
use crate::error::Error;
use crate::scenario::{Clients, Rows, Scenario, Technique};
use std::collections::HashSet;
use std::path::PathBuf;
use std::time::SystemTime;

/// All that decides what is run, and how.
#[derive(Debug)]
pub struct Plan {
    /// What is shown.
    pub scenarios: Vec<&'static Scenario>,
    /// The URL of the server, unless a private one is to be started.
    pub upstream: Option<String>,
    /// Where Hotrow comes from.
    pub gateway: GatewaySource,
    /// How long a run lasts.
    pub seconds: u32,
    /// How long it is warmed up for.
    pub warm_up_seconds: u32,
    /// How often each one is run.
    pub rounds: u32,
    /// Whether the figures are only a sign of life.
    pub quick: bool,
    /// When it began.
    pub started: SystemTime,
    /// Where the report goes.
    pub out: PathBuf,
    /// The script that runs Debezium, if it is to read the change stream.
    pub change_stream: Option<PathBuf>,
    /// Where the programs of `peers/` are, if they are to be run.
    pub peers: Option<PathBuf>,
    rate: Option<u32>,
    clients: Vec<u32>,
    techniques: Vec<String>,
}

/// Where Hotrow comes from.
#[derive(Debug)]
pub enum GatewaySource {
    /// It is running already.
    Running(Endpoint),
    /// This program is started.
    Program(PathBuf),
}

impl Plan {
    /// Resolves what was typed.
    pub fn resolve(args: Args) -> Result<Self, Error> {
        let scenarios = args.scenario.scenarios();
        check_techniques(&args.techniques, &scenarios)?;
        args.upstream.as_deref().map(Endpoint::parse).transpose()?;
        let gateway = match (args.gateway, args.gateway_program) {
            (Some(_), _) if args.upstream.is_none() => return Err(Error::GatewayWithoutUpstream),
            (Some(url), _) => GatewaySource::Running(Endpoint::parse(&url)?),
            (None, Some(program)) => GatewaySource::Program(program),
            (None, None) => {
                GatewaySource::Program(std::env::current_exe().map_err(Error::system("name this program"))?)
            }
        };
        let started = SystemTime::now();
        let out = args.out.unwrap_or_else(|| default_folder(started, args.scenario.name()));
        let quick = args.quick;
        let (mut clients, mut seen) = (args.clients, HashSet::new());
        clients.retain(|count| seen.insert(*count));
        Ok(Self {
            scenarios,
            upstream: args.upstream,
            gateway,
            seconds: if quick { 1 } else { args.seconds },
            warm_up_seconds: if quick { 1 } else { args.warmup },
            rounds: if quick { 1 } else { args.rounds },
            quick,
            started,
            out,
            change_stream: args.change_stream,
            peers: args.peers,
            rate: args.rate,
            clients,
            techniques: args.techniques,
        })
    }

    /// How many rows a scenario's table gets.
    pub fn rows(&self, scenario: &Scenario) -> u32 {
        const MOST_IN_A_HURRY: u32 = 10_000;
        match scenario.rows {
            Rows::One => 1,
            Rows::UpTo(rows) if self.quick => rows.min(MOST_IN_A_HURRY),
            Rows::UpTo(rows) => rows,
            Rows::UsedUp { in_a_hurry, .. } if self.quick => in_a_hurry,
            Rows::UsedUp { per_second, besides, .. } => {
                per_second.saturating_mul(self.seconds + self.warm_up_seconds).saturating_add(besides)
            }
        }
    }

    /// Requests a second in an open loop that is usually run at this rate.
    pub fn rate(&self, usually: u32) -> u32 {
        const MOST_IN_A_HURRY: u32 = 1_000;
        let rate = self.rate.unwrap_or(usually);
        if self.quick { rate.min(MOST_IN_A_HURRY) } else { rate }
    }

    /// How long somebody holds a snapshot before a run.
    pub fn ageing_seconds(&self, usually: u32) -> u32 {
        if self.quick { 1 } else { usually }
    }

    /// Requests a second where a run in a hurry would use up its few rows.
    pub fn hurried_rate(&self, scenario: &Scenario) -> Option<u32> {
        const SLOW: u32 = 200;
        (self.quick && matches!(scenario.rows, Rows::UsedUp { .. })).then_some(SLOW)
    }

    /// How many clients a scenario is run with, one number after the other.
    pub fn clients(&self, scenario: &Scenario) -> Vec<u32> {
        const MOST_IN_A_HURRY: u32 = 8;
        match scenario.clients {
            Clients::Always(clients) => clients.to_vec(),
            Clients::Usually(_) if !self.clients.is_empty() => self.clients.clone(),
            Clients::Usually(clients) if self.quick => {
                let mut few: Vec<_> = clients.iter().map(|count| (*count).min(MOST_IN_A_HURRY)).collect();
                few.dedup();
                few
            }
            Clients::Usually(clients) => clients.to_vec(),
        }
    }

    /// The techniques of a scenario that are to be run.
    pub fn techniques(&self, scenario: &'static Scenario) -> Vec<&'static Technique> {
        let wanted = |technique: &Technique| {
            self.techniques.is_empty() || self.techniques.iter().any(|name| name == technique.name)
        };
        scenario.techniques.iter().filter(|technique| wanted(technique)).collect()
    }

    /// Whether any technique of its scenarios is like this.
    pub fn has_technique(&self, wanted: fn(&Technique) -> bool) -> bool {
        self.scenarios.iter().flat_map(|scenario| scenario.techniques).any(wanted)
    }

    /// The most clients that any scenario is run with.
    pub fn most_clients(&self) -> u32 {
        self.scenarios.iter().flat_map(|scenario| self.clients(scenario)).max().unwrap_or(1)
    }
}

fn check_techniques(asked: &[String], scenarios: &[&'static Scenario]) -> Result<(), Error> {
    let mut known: Vec<_> =
        scenarios.iter().flat_map(|scenario| scenario.techniques).map(|technique| technique.name).collect();
    known.sort_unstable();
    known.dedup();
    match asked.iter().find(|name| !known.contains(&name.as_str())) {
        Some(name) => Err(Error::UnknownTechnique { name: name.clone(), known: known.join(", ") }),
        None => Ok(()),
    }
}

fn default_folder(started: SystemTime, scenario: &str) -> PathBuf {
    let time = humantime::format_rfc3339_seconds(started).to_string().replace(':', "");
    PathBuf::from("bench-results").join(format!("{time}-{scenario}"))
}

#[cfg(test)]
mod tests {
    use super::Plan;
    use crate::args::Args;
    use clap::Parser;

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        args: Args,
    }

    fn plan(arguments: &[&str]) -> Plan {
        let arguments = ["bench"].iter().chain(arguments);
        Plan::resolve(Command::try_parse_from(arguments).unwrap().args).unwrap()
    }

    fn clients(plan: &Plan, scenario: &str) -> Vec<u32> {
        let scenario = plan.scenarios.iter().find(|candidate| candidate.name == scenario).unwrap();
        plan.clients(scenario)
    }

    #[test]
    fn a_scenario_has_the_clients_it_is_about_unless_others_are_asked_for() {
        assert_eq!(clients(&plan(&["all"]), "hot-row"), [1, 8, 64, 512]);
        let asked = plan(&["all", "--clients", "256,2,256"]);
        assert_eq!(clients(&asked, "hot-row"), [256, 2]);
        assert_eq!(clients(&asked, "single"), [1], "one client alone is what it is about");
        assert_eq!(asked.most_clients(), 256);
    }

    #[test]
    fn a_hurry_makes_everything_small() {
        let plan = plan(&["all", "--quick"]);
        assert_eq!((plan.seconds, plan.warm_up_seconds, plan.rounds, plan.rate(20_000)), (1, 1, 1, 1_000));
        assert_eq!(clients(&plan, "hot-row"), [1, 8]);
        let most = plan.scenarios.iter().map(|scenario| plan.rows(scenario)).max();
        assert_eq!(most, Some(400_000), "they are used up by hundreds");
    }

    #[test]
    fn an_open_loop_has_its_own_rate_unless_another_is_asked_for() {
        assert_eq!(plan(&["all"]).rate(10_000), 10_000);
        assert_eq!(plan(&["all", "--rate", "500"]).rate(10_000), 500);
    }

    #[test]
    fn only_the_techniques_that_were_named_are_run() {
        let plan = plan(&["hot-row", "--techniques", "hotrow,direct"]);
        let names: Vec<_> =
            plan.techniques(plan.scenarios[0]).iter().map(|technique| technique.name).collect();
        assert_eq!(names, ["direct", "hotrow"]);
    }

    #[test]
    fn reports_of_different_times_and_scenarios_do_not_meet() {
        let folder = plan(&["single"]).out.to_string_lossy().into_owned();
        assert!(folder.starts_with("bench-results/20") && folder.ends_with("Z-single"), "{folder}");
    }
}
