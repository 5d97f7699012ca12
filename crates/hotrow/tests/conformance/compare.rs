//! Compares a suite's two runs: which tests fail only through the gateway, and which of those are known. Pure.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::suite::{Outcome, Outcomes};

/// `conformance/exceptions.toml`: tests that may fail only through the gateway, with reasons.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Exceptions {
    exception: Vec<Exception>,
}

/// Tests of a suite that fail for one reason.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Exception {
    suite: String,
    /// Names, or beginnings of names followed by `*`.
    tests: Vec<String>,
    /// The difference. `docs/differences.md` lists it too.
    reason: String,
    /// The failure depends on timing or on the server's version, and need not occur each time.
    #[serde(default)]
    sometimes: bool,
}

/// A test that fails only through the gateway.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Difference {
    pub test: String,
    pub message: String,
    /// The reason, if the failure is known.
    pub reason: Option<String>,
}

/// A suite's result.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Comparison {
    pub tests: usize,
    pub skipped: usize,
    pub failed_direct: usize,
    pub failed_through: usize,
    pub differences: Vec<Difference>,
    /// Tests that failed once and passed alone, or failed alone directly as well.
    pub fickle: Vec<Difference>,
    /// Exceptions of which no test fails any more.
    pub stale: Vec<String>,
}

impl Exceptions {
    /// The reason why this test may fail.
    pub fn reason(&self, suite: &str, test: &str) -> Option<&str> {
        let known = self.exception.iter().filter(|exception| exception.suite == suite);
        known
            .filter(|exception| exception.tests.iter().any(|pattern| matches(pattern, test)))
            .map(|exception| exception.reason.as_str())
            .next()
    }

    /// Exceptions of a suite that apply to none of these tests.
    fn stale<'a>(&self, suite: &str, failed: impl Iterator<Item = &'a str> + Clone) -> Vec<String> {
        let known =
            self.exception.iter().filter(|exception| exception.suite == suite && !exception.sometimes);
        known
            .flat_map(|exception| &exception.tests)
            .filter(|pattern| !failed.clone().any(|test| matches(pattern, test)))
            .cloned()
            .collect()
    }

    /// The names of all suites in it.
    pub fn suites(&self) -> BTreeSet<&str> {
        self.exception.iter().map(|exception| exception.suite.as_str()).collect()
    }
}

fn matches(pattern: &str, test: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(beginning) => test.starts_with(beginning),
        None => pattern == test,
    }
}

/// The tests that fail through the gateway and pass directly. A test without an outcome has failed.
pub fn only_through(direct: &Outcomes, through: &Outcomes) -> Vec<(String, String)> {
    let passed = direct.iter().filter(|(_, outcome)| **outcome == Outcome::Passed).map(|(test, _)| test);
    let lost = passed.filter_map(|test| match through.get(test) {
        Some(Outcome::Passed) => None,
        Some(Outcome::Failed(message)) => Some((test.clone(), message.clone())),
        Some(Outcome::Skipped) => Some((test.clone(), "skipped".to_owned())),
        None => Some((test.clone(), "not run".to_owned())),
    });
    let new = through.iter().filter(|(test, _)| !direct.contains_key(*test));
    let new = new.filter_map(|(test, outcome)| match outcome {
        Outcome::Failed(message) => Some((test.clone(), message.clone())),
        _ => None,
    });
    lost.chain(new).collect()
}

/// Compares both runs. `fickle` has the tests that behaved differently when they were run again alone.
pub fn compare(
    suite: &str,
    (direct, through): (&Outcomes, &Outcomes),
    fickle: &BTreeSet<String>,
    exceptions: &Exceptions,
) -> Comparison {
    let is_failure = |outcome: &&Outcome| matches!(outcome, Outcome::Failed(_));
    let failed = through.iter().filter(|(_, outcome)| is_failure(outcome)).map(|(test, _)| test.as_str());
    let lost = only_through(direct, through);
    let needed = failed.chain(lost.iter().map(|(test, _)| test.as_str()));
    let stale = exceptions.stale(suite, needed);
    let (fickle, differences): (Vec<_>, Vec<_>) = lost
        .into_iter()
        .map(|(test, message)| {
            let reason = exceptions.reason(suite, &test).map(str::to_owned);
            Difference { test, message, reason }
        })
        .partition(|difference| fickle.contains(&difference.test));
    Comparison {
        tests: direct.len(),
        skipped: direct.values().filter(|outcome| **outcome == Outcome::Skipped).count(),
        failed_direct: direct.values().filter(is_failure).count(),
        failed_through: through.values().filter(is_failure).count(),
        differences,
        fickle,
        stale,
    }
}

impl Comparison {
    /// The faults, one line each.
    pub fn faults(&self) -> impl Iterator<Item = String> {
        let unknown = self.differences.iter().filter(|difference| difference.reason.is_none());
        let unknown = unknown.map(|difference| {
            format!("{} fails only through the gateway: {}", difference.test, difference.message)
        });
        unknown.chain(self.stale.iter().map(|test| format!("{test} is an exception and does not fail")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcomes(list: &[(&str, char)]) -> Outcomes {
        let outcome = |letter| match letter {
            '+' => Outcome::Passed,
            '0' => Outcome::Skipped,
            _ => Outcome::Failed("broken".to_owned()),
        };
        list.iter().map(|(test, letter)| ((*test).to_owned(), outcome(*letter))).collect()
    }

    fn exceptions(text: &str) -> Exceptions {
        toml::from_str(text).unwrap()
    }

    #[test]
    fn tests_that_fail_directly_too_are_not_differences() {
        let direct = outcomes(&[("a", '+'), ("b", '-'), ("c", '+'), ("d", '+'), ("e", '0'), ("f", '+')]);
        let through = outcomes(&[("a", '+'), ("b", '-'), ("c", '-'), ("e", '0'), ("f", '0'), ("new", '-')]);
        let lost: Vec<_> = only_through(&direct, &through).into_iter().map(|(test, _)| test).collect();
        assert_eq!(lost, ["c", "d", "f", "new"]);
    }

    #[test]
    fn unknown_differences_and_stale_exceptions_are_faults() {
        let (direct, through) =
            (outcomes(&[("a[1]", '+'), ("b", '+')]), outcomes(&[("a[1]", '-'), ("b", '+')]));
        let known = exceptions("[[exception]]\nsuite = 's'\ntests = ['a[*']\nreason = 'r'");
        let none = BTreeSet::new();
        let faults = |suite, exceptions: &Exceptions, fickle: &BTreeSet<String>| {
            compare(suite, (&direct, &through), fickle, exceptions).faults().count()
        };
        assert_eq!(faults("s", &known, &none), 0);
        assert_eq!(faults("another", &known, &none), 1);
        let stale = exceptions("[[exception]]\nsuite = 's'\ntests = ['a[1]', 'b']\nreason = 'r'");
        assert_eq!(faults("s", &stale, &none), 1);
        let may =
            exceptions("[[exception]]\nsuite = 's'\ntests = ['a*', 'b']\nreason = 'r'\nsometimes = true");
        assert_eq!(faults("s", &may, &none), 0);
        let fickle = BTreeSet::from(["a[1]".to_owned()]);
        assert_eq!(faults("another", &known, &fickle), 0);
    }
}
