//! What a batch asks after its statements, before its COMMIT: whether its mark is there, and whether its tables have the definitions
//! under which its statements were judged. No I/O.

use std::collections::VecDeque;

use hotrow_lane::lane::Failure;
use hotrow_mysql_wire::rows::Whole;

use crate::lane::Statement;
use crate::lane::watch::{self, Number, Watches};

/// A table of the batch.
#[derive(Debug)]
struct Table {
    database: String,
    name: String,
    definition: String,
    /// Its number, if it can be watched.
    watched: Option<Number>,
    /// A statement of the batch has left a row in it.
    has_row: bool,
    /// A statement may have run something for a row of it, such as a trigger.
    is_touched: bool,
    /// A statement on it is answered by the lane. Otherwise, all of them have left the batch, and nothing has to be known.
    is_answered: bool,
    is_checked: bool,
}

/// A question whose answer has not come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Question {
    Open,
    /// Reads the first row of a watched table.
    First(usize),
    /// Reads before it.
    Previous(usize),
    /// For the mark and for the table's definition.
    Definition(usize),
}

/// What a unit has done with rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Its conditions have met no row.
    Nothing,
    Changed,
    /// Something else, such as an error.
    Other,
}

/// The questions of a batch.
#[derive(Debug)]
pub struct Checks {
    lane: String,
    batch: u64,
    tables: Vec<Table>,
    /// The table of each unit, and whether the unit leaves a row there if it changes one.
    units: Vec<(usize, bool)>,
    asked: VecDeque<Question>,
    /// An error whose effect on the transaction is not known has come.
    is_doubtful: bool,
    failure: Option<Failure>,
}

