//! Scripts that the model and the SQL both run: a line is a command and its answer. Several commands with `;` between them are
//! one batch, `pass 2` lets time pass, and `error` stands for a call that raises. A [`Runner`] runs the commands.

use crate::{Command, Id, ParseError, Time, World};

/// Every script, by name.
pub const SCRIPTS: [(&str, &str); 3] = [
    ("counters", include_str!("../scripts/counters.script")),
    ("sales", include_str!("../scripts/sales.script")),
    ("requests", include_str!("../scripts/requests.script")),
];

/// An implementation that answers commands. New reservations are r1, r2, ... in the order of their creation.
pub trait Runner {
    /// Runs one call, or one batch of calls of the same function. None: it raised.
    fn run(&mut self, commands: &[Command]) -> Option<Vec<String>>;
    /// Lets time pass.
    fn pass(&mut self, time: Time);
}

#[derive(Debug, Default)]
pub struct Model {
    /// The state.
    pub world: World,
    pub at: Time,
}

impl Runner for Model {
    fn run(&mut self, commands: &[Command]) -> Option<Vec<String>> {
        let function = std::mem::discriminant(commands.first()?);
        assert!(
            commands.iter().all(|command| std::mem::discriminant(command) == function),
            "a batch has one function"
        );
        let mut next = self.world.clone();
        let mut answers = Vec::new();
        for command in commands {
            let mut command = command.clone();
            let ids: Vec<Id> = (1..=9).map(|number| Id(next.reservations() as u128 + number)).collect();
            command.give(&ids);
            answers.push(next.apply(&command, self.at).ok()?.to_string());
        }
        self.world = next;
        Some(answers)
    }

    fn pass(&mut self, time: Time) {
        self.at += time;
    }
}

/// A line of a script that failed.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The line cannot be read.
    #[error("line {line}: {source}")]
    Unreadable {
        /// The line's number.
        line: usize,
        /// The reason.
        source: ParseError,
    },
    /// The answer differs.
    #[error("line {line}: {text}\n  the answer is: {answer}")]
    Different {
        /// The line's number.
        line: usize,
        /// The line's text.
        text: String,
        /// The answer that was given.
        answer: String,
    },
}

/// Runs a script up to the first line that fails.
pub fn run(script: &str, runner: &mut impl Runner) -> Result<(), Failure> {
    for (index, text) in script.lines().enumerate() {
        let line = index + 1;
        let text = text.split("--").next().unwrap_or_default().trim();
        if text.is_empty() {
            continue;
        }
        let unreadable = |source| Failure::Unreadable { line, source };
        if let Some(time) = text.strip_prefix("pass ") {
            let time = time.parse().map_err(|_| unreadable(ParseError::new("a number", time)))?;
            runner.pass(time);
            continue;
        }
        let (commands, expected) =
            text.split_once(" -> ").ok_or_else(|| unreadable(ParseError::new("`->`", text)))?;
        let commands =
            commands.split(';').map(str::parse).collect::<Result<Vec<_>, _>>().map_err(unreadable)?;
        let answer = runner.run(&commands).map_or_else(|| "error".to_owned(), |answers| answers.join("; "));
        if answer != expected.trim() {
            return Err(Failure::Different { line, text: text.to_owned(), answer });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_model_gives_the_answers_of_the_scripts() {
        for (name, script) in SCRIPTS {
            run(script, &mut Model::default()).unwrap_or_else(|failure| panic!("{name}: {failure}"));
        }
    }

    #[test]
    fn the_scripts_call_every_function() {
        let lines = || SCRIPTS.iter().flat_map(|(_, script)| script.lines());
        let calls = |function: &str| {
            let mut commands = lines()
                .filter_map(|line| line.split_once(" -> "))
                .flat_map(|(commands, _)| commands.split(';'));
            commands.any(|command| command.split_whitespace().next() == Some(function))
        };
        let forgotten: Vec<_> = Command::FUNCTIONS.iter().filter(|function| !calls(function)).collect();
        assert!(
            forgotten.is_empty(),
            "no script calls {forgotten:?}; add calls with their answers to the area's script in crates/hotrow-model/scripts/"
        );
    }

    #[test]
    fn a_failing_script_names_its_line() {
        let failure = run("increment a -> 1 1 ok\nincrement a -> 1 2 ok", &mut Model::default()).unwrap_err();
        assert_eq!(failure.to_string(), "line 2: increment a -> 1 2 ok\n  the answer is: 2 2 ok");
        for unreadable in ["increment a", "incremnet a -> 1", "increment a x -> 1", "increment a 1 2 -> 1"] {
            let failure = run(unreadable, &mut Model::default()).unwrap_err();
            assert!(matches!(failure, Failure::Unreadable { line: 1, .. }), "{failure}");
        }
    }
}
