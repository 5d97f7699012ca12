//! What is known of a database's catalog: facts about single objects, each with the time of the question. Facts about a
//! statement are put together from them. Nothing here asks the server: a lack of facts is a list of questions.
//!
//! A fact belongs to an object and not to a statement, so a new statement about known objects needs no question. A fact is valid
//! in one epoch of the catalog, and for a limited time. Both limits are the caller's, for each use.

mod known;
mod questions;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

pub use questions::{Answers, Lack, Questions};

use crate::classify::facts::{Facts, FunctionFact, Rules, TableFacts};
use crate::classify::judge::decision::{moves_any_sequence, names_to_look_up};
use crate::classify::judge::namesakes::names_in_sources;
use crate::classify::read::candidate::Candidate;
use known::Known;

/// When a question was asked: the epoch of the catalog, and the time since the caller's start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Asked {
    /// The epoch. A fact of another epoch is not used.
    pub epoch: u64,
    /// The time. A fact that is older than the limit is not used.
    pub at: Duration,
}

/// Facts with the time of the earliest question among them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dated<T> {
    /// The facts.
    pub value: T,
    /// When the oldest of them was asked for.
    pub asked: Duration,
}

/// The objects that no text names: users' casts between built-in types, and settings that decide how constants are read.
const UNNAMED: &str = "";

/// What is known of a catalog, in bounded memory.
#[derive(Debug, Default)]
pub struct Catalog {
    /// By the name in statements, quoted as `to_regclass` takes it.
    tables: Known<Option<Arc<TableFacts>>>,
    /// Objects outside `pg_catalog`, by name. Those without a name are known as [`UNNAMED`].
    objects: Known<Arc<[FunctionFact]>>,
    /// Rules, by the function's name.
    rules: Known<Arc<Rules>>,
    /// Whether a sequence has a cache.
    cached_sequences: Known<bool>,
}

impl Catalog {
    /// The facts about a candidate, and about each statement in its WITH. `since` is the earliest question that counts.
    pub fn facts(&mut self, candidate: &Candidate, since: Asked) -> Result<Dated<Facts>, Lack> {
        let mut search = Search::new(self, since);
        let mut facts = search.part(candidate);
        facts.with = candidate.with.iter().map(|common| search.part(&common.statement)).collect();
        search.end(facts)
    }

    /// Notes answers to questions that were asked at this time.
    pub fn put(&mut self, answers: Answers, asked: Asked) {
        for (name, table) in answers.tables {
            let weight = table.as_ref().map_or(0, |table| table.as_ref().map_or(0, weight_of_table));
            self.tables.put(name, table.map(|table| table.map(Arc::new)), asked, weight);
        }
        if let Some(objects) = answers.objects {
            self.put_objects(answers.names, objects, asked);
        }
        for (name, rules) in answers.rules {
            self.rules.put(name, rules.map(Arc::new), asked, 0);
        }
        if let Some(cached) = answers.cached_sequences {
            self.cached_sequences.put(String::new(), cached, asked, 0);
        }
    }

    fn put_objects(
        &mut self,
        names: Vec<String>,
        objects: Result<Vec<FunctionFact>, super::Refusal>,
        asked: Asked,
    ) {
        for name in names {
            let of_name = objects.as_ref().map_err(Clone::clone).map(|objects| {
                let is_of_name = |fact: &&FunctionFact| match fact.is_unnamed() {
                    true => name == UNNAMED,
                    false => fact.name == name,
                };
                objects.iter().filter(is_of_name).cloned().collect::<Arc<[_]>>()
            });
            let weight = of_name.as_ref().map_or(0, |facts| facts.iter().map(weight_of_object).sum());
            self.objects.put(name, of_name, asked, weight);
        }
    }
}

fn weight_of_object(fact: &FunctionFact) -> usize {
    size_of::<FunctionFact>() + fact.source.as_ref().map_or(0, String::len)
}

