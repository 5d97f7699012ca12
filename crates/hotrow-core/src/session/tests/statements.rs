//! Statements of the model of PostgreSQL: on rows, cursors, names and settings.

use hotrow_wire::backend::{self, Status};
use hotrow_wire::put_frame;

use super::postgres::{Backend, Database, Failure, failure, number, put_row, put_text_row, unknown};
use crate::session::simple::put_shown;

/// The beginning of the names of the gateway's settings. As the server knows no such names, it lists no such settings.
pub const GATEWAYS: &str = "hotrow.";

/// A temporary table is kept among the settings, which transactions roll back in the same way.
pub const TEMPORARY: &str = "temp.x";

impl Backend {
    pub(super) fn run_on_rows(
        &mut self,
        words: &[&str],
        values: &[String],
        database: &mut Database,
    ) -> Result<(), Failure> {
        if self.is_cancelled {
            return failure("57014", "canceling statement due to user request");
        }
        match *words {
            // A call that takes one, if there is one.
            ["update", "t", "set", "n", "=", "n", "-", "1", .., "id", "=", id] => {
                let id = number(id, values);
                let before = database.rows.get(&id).copied().unwrap_or(0);
                let takes = before > 0;
                if takes {
                    self.change(id, before - 1, database);
                }
                self.complete(if takes { "DELETE 1" } else { "DELETE 0" });
            }
            ["update", "t", "set", "n", "=", "n", "+", by, "where", "id", "=", id, ref returning @ ..] => {
                let (by, id) = (number(by, values) as i64, number(id, values));
                let before = database.rows.get(&id).copied().unwrap_or(0);
                self.change(id, before + by, database);
                if !returning.is_empty() {
                    put_row(before + by, &mut self.kept);
                }
                self.complete("UPDATE 1");
            }
            ["select", "pg_listening_channels()"] => {
                let channels = self.shown_channels();
                put_text_row(&channels, &mut self.kept);
                self.complete("SELECT 1");
            }
            ["select", constant] => {
                put_text_row(constant, &mut self.kept);
                self.complete("SELECT 1");
            }
            ["update", ..] => return failure("22012", "division by zero"),
            ["select", "n", "from", "t", "where", "id", "=", id] => {
                put_row(database.value(number(id, values)), &mut self.kept);
                self.complete("SELECT 1");
            }
            _ => return unknown(words),
        }
        Ok(())
    }

    /// A write of which its client was told.
    pub(super) fn run_counted(
        &mut self,
        statement: &str,
        values: &[String],
        database: &mut Database,
    ) -> Result<(), Failure> {
        let (_, write) = statement.split_once("as (\n").expect("the gateway's text");
        let (write, _) = write.split_once("\nreturning 1)").expect("the gateway's text");
        let before = self.kept.len();
        self.run_on_rows(&write.split_whitespace().collect::<Vec<_>>(), values, database)?;
        let changed_one = self.kept.ends_with(b"UPDATE 1\0");
        self.kept.truncate(before);
        if !changed_one {
            return failure("22P02", "hotrow_told_one_row_found_0");
        }
        self.complete("SELECT 0");
        Ok(())
    }

    fn change(&mut self, row: u64, value: i64, database: &mut Database) {
        let before = database.rows.insert(row, value).unwrap_or(0);
        self.undo.push((row, before));
        self.xid.get_or_insert_with(|| {
            database.last_xid += 1;
            database.last_xid
        });
    }

    /// COPY TO: the server sends all rows at once.
    pub(super) fn copy_out(&mut self) {
        put_frame(&mut self.kept, b'H', |out| out.extend_from_slice(&[0, 0, 1, 0, 0]));
        put_frame(&mut self.kept, backend::tag::COPY_DATA, |out| out.extend_from_slice(b"1\n"));
        put_frame(&mut self.kept, b'c', |_| {});
        self.complete("COPY 1");
    }

    /// A cursor is a portal. It reads the row when it is declared.
    pub(super) fn run_on_cursors(&mut self, words: &[&str], database: &Database) -> Result<(), Failure> {
        match *words {
            ["declare", name, "cursor", .., row] => {
                if self.status == Status::Idle {
                    return failure("25P01", "DECLARE CURSOR can only be used in transaction blocks");
                }
                if self.portals.contains_key(name) {
                    return failure("42P03", format!("cursor \"{name}\" already exists"));
                }
                let value = database.value(number(row, &[])).to_string();
                self.put_portal(name, "", vec![value]);
                self.complete("DECLARE CURSOR");
            }
            ["fetch", name] => {
                let Some(cursor) = self.portals.get_mut(name) else { return no_cursor(name) };
                let is_done = std::mem::replace(&mut cursor.is_done, true);
                if !is_done {
                    put_text_row(&cursor.values[0], &mut self.kept);
                }
                self.complete(if is_done { "FETCH 0" } else { "FETCH 1" });
            }
            ["close", name] => {
                if self.portals.remove(name).is_none() {
                    return no_cursor(name);
                }
                self.complete("CLOSE CURSOR");
            }
            _ => return unknown(words),
        }
        Ok(())
    }