impl Checks {
    /// Those of a batch with this number and these statements, and the statements that ask.
    pub fn new<'a>(
        lane: &str,
        batch: u64,
        statements: impl Iterator<Item = &'a Statement>,
        watches: &mut Watches,
    ) -> (Self, Vec<String>) {
        let (mut tables, mut units) = (Vec::<Table>::new(), Vec::new());
        let mut removes = false;
        for statement in statements {
            let is_it = |table: &Table| {
                (&table.database, &table.name, &table.definition)
                    == (&statement.database, &statement.table, &statement.definition)
            };
            let place = tables.iter().position(is_it).unwrap_or_else(|| {
                tables.push(Table::of(statement, watches));
                tables.len() - 1
            });
            units.push((place, !statement.removes));
            removes |= statement.removes;
        }
        let mut checks = Checks {
            lane: lane.to_owned(),
            batch,
            tables,
            units,
            asked: VecDeque::new(),
            is_doubtful: false,
            failure: None,
        };
        let mut statements = Vec::new();
        for place in 0..checks.tables.len() {
            let Table { watched, definition, .. } = &checks.tables[place];
            // A row that one statement has left can be removed by another one, also by way of a foreign key.
            match watched.filter(|number| !removes && watches.knows(*number, definition)) {
                Some(number) => {
                    statements.push(watch::previous(number));
                    checks.asked.push_back(Question::Previous(place));
                }
                None => checks.ask(place, watches, &mut statements),
            }
        }
        (checks, statements)
    }

    /// Asks for a table's definition, and watches the table from before that.
    fn ask(&mut self, place: usize, watches: &mut Watches, statements: &mut Vec<String>) {
        let Table { database, name, watched, .. } = &mut self.tables[place];
        if let Some(number) = watched.filter(|number| watches.needs_first(*number)) {
            if watches.begin(number) {
                statements.push(watches.open(number));
                self.asked.push_back(Question::Open);
            }
            statements.push(watch::first(number));
            self.asked.push_back(Question::First(place));
        }
        let (lane, database, name) = (&self.lane, quoted(database), quoted(name));
        statements.push(format!(
            "select concat(hotrow.marked('{lane}'), _binary ' ', coalesce(hotrow.definition({database}, {name}), _binary ''))"
        ));
        self.asked.push_back(Question::Definition(place));
    }

    /// A unit has left the batch.
    pub fn left(&mut self, unit: usize) {
        self.tables[self.units[unit].0].is_touched = true;
    }

    /// A unit was answered.
    pub fn unit(&mut self, unit: usize, effect: Effect) {
        let (place, leaves) = self.units[unit];
        let table = &mut self.tables[place];
        table.has_row |= leaves && effect == Effect::Changed;
        table.is_touched |= effect != Effect::Nothing;
        table.is_answered = true;
    }

    /// Whether no unit has changed a row.
    pub fn changed_nothing(&self) -> bool {
        self.tables.iter().all(|table| !table.is_touched)
    }

    /// A unit got an error that may have undone more than itself.
    pub fn doubt(&mut self) {
        self.is_doubtful = true;
    }

    /// The next question was answered by these rows, or by an error.
    pub fn answered(&mut self, answer: Option<Whole>, watches: &mut Watches) {
        let rows = answer.and_then(|whole| whole.texts().ok());
        match self.asked.pop_front() {
            None | Some(Question::Open) => {} // if it is refused, so is the next one
            Some(Question::First(place)) => {
                if let Some(number) = self.tables[place].watched {
                    watches.at_first(number, rows.is_some());
                }
            }
            Some(Question::Previous(place)) => {
                let Table { watched: Some(number), definition, has_row, is_touched, .. } =
                    &self.tables[place]
                else {
                    return;
                };
                // A table that is empty, and in which nothing has run, cannot have changed an answer.
                let shows = *has_row || !is_touched;
                let (number, is_open) = (*number, rows.is_some_and(|rows| rows.is_empty()));
                let is_known = watches.knows(number, definition);
                self.tables[place].is_checked = is_open && is_known && shows && !self.is_doubtful;
                if !is_open {
                    watches.lost(number);
                }
            }
            Some(Question::Definition(place)) => {
                let text = rows.into_iter().flatten().flatten().next().flatten().unwrap_or_default();
                self.definition(place, &text, watches);
            }
        }
    }

    fn definition(&mut self, place: usize, answer: &str, watches: &mut Watches) {
        let table = &mut self.tables[place];
        table.is_checked = true;
        let (mark, definition) = answer.split_once(' ').unwrap_or_default();
        let has_mark = mark == self.batch.to_string();
        if has_mark && let Some(number) = table.watched {
            watches.learn(number, definition);
        }
        if !has_mark || table.is_answered && definition != table.definition {
            let failure = if has_mark { Failure::Behind } else { Failure::Stale };
            self.failure = self.failure.or(Some(failure));
        }
    }

    /// Whether answers to questions are to come.
    pub fn is_waiting(&self) -> bool {
        !self.asked.is_empty()
    }

    /// More questions, now that all have been answered.
    pub fn more(&mut self, watches: &mut Watches) -> Vec<String> {
        let mut statements = Vec::new();
        if self.failure.is_none() {
            for place in 0..self.tables.len() {
                let Table { is_checked, is_answered, .. } = self.tables[place];
                if !is_checked && (is_answered || self.is_doubtful) {
                    self.ask(place, watches, &mut statements);
                }
            }
        }
        statements
    }

    /// Why the batch must not be committed.
    pub fn failure(&self) -> Option<Failure> {
        self.failure
    }
}

impl Table {
    fn of(statement: &Statement, watches: &mut Watches) -> Self {
        let Statement { database, table, definition, .. } = statement;
        let watched = statement.can_be_watched.then(|| watches.number(database, table)).flatten();
        Table {
            database: database.clone(),
            name: table.clone(),
            definition: definition.clone(),
            watched,
            has_row: false,
            is_touched: false,
            is_answered: false,
            is_checked: false,
        }
    }
}

/// A name as a literal. Names that are judged have neither quotes nor backslashes.
fn quoted(name: &str) -> String {
    format!("'{}'", name.replace('\'', "''"))
}
