//! The scenarios of a program, and how its command line chooses among them. It does not know which they are.

use crate::scenario::Scenario;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

/// The scenarios of a program.
#[derive(Debug)]
pub struct Menu {
    /// Each scenario, in the order of `all`, which omits those that take long.
    pub scenarios: &'static [&'static Scenario],
    /// The beginnings of names that choose several scenarios, each with its help. Of a family, those that take long are
    /// omitted, unless all of them do.
    pub families: &'static [(&'static str, &'static str)],
    /// The help of `all`.
    pub all: &'static str,
}

/// The scenarios that a user has chosen.
#[derive(Debug, Clone)]
pub struct Choice {
    /// The name of the scenario or group on the command line and in the report's folder.
    pub name: String,
    /// The scenarios.
    pub scenarios: Vec<&'static Scenario>,
}

impl Menu {
    /// The parser of an argument that names a scenario or a group.
    pub fn parser(&'static self) -> impl TypedValueParser<Value = Choice> {
        let scenarios = self.scenarios.iter().map(|scenario| (scenario.name, scenario.shows));
        let names = scenarios.chain(self.families.iter().copied()).chain([("all", self.all)]);
        let values = names.map(|(name, help)| PossibleValue::new(name).help(help));
        PossibleValuesParser::new(values).map(|name| self.choose(name))
    }

    fn choose(&self, name: String) -> Choice {
        let named: Vec<_> = self.scenarios.iter().copied().filter(|scenario| scenario.name == name).collect();
        if !named.is_empty() {
            return Choice { name, scenarios: named };
        }
        let belongs = |scenario: &&Scenario| {
            let rest = scenario.name.strip_prefix(name.as_str());
            name == "all" || rest.is_some_and(|rest| rest.starts_with('-'))
        };
        let (long, short): (Vec<_>, Vec<_>) =
            self.scenarios.iter().copied().filter(belongs).partition(|scenario| scenario.takes_long);
        Choice { name, scenarios: if short.is_empty() { long } else { short } }
    }

    /// Checks that names are unique, that texts fit the chart, and that every baseline exists. For tests.
    ///
    /// # Panics
    /// If one of them is not as it must be.
    pub fn check(&self) {
        for (place, scenario) in self.scenarios.iter().enumerate() {
            let is_new = self.scenarios[..place].iter().all(|before| before.name != scenario.name);
            assert!(is_new, "{} exists twice", scenario.name);
            let length = scenario.shows.chars().count();
            assert!(length <= 130, "{}: {length} letters do not fit the chart", scenario.name);
            for (place, technique) in scenario.techniques.iter().enumerate() {
                let is_new = scenario.techniques[..place].iter().all(|before| before.name != technique.name);
                assert!(is_new, "{}: {} exists twice", scenario.name, technique.name);
                let baseline = scenario.technique(technique.against);
                assert!(
                    baseline.is_some_and(|baseline| baseline.against == baseline.name),
                    "{}: {} is compared with {}, which is not a baseline",
                    scenario.name,
                    technique.name,
                    technique.against
                );
            }
        }
    }
}
