//! Makes a program from a seed. Each class of programs has a file. This file contains the code that they share.

mod bulk;
mod calls;
mod cancels;
mod casts;
mod combinations;
mod commands;
mod constants;
mod copies;
mod cursors;
mod declared;
mod functions;
mod heads;
mod late;
mod leaks;
mod lists;
mod literals;
mod mixed;
mod names;
mod notify;
mod partitions;
mod pipelines;
mod pools;
mod readings;
mod refused;
mod routines;
mod rows;
mod sequences;
mod settings;
mod slow;
mod spellings;
mod stale;
mod statements;
mod transactions;
mod types;
mod views;
mod watch;
mod with;

use std::collections::BTreeMap;

pub use calls::ECHO;
pub use declared::DECLARED;

use crate::program::{Frame, NUMBER, Program, Step};

/// A kind of program.
pub struct Class {
    pub name: &'static str,
    /// Its weight in the choice of a class. Programs that take many seconds are rare.
    weight: u32,
    write: fn(&mut Draft),
}

/// All classes.
pub const CLASSES: &[Class] = &[
    class("rows", 60, rows::write),
    class("lists", 40, lists::write),
    class("bulk", 40, bulk::write),
    class("partitions", 40, partitions::write),
    class("views", 40, views::write),
    class("with", 40, with::write),
    class("heads", 40, heads::write),
    class("calls", 40, calls::write),
    class("declared", 30, declared::write),
    class("spellings", 40, spellings::write),
    class("statements", 40, statements::write),
    class("notify", 20, notify::write),
    class("mixed", 80, mixed::write),
    class("transactions", 40, transactions::write),
    class("cursors", 20, cursors::write),
    class("settings", 30, settings::write),
    class("application-name", 10, settings::application_name),
    class("functions", 30, functions::write),
    class("function-calls", 10, functions::calls),
    class("plan-notices", 10, functions::plan_notices),
    class("column-types", 20, stale::column_types),
    class("other-schemas", 20, stale::other_schemas),
    class("shadowed-names", 20, stale::shadowed_names),
    class("overloads", 20, stale::overloads),
    class("recreated", 20, stale::recreated),
    class("constants", 20, constants::write),
    class("readings", 20, readings::write),
    class("casts", 10, casts::write),
    class("late-rules", 20, late::write),
    class("hidden-settings", 20, leaks::hidden_settings),
    class("extension-settings", 10, leaks::extension_settings),
    class("locks", 20, leaks::locks),
    class("temporary", 10, leaks::temporary),
    class("sequences", 20, sequences::write),
    class("pipelines", 40, pipelines::write),
    class("names", 20, names::write),
    class("copies", 20, copies::write),
    class("routines", 40, routines::write),
    class("commands", 40, commands::write),
    class("literals", 40, literals::write),
    class("refused", 30, refused::write),
    class("cancels", 20, cancels::write),
    class("combinations", 6, combinations::write),
    class("pools", 3, pools::write),
    class("slow", 3, slow::write),
];

const fn class(name: &'static str, weight: u32, write: fn(&mut Draft)) -> Class {
    Class { name, weight, write }
}

/// The class of a seed.
pub fn draw<'a>(classes: &[&'a Class], seed: u64) -> &'a Class {
    let mut random = fastrand::Rng::with_seed(seed ^ 0x5eed);
    let weights: u32 = classes.iter().map(|class| class.weight).sum();
    let mut place = random.u32(..weights);
    let drawn = classes.iter().find(|class| {
        let here = place < class.weight;
        place = place.saturating_sub(class.weight);
        here
    });
    drawn.expect("the place is below the sum")
}

/// The program of a seed.
pub fn program(class: &Class, seed: u64) -> Program {
    let random = fastrand::Rng::with_seed(seed);
    let mut draft = Draft { random, steps: Vec::new(), named: BTreeMap::new(), undoing: Vec::new() };
    draft.begin();
    (class.write)(&mut draft);
    Program { steps: draft.steps }
}

/// Sessions of a program: two that share a pool, one of another user, one with its own startup settings.
const SESSIONS: [char; 4] = ['a', 'b', 'c', 'd'];
/// The session that sets up the tables.
const SETUP: char = 's';

/// A program that is being written.
pub struct Draft {
    random: fastrand::Rng,
    steps: Vec<Step>,
    /// Named statements that sessions have prepared, for later Binds.
    named: BTreeMap<(char, String), String>,
    /// What undoes the changes so far.
    undoing: Vec<&'static str>,
}