/// The bytes of the parts that can be long.
fn weight_of_table(table: &TableFacts) -> usize {
    let texts = table.expressions.iter().map(String::len).sum::<usize>()
        + table.triggers.iter().map(|trigger| trigger.source.len()).sum::<usize>()
        + table.views.iter().map(|view| view.definition.len()).sum::<usize>();
    texts + 200 * table.columns.len() + size_of::<u32>() * table.partitions.len()
}

/// Facts that are looked for, and those that are missing.
struct Search<'c> {
    known: &'c mut Catalog,
    since: Asked,
    /// The time of the earliest question.
    asked: Option<Duration>,
    lack: Lack,
}

impl<'c> Search<'c> {
    fn new(known: &'c mut Catalog, since: Asked) -> Self {
        Search { known, since, asked: None, lack: Lack::default() }
    }

    fn end<T>(self, value: T) -> Result<Dated<T>, Lack> {
        match self.lack.is_none() {
            true => Ok(Dated { value, asked: self.asked.unwrap_or(self.since.at) }),
            false => Err(self.lack),
        }
    }

    /// Counts a fact that was asked at this time. Returns its value, unless the server has refused the question.
    fn found<T>(&mut self, (value, at): (Result<T, super::Refusal>, Duration)) -> Option<T> {
        self.asked = Some(self.asked.map_or(at, |asked| asked.min(at)));
        value.map_err(|refusal| self.lack.refusal = Some(refusal.into())).ok()
    }

    /// The table that a name means. The outer None: it is not known.
    fn table(&mut self, name: &str) -> Option<Option<Arc<TableFacts>>> {
        match self.known.tables.get(name, self.since) {
            Some(found) => self.found(found),
            None => {
                self.lack.questions.tables.insert(name.to_owned());
                None
            }
        }
    }

    /// Adds the objects with these names.
    fn objects<'n>(&mut self, names: impl IntoIterator<Item = &'n str>, facts: &mut Vec<FunctionFact>) {
        for name in names {
            match self.known.objects.get(name, self.since) {
                Some(found) => facts.extend(self.found(found).iter().flat_map(|facts| facts.iter().cloned())),
                None => drop(self.lack.questions.objects.insert(name.to_owned())),
            }
        }
    }

    /// The objects with these names, those without a name, and those that are named in the sources of functions.
    fn objects_and_sources(&mut self, names: &[String]) -> Vec<FunctionFact> {
        let mut facts = Vec::new();
        self.objects(names.iter().map(String::as_str).chain([UNNAMED]), &mut facts);
        let mut more = names_in_sources(&facts);
        more.retain(|name| !names.contains(name));
        self.objects(more.iter().map(String::as_str), &mut facts);
        facts
    }

    /// The facts about one part of a statement.
    fn part(&mut self, candidate: &Candidate) -> Facts {
        let named = candidate.table.as_ref().map(|name| self.table(&name.to_regclass()));
        let table = named.flatten().flatten().map(Arc::unwrap_or_clone);
        let names = names_to_look_up(candidate, table.as_ref());
        let functions = self.objects_and_sources(&names);
        let rules = match &candidate.call {
            Some(call) => match self.known.rules.get(&call.function.name, self.since) {
                Some(found) => self.found(found),
                None => {
                    self.lack.questions.rules.insert(call.function.name.clone());
                    None
                }
            },
            None => None,
        };
        let cached_sequences = moves_any_sequence(candidate, table.as_ref()) && self.cached_sequences();
        let rules = rules.map(Arc::unwrap_or_clone).unwrap_or_default();
        Facts { table, functions, rules, cached_sequences, with: Vec::new() }
    }

    fn cached_sequences(&mut self) -> bool {
        match self.known.cached_sequences.get("", self.since) {
            Some(found) => self.found(found).unwrap_or(true),
            None => {
                self.lack.questions.cached_sequences = true;
                true
            }
        }
    }
}
