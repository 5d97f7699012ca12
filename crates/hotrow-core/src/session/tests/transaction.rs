//! Transactions of the model of PostgreSQL: BEGIN, COMMIT, ROLLBACK and savepoints, with their rows, settings and portals.

use std::collections::{BTreeMap, BTreeSet};

use hotrow_wire::backend::Status;

use super::notify::Position;
use super::postgres::{Backend, Database, Failure, failure};

/// The state to which a transaction can be rolled back.
#[derive(Clone, Debug)]
pub struct Savepoint {
    undo: usize,
    settings: BTreeMap<String, String>,
    portals: BTreeSet<usize>,
    channels: Position,
}

impl Backend {
    pub(super) fn commit(&mut self, database: &mut Database) {
        self.undo.clear();
        database.committed.extend(self.xid.take());
        self.settings_before = None;
        self.commit_channels(database);
        self.set_idle();
    }

    pub(super) fn roll_back(&mut self, database: &mut Database) {
        self.undo(0, database);
        self.listens.roll_back((0, 0));
        self.xid = None;
        if let Some(before) = self.settings_before.take() {
            self.settings = before;
        }
        self.set_idle();
    }

    fn undo(&mut self, start: usize, database: &mut Database) {
        for (row, before) in self.undo.drain(start..).rev() {
            database.rows.insert(row, before);
        }
    }

    fn set_idle(&mut self) {
        self.status = Status::Idle;
        self.savepoints.clear();
        self.portals.clear();
    }

    /// An error rolls back to the last savepoint, or the whole transaction.
    pub(super) fn abort(&mut self, database: &mut Database) {
        if self.status == Status::Idle {
            return self.roll_back(database);
        }
        self.status = Status::Failed;
        match self.savepoints.last().cloned() {
            Some(savepoint) => {
                self.undo(savepoint.undo, database);
                self.settings = savepoint.settings;
                self.listens.roll_back(savepoint.channels);
            }
            None => {
                self.undo(0, database);
                self.listens.roll_back((0, 0));
                self.xid = None;
                if let Some(before) = self.settings_before.take() {
                    self.settings = before;
                }
            }
        }
    }

    pub(super) fn allowed(&self, statement: &str) -> Result<(), Failure> {
        let ends = matches!(statement, "commit" | "rollback" | "rollback to a");
        if self.status == Status::Failed && !ends {
            return failure(
                "25P02",
                "current transaction is aborted, commands ignored until end of transaction block",
            );
        }
        Ok(())
    }

    pub(super) fn run_on_transaction(
        &mut self,
        words: &[&str],
        database: &mut Database,
    ) -> Result<(), Failure> {
        let in_block = self.status != Status::Idle;
        match words {
            ["begin"] => {
                if in_block {
                    self.error("WARNING", "25001", "there is already a transaction in progress");
                } else {
                    self.keep_settings();
                }
                self.status = Status::Transaction;
                self.complete("BEGIN");
            }
            ["savepoint", _] | ["rollback", "to", _] if !in_block => {
                let name = if words.len() == 2 { "SAVEPOINT" } else { "ROLLBACK TO SAVEPOINT" };
                return failure("25P01", format!("{name} can only be used in transaction blocks"));
            }
            ["savepoint", _] => {
                self.savepoints.push(Savepoint {
                    undo: self.undo.len(),
                    settings: self.settings.clone(),
                    portals: self.portals.values().map(|portal| portal.number).collect(),
                    channels: self.listens.position(),
                });
                self.complete("SAVEPOINT");
            }
            ["rollback", "to", name] => {
                let Some(savepoint) = self.savepoints.last().cloned() else {
                    return failure("3B001", format!("savepoint \"{name}\" does not exist"));
                };
                self.undo(savepoint.undo, database);
                self.settings = savepoint.settings;
                self.listens.roll_back(savepoint.channels);
                self.portals.retain(|_, portal| savepoint.portals.contains(&portal.number));
                self.status = Status::Transaction;
                self.complete("ROLLBACK");
            }
            _ => {
                if !in_block {
                    self.error("WARNING", "25P01", "there is no transaction in progress");
                }
                let commits = words[0] == "commit" && self.status != Status::Failed;
                if commits {
                    self.commit(database)
                } else {
                    self.roll_back(database)
                }
                self.complete(if commits { "COMMIT" } else { "ROLLBACK" });
            }
        }
        Ok(())
    }
}