impl Draft {
    fn begin(&mut self) {
        let parameter = |name: &str, value: &str| Frame::Connect(vec![(name.to_owned(), value.to_owned())]);
        self.steps.push(Step::new('c', vec![parameter("user", "other")]));
        let settings = ["-c geqo_threshold=20", "-c datestyle=german", "-c extra_float_digits=0"];
        let chosen = self.pick(&settings);
        self.steps.push(Step::new('d', vec![parameter("options", chosen)]));
    }

    fn pick<'a, T: ?Sized>(&mut self, from: &[&'a T]) -> &'a T {
        from[self.random.usize(..from.len())]
    }

    /// True once in `times` times, on average.
    fn once_in(&mut self, times: u32) -> bool {
        self.random.u32(..times) == 0
    }

    fn session(&mut self) -> char {
        SESSIONS[self.random.usize(..SESSIONS.len())]
    }

    fn frames(&mut self, session: char, frames: Vec<Frame>) {
        self.steps.push(Step::new(session, frames));
    }

    /// A simple query.
    fn query(&mut self, session: char, sql: impl Into<String>) {
        self.frames(session, vec![Frame::Query(sql.into())]);
    }

    /// A statement that sets the program up.
    fn set_up(&mut self, sql: impl Into<String>) {
        self.query(SETUP, sql);
    }

    /// A statement with values for `$1`, `$2`, ...: by either protocol, with literals or parameters, named or not.
    fn run(&mut self, session: char, sql: &str, values: &[Option<&str>]) {
        let frames = match self.random.u8(..8) {
            0..=3 => vec![Frame::Query(self.with_literals(sql, values))],
            4 | 5 => {
                vec![parse("", sql), self.bound("", "", values), describe('P', ""), execute(""), Frame::Sync]
            }
            6 => {
                let text = self.with_literals(sql, values);
                vec![parse("", &text), self.bound("", "", &[]), describe('P', ""), execute(""), Frame::Sync]
            }
            _ => {
                let key = (session, sql.to_owned());
                let mut frames = Vec::new();
                let name = match self.named.get(&key) {
                    Some(name) => name.clone(),
                    None => {
                        let name = format!("n{}{NUMBER}", self.random.u16(..));
                        frames.extend([parse(&name, sql), describe('S', &name)]);
                        self.named.insert(key, name.clone());
                        name
                    }
                };
                frames.extend([self.bound("", &name, values), execute(""), Frame::Sync]);
                frames
            }
        };
        self.frames(session, frames);
    }

    /// One of these statements, with one of these keys if it has a parameter.
    fn run_one(&mut self, session: char, statements: &[&str], keys: &[&str]) {
        let (statement, key) = (self.pick(statements), self.pick(keys));
        let values = if statement.contains("$1") { vec![Some(key)] } else { vec![] };
        self.run(session, statement, &values);
    }

    /// One of these changes, each with what undoes it.
    fn change(&mut self, session: char, changes: &[(&str, &'static str)]) {
        let (change, undo) = changes[self.random.usize(..changes.len())];
        self.query(session, change);
        self.undoing.push(undo);
    }

    /// Undoes all changes that are left.
    fn undo_rest(&mut self) {
        for undo in std::mem::take(&mut self.undoing) {
            self.query(SETUP, undo);
        }
    }

    /// Undoes one of the changes.
    fn undo(&mut self, session: char) {
        let undo = self.undoing.swap_remove(self.random.usize(..self.undoing.len()));
        self.query(session, undo);
    }

    /// Bind, with results as text or in binary.
    fn bound(&mut self, portal: &str, statement: &str, values: &[Option<&str>]) -> Frame {
        let values = values.iter().map(|value| value.map(str::to_owned)).collect();
        let binary = self.once_in(3);
        Frame::Bind { portal: portal.to_owned(), statement: statement.to_owned(), binary, values }
    }

    fn with_literals(&mut self, sql: &str, values: &[Option<&str>]) -> String {
        let mut text = sql.to_owned();
        for (index, value) in values.iter().enumerate().rev() {
            let literal = match value {
                None => "null".to_owned(),
                Some(number) if number.parse::<i64>().is_ok() && self.random.bool() => (*number).to_owned(),
                Some(value) => format!("'{}'", value.replace('\'', "''")),
            };
            text = text.replace(&format!("${}", index + 1), &literal);
        }
        text
    }
}

fn parse(name: &str, text: &str) -> Frame {
    Frame::Parse { name: name.to_owned(), text: text.to_owned() }
}

fn bind(portal: &str, statement: &str) -> Frame {
    Frame::Bind {
        portal: portal.to_owned(),
        statement: statement.to_owned(),
        binary: false,
        values: Vec::new(),
    }
}

fn describe(kind: char, name: &str) -> Frame {
    Frame::Describe(kind, name.to_owned())
}

fn execute(portal: &str) -> Frame {
    Frame::Execute(portal.to_owned(), 0)
}
