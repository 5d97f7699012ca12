//! Questions to the catalog and their answers.

use std::collections::BTreeSet;

use crate::classify::Refusal;
use crate::classify::facts::{FunctionFact, Rules, TableFacts};

/// The objects about which the catalog has to be asked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Questions {
    /// Tables, as `to_regclass` takes their names.
    pub tables: BTreeSet<String>,
    /// Names of functions, operators, types and other objects. An empty name asks for what has no name.
    pub objects: BTreeSet<String>,
    /// Names of functions that may have rules.
    pub rules: BTreeSet<String>,
    /// Whether a sequence has a cache.
    pub cached_sequences: bool,
}

impl Questions {
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        *self == Questions::default()
    }

    /// Adds other ones.
    pub fn add(&mut self, others: Questions) {
        self.tables.extend(others.tables);
        self.objects.extend(others.objects);
        self.rules.extend(others.rules);
        self.cached_sequences |= others.cached_sequences;
    }
}

/// Why there are no facts about a statement.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lack {
    /// Questions that have to be asked.
    pub questions: Questions,
    /// The server's refusal of a question that was asked. No further question is needed then.
    pub refusal: Option<Box<Refusal>>,
}

impl Lack {
    pub(super) fn is_none(&self) -> bool {
        self.questions.is_empty() && self.refusal.is_none()
    }
}

/// The answers to questions. Each can be a refusal.
#[derive(Debug, Default)]
pub struct Answers {
    /// Tables by name. None: there is no table with the name.
    pub tables: Vec<(String, Result<Option<TableFacts>, Refusal>)>,
    /// The names of objects that were asked for.
    pub names: Vec<String>,
    /// The objects with these names.
    pub objects: Option<Result<Vec<FunctionFact>, Refusal>>,
    /// Rules by the function's name.
    pub rules: Vec<(String, Result<Rules, Refusal>)>,
    /// Whether a sequence has a cache.
    pub cached_sequences: Option<Result<bool, Refusal>>,
}
