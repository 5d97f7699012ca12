//! Transactions of the model of PostgreSQL: BEGIN, COMMIT, ROLLBACK and savepoints, with their rows, settings and portals.

use std::collections::{BTreeMap, BTreeSet};

use hotrow_wire::backend::Status;

use super::notify::Position;
use super::postgres::{Backend, Database, Failure, failure};

/// The state to which a transaction can be rolled back.
#[derive(Clone, Debug)]
pub struct Savepoint {
    name: String,
    undo: usize,
    settings: BTreeMap<String, String>,
    hidden: BTreeMap<String, Option<String>>,
    portals: BTreeSet<usize>,
    channels: Position,
}

impl Backend {
    pub(super) fn commit(&mut self, database: &mut Database) {
        let changed: BTreeSet<u64> = self.undo.drain(..).map(|(row, _)| row).collect();
        database.log.extend(changed.into_iter().map(|row| (row, database.rows[&row])));
        database.committed.extend(self.xid.take());
        self.settings_before = None;
        for (name, before) in std::mem::take(&mut self.hidden) {
            match before {
                Some(before) => self.settings.insert(name, before),
                None => self.settings.remove(&name),
            };
        }
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
        self.hidden.clear();
        self.savepoints.clear();
        self.portals.clear();
    }

    /// An error rolls back to the last savepoint, or the whole transaction.
    pub(super) fn abort(&mut self, database: &mut Database) {
        if self.status == Status::Idle {
            return self.roll_back(database);
        }
        let savepoint = self.savepoints.last().cloned();
        if std::mem::replace(&mut self.status, Status::Failed) != Status::Failed {
            let stays =
                |number| savepoint.as_ref().is_some_and(|savepoint| savepoint.portals.contains(&number));
            let failing = self.portals.values_mut().filter(|portal| !stays(portal.number));
            failing.for_each(|portal| (portal.has_failed, portal.is_released) = (true, true));
        }
        match savepoint {
            Some(savepoint) => {
                self.undo(savepoint.undo, database);
                (self.settings, self.hidden) = (savepoint.settings, savepoint.hidden);
                self.listens.roll_back(savepoint.channels);
            }
            None => {
                self.undo(0, database);
                self.listens.roll_back((0, 0));
                self.xid = None;
                self.hidden.clear();
                if let Some(before) = self.settings_before.take() {
                    self.settings = before;
                }
            }
        }
    }

    /// The place of the latest savepoint with this name.
    fn savepoint(&self, name: &str) -> Result<usize, Failure> {
        match self.savepoints.iter().rposition(|savepoint| savepoint.name == name) {
            Some(place) => Ok(place),
            None => failure("3B001", format!("savepoint \"{name}\" does not exist")),
        }
    }

    pub(super) fn allowed(&self, statement: &str) -> Result<(), Failure> {
        let ends = matches!(statement, "commit" | "rollback") || statement.starts_with("rollback to ");
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
            ["savepoint" | "release", _] | ["rollback", "to", _] if !in_block => {
                let name = match words[0] {
                    "savepoint" => "SAVEPOINT",
                    "release" => "RELEASE SAVEPOINT",
                    _ => "ROLLBACK TO SAVEPOINT",
                };
                return failure("25P01", format!("{name} can only be used in transaction blocks"));
            }
            ["savepoint", name] => {
                self.savepoints.push(Savepoint {
                    name: name.to_string(),
                    undo: self.undo.len(),
                    settings: self.settings.clone(),
                    hidden: self.hidden.clone(),
                    portals: self.portals.values().map(|portal| portal.number).collect(),
                    channels: self.listens.position(),
                });
                self.complete("SAVEPOINT");
            }
            ["release", name] => {
                let place = self.savepoint(name)?;
                self.savepoints.truncate(place);
                self.complete("RELEASE");
            }
            ["rollback", "to", name] => {
                let place = self.savepoint(name)?;
                self.savepoints.truncate(place + 1);
                let savepoint = self.savepoints[place].clone();
                self.undo(savepoint.undo, database);
                (self.settings, self.hidden) = (savepoint.settings, savepoint.hidden);
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
