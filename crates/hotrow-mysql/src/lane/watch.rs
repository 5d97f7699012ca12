//! The tables that a lane's connection watches, so that it need not ask for their definitions. No I/O.
//!
//! The question for a definition costs the server as much as forty updates of a row. HANDLER keeps a table open over transactions, under a
//! lock that ALTER, DROP and CREATE TRIGGER wait for. If one of them waits, the server closes the table at the next statement of the
//! connection, and a later read opens it again. A cursor that stands at the first row tells what has happened: before that row
//! there is nothing. But the cursor of a table that was opened again begins at its end, and finds the last row. It finds nothing,
//! too, if the table is empty, so this holds for a batch only that has left a row in the table.

use hotrow_mysql_core::questions::identifier;

/// Tables that are watched at once.
const WATCHED_MAX: usize = 64;

/// A table, and what is known of it.
#[derive(Debug)]
struct Watched {
    database: String,
    table: String,
    state: State,
}

#[derive(Debug, PartialEq, Eq)]
enum State {
    New,
    /// The server was asked to open it, and where its cursor stands is not known.
    Open,
    /// Its first row was read.
    AtFirst,
    /// This was its definition after the first row was read, and it has been open since then as far as is known.
    Known(String),
    /// The user cannot read it, or it has no such key.
    Refused,
}

/// The number of a watched table.
pub type Number = usize;

/// The tables of one connection.
#[derive(Debug, Default)]
pub struct Watches(Vec<Watched>);

impl Watches {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The number of a table. None if there is no room for one more.
    pub fn number(&mut self, database: &str, table: &str) -> Option<Number> {
        let is_it = |watched: &Watched| watched.database == database && watched.table == table;
        if let Some(number) = self.0.iter().position(is_it) {
            return Some(number);
        }
        if self.0.len() == WATCHED_MAX {
            return None;
        }
        let (database, table) = (database.to_owned(), table.to_owned());
        self.0.push(Watched { database, table, state: State::New });
        Some(self.0.len() - 1)
    }

    /// Whether its first row has to be read before its definition.
    pub fn needs_first(&self, number: Number) -> bool {
        !matches!(self.0[number].state, State::Known(_) | State::Refused)
    }

    /// It is opened. False if it was before.
    pub fn begin(&mut self, number: Number) -> bool {
        let is_new = self.0[number].state == State::New;
        if is_new {
            self.0[number].state = State::Open;
        }
        is_new
    }

    /// Whether this was its definition, unless it was closed since.
    pub fn knows(&self, number: Number, definition: &str) -> bool {
        matches!(&self.0[number].state, State::Known(known) if known == definition)
    }

    /// Its first row was asked for.
    pub fn at_first(&mut self, number: Number, was_read: bool) {
        self.0[number].state = if was_read { State::AtFirst } else { State::Refused };
    }

    /// It may have been closed.
    pub fn lost(&mut self, number: Number) {
        self.0[number].state = State::Open;
    }

    /// Its definition was read.
    pub fn learn(&mut self, number: Number, definition: &str) {
        let state = &mut self.0[number].state;
        match state {
            State::AtFirst => *state = State::Known(definition.to_owned()),
            State::Known(known) if known != definition => *state = State::Open,
            State::New | State::Open | State::Known(_) | State::Refused => {}
        }
    }

    /// The statement that opens it.
    pub fn open(&self, number: Number) -> String {
        let Watched { database, table, .. } = &self.0[number];
        format!("handler {}.{} open as h{number}", identifier(database), identifier(table))
    }

    /// The statements that close all. From then on, none is watched.
    pub fn close(&mut self) -> Vec<String> {
        (0..std::mem::take(&mut self.0).len()).map(|number| format!("handler h{number} close")).collect()
    }
}

/// The statement that reads its first row.
pub fn first(number: Number) -> String {
    format!("handler h{number} read `PRIMARY` first")
}

/// The statement that finds a row only if the table was closed.
pub fn previous(number: Number) -> String {
    format!("handler h{number} read `PRIMARY` prev")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_definition_is_known_if_the_first_row_was_read_before_it() {
        let mut watches = Watches::default();
        assert_eq!(watches.number("d", "t`x"), Some(0));
        assert_eq!(watches.open(0), "handler `d`.`t``x` open as h0");
        assert!(watches.begin(0) && !watches.begin(0));
        watches.learn(0, "a");
        assert!(watches.needs_first(0), "the table was not open when the definition was read");
        watches.at_first(0, true);
        watches.learn(0, "a");
        assert!(watches.knows(0, "a") && !watches.knows(0, "b") && !watches.needs_first(0));
        watches.learn(0, "b");
        assert!(!watches.knows(0, "b") && watches.needs_first(0), "it has changed, so the table was closed");
        watches.at_first(0, true);
        watches.learn(0, "b");
        watches.lost(0);
        watches.learn(0, "b");
        assert!(!watches.knows(0, "b"));
        watches.at_first(0, false);
        watches.learn(0, "b");
        assert!(!watches.knows(0, "b") && !watches.needs_first(0), "the user cannot read it");
        assert_eq!((watches.number("d", "t`x"), watches.number("e", "t`x")), (Some(0), Some(1)));
        assert_eq!(watches.close(), ["handler h0 close", "handler h1 close"]);
        assert!(watches.is_empty());
    }

    #[test]
    fn the_number_of_watched_tables_has_a_bound() {
        let mut watches = Watches::default();
        for number in 0..WATCHED_MAX {
            assert_eq!(watches.number("d", &number.to_string()), Some(number));
        }
        assert_eq!(watches.number("d", "one more"), None);
        assert_eq!(watches.number("d", "3"), Some(3));
    }
}
