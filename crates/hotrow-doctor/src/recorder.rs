//! Collects samples, with each statement's text once.

use std::collections::HashMap;
use std::time::Duration;

use hotrow_core::normalise::Normaliser;

use crate::recording::Statement;
use crate::sample::Sample;
use crate::samples::{Entries, Samples};

/// Different statements that are kept. Later ones have no text.
pub const STATEMENTS_MAX: usize = 1_000;
/// Values of one statement that are kept, and the characters of each.
const VALUES_MAX: usize = 8;
const VALUE_CHARS_MAX: usize = 100;

/// Collects samples.
#[derive(Debug)]
pub struct Recorder {
    /// The samples so far.
    pub samples: Samples<Sample>,
    /// The statements so far.
    pub statements: Vec<Statement>,
    index: HashMap<Vec<u8>, usize>,
    normaliser: Normaliser,
}

impl Recorder {
    /// Begins with this time between samples.
    pub fn new(interval: Duration) -> Self {
        Self {
            samples: Samples::new(interval),
            statements: Vec::new(),
            index: HashMap::new(),
            normaliser: Normaliser::new(),
        }
    }

    /// Adds a sample. Texts of statements become indexes.
    pub fn add(&mut self, mut sample: Sample) {
        for session in &mut sample.sessions {
            if let Some(query) = session.query.take().filter(|query| *query != "<insufficient privilege>") {
                let (statement, values) = self.statement(&query);
                (session.statement, session.values) = (statement, values);
            }
        }
        self.samples.add(sample);
    }

    /// The index of a statement, and the first values of its text.
    pub fn statement(&mut self, query: &str) -> (Option<usize>, Vec<String>) {
        let shape = self.normaliser.run(query);
        let values = shape.literals().take(VALUES_MAX).map(|literal| {
            String::from_utf8_lossy(literal.value).chars().take(VALUE_CHARS_MAX).collect::<String>()
        });
        let values = values.collect();
        if let Some(known) = self.index.get(shape.signature) {
            return (Some(*known), values);
        }
        if self.statements.len() >= STATEMENTS_MAX {
            return (None, values);
        }
        let types = shape.literals().map(|literal| literal.type_oid).collect();
        self.statements.push(Statement { shape: shape.shape.to_owned(), types, ..Statement::default() });
        self.index.insert(shape.signature.to_owned(), self.statements.len() - 1);
        (Some(self.statements.len() - 1), values)
    }
}

impl Entries for Sample {
    fn entries(&self) -> usize {
        1 + self.sessions.len() + self.locks.len() + self.rows.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::Session;

    fn sample(at_us: i64, queries: &[&str]) -> Sample {
        let session = |query: &&str| Session { query: Some((*query).to_owned()), ..Session::default() };
        Sample { at_us, sessions: queries.iter().map(session).collect(), ..Sample::default() }
    }

    #[test]
    fn a_statement_with_other_values_is_the_same_statement() {
        let mut recorder = Recorder::new(Duration::from_millis(50));
        recorder.add(sample(1, &["update t set a = 1 where id = 7", "update t set a = 2 where id = 8"]));
        let sessions = &recorder.samples.kept[0].sessions;
        assert_eq!((sessions[0].statement, sessions[1].statement), (Some(0), Some(0)));
        assert_eq!(sessions[1].values, ["2", "8"]);
        assert_eq!(recorder.statements[0].shape, "update t set a = $1 where id = $2");
    }

    #[test]
    fn statements_and_values_are_bounded() {
        let mut recorder = Recorder::new(Duration::from_millis(50));
        for at in 0..=STATEMENTS_MAX as i64 {
            recorder.add(sample(at, &[&format!("select * from t{at}")]));
        }
        assert_eq!(recorder.statements.len(), STATEMENTS_MAX);
        let long = format!("select '{}'", "x".repeat(5_000));
        assert_eq!(recorder.statement(&long).1[0].len(), VALUE_CHARS_MAX);
    }
}
