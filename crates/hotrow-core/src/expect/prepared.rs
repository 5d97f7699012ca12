//! The gateway's statements that are prepared on a connection.

use std::collections::{HashMap, VecDeque};

use crate::limits;

/// The name under which a statement is prepared on the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum StatementName {
    Unnamed,
    /// The name of the statement with this number.
    Named(u64),
}

/// A statement that is prepared, or that will be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Preparation {
    /// Its name on the server.
    pub name: StatementName,
    /// Its number.
    pub statement: u64,
    /// The time of its Parse, as an ascending number. The statement has the types of that time.
    pub parsed: u64,
}

impl Preparation {
    /// A statement under its own name.
    pub fn named(statement: u64, parsed: u64) -> Self {
        Preparation { name: StatementName::Named(statement), statement, parsed }
    }

    pub fn unnamed(statement: u64, parsed: u64) -> Self {
        Preparation { name: StatementName::Unnamed, statement, parsed }
    }
}

/// The statements prepared on a connection, according to the server's replies. The oldest is closed for a new
/// one.
#[derive(Debug, Default)]
pub struct PreparedStatements {
    /// The time of each Parse by the statement's number.
    statements: HashMap<u64, u64>,
    order: VecDeque<u64>,
    unnamed: Option<Preparation>,
}

impl PreparedStatements {
    /// Whether this statement is prepared under its name.
    pub fn has(&self, statement: u64) -> bool {
        self.statements.contains_key(&statement)
    }

    /// Records that it is prepared. Returns a statement to close if there are too many.
    pub fn add(&mut self, statement: u64) -> Option<u64> {
        self.set(StatementName::Named(statement), Some(Preparation::named(statement, 0)));
        let oldest = (self.order.len() > limits::PREPARED_MAX).then(|| self.order.pop_front()).flatten()?;
        self.statements.remove(&oldest);
        Some(oldest)
    }

    /// Records that the gateway has prepared it now.
    pub fn parsed(&mut self, statement: u64, parsed: u64) {
        self.set(StatementName::Named(statement), Some(Preparation::named(statement, parsed)));
    }

    /// Records that it is not prepared.
    pub fn forget(&mut self, statement: u64) {
        self.set(StatementName::Named(statement), None);
    }

    /// Records that no client's Parse gave it its present meaning.
    pub fn outdate(&mut self, statement: u64) {
        if let Some(parsed) = self.statements.get_mut(&statement) {
            *parsed = 0;
        }
    }

    /// Number of named statements.
    pub fn count(&self) -> usize {
        self.statements.len()
    }

    /// The statement under this name.
    pub(super) fn get(&self, name: StatementName) -> Option<Preparation> {
        match name {
            StatementName::Unnamed => self.unnamed,
            StatementName::Named(statement) => {
                self.statements.get(&statement).map(|parsed| Preparation::named(statement, *parsed))
            }
        }
    }

    /// Records the statement under this name.
    pub(super) fn set(&mut self, name: StatementName, preparation: Option<Preparation>) {
        match (name, preparation) {
            (StatementName::Unnamed, preparation) => self.unnamed = preparation,
            (StatementName::Named(statement), Some(Preparation { parsed, .. })) => {
                if self.statements.insert(statement, parsed).is_none() {
                    self.order.push_back(statement);
                }
            }
            (StatementName::Named(statement), None) => {
                if self.statements.remove(&statement).is_some() {
                    self.order.retain(|other| *other != statement);
                }
            }
        }
    }

    /// The gateway has used the unnamed statement itself.
    pub fn forget_unnamed(&mut self) {
        self.unnamed = None;
    }

    /// Statements that can be closed if there are too many, the oldest first.
    pub(super) fn too_many(&self) -> impl Iterator<Item = u64> {
        let count = if self.order.len() >= limits::PREPARED_MAX { self.order.len() } else { 0 };
        self.order.iter().take(count).copied()
    }

    /// No statement is prepared any more.
    pub(super) fn clear(&mut self) {
        *self = PreparedStatements::default();
    }
}