    pub(super) fn run_on_names(&mut self, words: &[&str]) -> Result<(), Failure> {
        match *words {
            ["deallocate", "all"] => {
                self.statements.retain(|name, _| name.is_empty());
                self.complete("DEALLOCATE ALL");
            }
            ["deallocate", name] => {
                if self.statements.remove(name).is_none() {
                    return failure("26000", format!("prepared statement \"{name}\" does not exist"));
                }
                self.complete("DEALLOCATE");
            }
            ["prepare", name, ..] => {
                if self.statements.contains_key(name) {
                    return failure("42P05", format!("prepared statement \"{name}\" already exists"));
                }
                self.statements.insert(name.to_owned(), "select n from t where id = 999".to_owned());
                self.complete("PREPARE");
            }
            _ => return unknown(words),
        }
        Ok(())
    }

    pub(super) fn run_on_settings(&mut self, words: &[&str], several: bool) -> Result<(), Failure> {
        match *words {
            ["set", "local", name, _, value] => {
                if self.status == Status::Transaction || several {
                    self.keep_settings();
                    let value = value.trim_matches('\'').to_owned();
                    let before = self.settings.insert(name.to_owned(), value);
                    self.hidden.entry(name.to_owned()).or_insert(before);
                } else {
                    self.error("WARNING", "25P01", "SET LOCAL can only be used in transaction blocks");
                }
                self.complete("SET");
            }
            ["set", name, _, value] => {
                self.keep_settings();
                self.hidden.remove(name);
                self.settings.insert(name.to_owned(), value.trim_matches('\'').to_owned());
                self.complete("SET");
            }
            ["show", name] if name.starts_with(GATEWAYS) => {
                let value = self.setting(name).to_owned();
                put_shown(name, &value, &mut self.kept);
                self.complete("SHOW");
            }
            ["show", name] => {
                let value = self.setting(name).to_owned();
                put_text_row(&value, &mut self.kept);
                self.complete("SHOW");
            }
            ["reset", name] if name.starts_with(GATEWAYS) => {
                self.keep_settings();
                self.hidden.remove(name);
                self.settings.remove(name);
                self.complete("RESET");
            }
            ["reset", "all"] => {
                self.keep_settings();
                self.hidden.clear();
                self.settings.retain(|name, _| name == TEMPORARY);
                self.complete("RESET");
            }
            ["discard", "all"] => {
                if self.status != Status::Idle || several {
                    return failure("25001", "DISCARD ALL cannot run inside a transaction block");
                }
                self.settings.clear();
                self.listens.channels.clear();
                self.statements.retain(|name, _| name.is_empty());
                self.complete("DISCARD ALL");
            }
            ["reset", name] => {
                self.keep_settings();
                self.hidden.remove(name);
                self.settings.remove(name);
                self.complete("RESET");
            }
            _ => return unknown(words),
        }
        Ok(())
    }

    pub(super) fn run_on_tables(&mut self, words: &[&str]) -> Result<(), Failure> {
        self.keep_settings();
        match *words {
            ["create", "temp", ..] => {
                self.settings.insert(TEMPORARY.to_owned(), String::new());
                self.complete("CREATE TABLE");
            }
            ["drop", ..] => {
                if self.settings.remove(TEMPORARY).is_none() {
                    return failure("42P01", "table \"x\" does not exist");
                }
                self.complete("DROP TABLE");
            }
            // Another one prepares a statement.
            ["create", "view", "q", ..] => {
                self.statements.insert("q".to_owned(), "select n from t where id = 999".to_owned());
                self.complete("CREATE VIEW");
            }
            // Another one deallocates all statements.
            ["create", "view", ..] => {
                self.statements.retain(|name, _| name.is_empty());
                self.complete("CREATE VIEW");
            }
            // An event trigger changes settings, which the command does not show.
            ["create", ..] => {
                self.settings.insert("work_mem".to_owned(), "1MB".to_owned());
                self.settings.insert("app.made".to_owned(), "1".to_owned());
                self.complete("CREATE TABLE");
            }
            _ => return unknown(words),
        }
        Ok(())
    }
}

fn no_cursor(name: &str) -> Result<(), Failure> {
    failure("34000", format!("cursor \"{name}\" does not exist"))
}
