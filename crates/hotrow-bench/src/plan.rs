//! The command line, resolved once into the values that the benchmark uses. No setting is looked up later.

use crate::args::Options;
use crate::endpoint::Endpoint;
use crate::error::Error;
use crate::menu::Choice;
use crate::scenario::{Clients, Rows, Scenario, Technique};
use std::collections::HashSet;
use std::path::PathBuf;
use std::time::SystemTime;

/// All decisions about the runs.
#[derive(Debug)]
pub struct Plan {
    /// The scenarios to run.
    pub scenarios: Vec<&'static Scenario>,
    /// The URL of the server, or `None` for a private server.
    pub upstream: Option<String>,
    /// The gateway to measure.
    pub gateway: GatewaySource,
    /// The program that runs as the doctor.
    pub doctor: PathBuf,
    /// The length of a run.
    pub seconds: u32,
    /// The length of its warm-up.
    pub warm_up_seconds: u32,
    /// The number of runs of each technique.
    pub rounds: u32,
    /// Whether this is a short check without meaningful figures.
    pub quick: bool,
    /// The start time.
    pub started: SystemTime,
    /// The folder for the report.
    pub out: PathBuf,
    rate: Option<u32>,
    clients: Vec<u32>,
    techniques: Vec<String>,
}

/// The gateway to measure.
#[derive(Debug)]
pub enum GatewaySource {
    /// A gateway that is running already.
    Running(Endpoint),
    /// A program to start as the gateway.
    Program(PathBuf),
}

impl Plan {
    /// Resolves the command line.
    pub fn resolve(Choice { name, scenarios }: Choice, args: Options) -> Result<Self, Error> {
        check_techniques(&args.techniques, &scenarios)?;
        args.upstream.as_deref().map(Endpoint::parse).transpose()?;
        let program = match args.gateway_program {
            Some(program) => program,
            None => std::env::current_exe().map_err(Error::system("name this program"))?,
        };
        let gateway = match args.gateway {
            Some(_) if args.upstream.is_none() => return Err(Error::GatewayWithoutUpstream),
            Some(url) => GatewaySource::Running(Endpoint::parse(&url)?),
            None if !program.is_file() => return Err(Error::NoGatewayProgram { program }),
            None => GatewaySource::Program(program.clone()),
        };
        let started = SystemTime::now();
        let out = args.out.unwrap_or_else(|| default_folder(started, &name));
        let quick = args.quick;
        let (mut clients, mut seen) = (args.clients, HashSet::new());
        clients.retain(|count| seen.insert(*count));
        Ok(Self {
            scenarios,
            upstream: args.upstream,
            gateway,
            doctor: program,
            seconds: if quick { 1 } else { args.seconds },
            warm_up_seconds: if quick { 1 } else { args.warmup },
            rounds: if quick { 1 } else { args.rounds },
            quick,
            started,
            out,
            rate: args.rate,
            clients,
            techniques: args.techniques,
        })
    }

    /// The number of rows in a scenario's table.
    pub fn rows(&self, scenario: &Scenario) -> u32 {
        const QUICK_MAX: u32 = 10_000;
        match scenario.rows {
            Rows::One => 1,
            Rows::UpTo(rows) if self.quick => rows.min(QUICK_MAX),
            Rows::UpTo(rows) => rows,
            Rows::UsedUp { if_quick, .. } if self.quick => if_quick,
            Rows::UsedUp { per_second, besides, .. } => {
                per_second.saturating_mul(self.seconds + self.warm_up_seconds).saturating_add(besides)
            }
        }
    }

    /// Requests per second in an open loop with this default rate.
    pub fn rate(&self, usually: u32) -> u32 {
        const QUICK_MAX: u32 = 1_000;
        let rate = self.rate.unwrap_or(usually);
        if self.quick { rate.min(QUICK_MAX) } else { rate }
    }

    /// The time for which a snapshot is held before a run.
    pub fn ageing_seconds(&self, usually: u32) -> u32 {
        if self.quick { 1 } else { usually }
    }

    /// The numbers of clients for a scenario, in order.
    pub fn clients(&self, scenario: &Scenario) -> Vec<u32> {
        const QUICK_MAX: u32 = 8;
        match scenario.clients {
            Clients::Always(clients) => clients.to_vec(),
            Clients::Usually(_) if !self.clients.is_empty() => self.clients.clone(),
            Clients::Usually(clients) if self.quick => {
                let mut few: Vec<_> = clients.iter().map(|count| (*count).min(QUICK_MAX)).collect();
                few.dedup();
                few
            }
            Clients::Usually(clients) => clients.to_vec(),
        }
    }

    /// The techniques of a scenario to run.
    pub fn techniques(&self, scenario: &'static Scenario) -> Vec<&'static Technique> {
        let wanted = |technique: &Technique| {
            self.techniques.is_empty() || self.techniques.iter().any(|name| name == technique.name)
        };
        scenario.techniques.iter().filter(|technique| wanted(technique)).collect()
    }

    /// Whether a technique to run has this property.
    pub fn has_technique(&self, wanted: fn(&Technique) -> bool) -> bool {
        self.scenarios.iter().flat_map(|scenario| self.techniques(scenario)).any(wanted)
    }

    /// The largest number of clients of any scenario.
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
        let args = Command::try_parse_from(arguments).unwrap().args;
        Plan::resolve(args.scenario.unwrap(), args.options).unwrap()
    }

    fn clients(plan: &Plan, scenario: &str) -> Vec<u32> {
        let scenario = plan.scenarios.iter().find(|candidate| candidate.name == scenario).unwrap();
        plan.clients(scenario)
    }

    #[test]
    fn a_scenario_has_its_numbers_of_clients_unless_others_are_requested() {
        assert_eq!(clients(&plan(&["all"]), "hot-row"), [1, 8, 64, 512]);
        let asked = plan(&["all", "--clients", "256,2,256"]);
        assert_eq!(clients(&asked, "hot-row"), [256, 2]);
        assert_eq!(clients(&asked, "single"), [1], "the scenario is about a single client");
        assert_eq!(asked.most_clients(), 256);
    }

    #[test]
    fn a_quick_run_is_small_in_everything() {
        let plan = plan(&["all", "--quick"]);
        assert_eq!((plan.seconds, plan.warm_up_seconds, plan.rounds, plan.rate(20_000)), (1, 1, 1, 1_000));
        assert_eq!(clients(&plan, "hot-row"), [1, 8]);
        let most = plan.scenarios.iter().map(|scenario| plan.rows(scenario)).max();
        assert_eq!(most, Some(150_000), "some requests use up a hundred rows");
    }

    #[test]
    fn an_open_loop_has_its_own_rate_unless_another_is_requested() {
        assert_eq!(plan(&["all"]).rate(10_000), 10_000);
        assert_eq!(plan(&["all", "--rate", "500"]).rate(10_000), 500);
    }

    #[test]
    fn only_named_techniques_are_run() {
        let plan = plan(&["hot-row", "--techniques", "hotrow,direct"]);
        let names: Vec<_> =
            plan.techniques(plan.scenarios[0]).iter().map(|technique| technique.name).collect();
        assert_eq!(names, ["direct", "hotrow"]);
    }

    #[test]
    fn reports_of_different_times_and_scenarios_have_different_folders() {
        let folder = plan(&["single"]).out.to_string_lossy().into_owned();
        assert!(folder.starts_with("bench-results/20") && folder.ends_with("Z-single"), "{folder}");
    }
}
