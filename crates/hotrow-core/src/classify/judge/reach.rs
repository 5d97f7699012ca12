//! Whether a statement that is passed through is known to leave nothing behind on its connection: neither its own text
//! nor anything that it can reach by a name (views, triggers, defaults, functions, operators, casts). Never asks the
//! catalogue itself.

use sqlparser::tokenizer::Token;

use crate::classify::effects::effect::Effect;
use crate::classify::effects::side_effects::{side_effects, starts_query};
use crate::classify::facts::{FunctionFact, TableFacts};
use crate::classify::judge::namesakes::Judge;
use crate::classify::judge::table;
use crate::classify::text::tokens;
use crate::classify::text::tokens::{folded, is_word};
use crate::limits;

/// Statements with more names than this are not looked into.
const NAMES_MAX: usize = 200;

/// Operators behind syntax that does not show them: BETWEEN, IN, LIKE, SIMILAR TO, NULLIF, IS DISTINCT FROM.
const HIDDEN_OPERATORS: &str = "= <> < > <= >= ~~ !~~ ~~* !~~* ~ !~";

/// Commands that run nothing but themselves.
const PLAIN_COMMANDS: &[&str] = &[
    "begin",
    "start",
    "commit",
    "end",
    "rollback",
    "abort",
    "savepoint",
    "release",
    "set",
    "reset",
    "show",
    "discard",
    "deallocate",
    "listen",
    "unlisten",
    "notify",
    "checkpoint",
    "lock",
    "close",
];

/// What a statement can reach.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reach {
    /// Its names and operators, each of which may be a table, a view, a function, an operator or a type.
    pub names: Vec<String>,
    /// It changes rows, so that defaults, checks and triggers run.
    writes: bool,
}

/// What a text can reach; `None` if that can't be told.
pub fn reach(sql: &str) -> Option<Reach> {
    if sql.len() > limits::CLASSIFIED_INLINE_BYTES_MAX {
        return None;
    }
    let mut reach = Reach { names: Vec::new(), writes: false };
    let tokens = tokens::read(sql).ok()?;
    for statement in tokens.split(|token| *token == Token::SemiColon).filter(|tokens| !tokens.is_empty()) {
        if starts_query(statement) {
            reach.query(statement)?;
        } else if !is_word(statement.first(), PLAIN_COMMANDS) {
            return None;
        }
    }
    reach.names.sort();
    reach.names.dedup();
    (reach.names.len() <= NAMES_MAX).then_some(reach)
}

impl Reach {
    fn query(&mut self, tokens: &[Token]) -> Option<()> {
        let found = side_effects(tokens);
        if found.effect.without(Effect { touches_sequence: true, ..Effect::NONE }) != Effect::NONE
            || found.creates
        {
            return None; // it pins its session, or something can be told of it only afterwards
        }
        let words = self.names.len();
        self.names.extend(tokens.iter().filter_map(folded));
        if self.names[words..].iter().any(|name| name.starts_with("pg_advisory_unlock")) {
            return None; // whether a lock is given back shows only afterwards
        }
        self.names.extend(tokens::operators(tokens));
        self.names.extend(HIDDEN_OPERATORS.split(' ').map(str::to_owned));
        self.writes |=
            tokens.iter().any(|token| is_word(Some(token), &["insert", "update", "delete", "merge"]));
        Some(())
    }

    /// The names that need a second look into the catalogue: those that the tables' own expressions use.
    pub fn names_in_tables(&self, tables: &[TableFacts]) -> Vec<String> {
        if self.writes { tables.iter().flat_map(table::all_names).collect() } else { Vec::new() }
    }

    /// Whether it may move a sequence.
    pub fn moves_sequence(&self, tables: &[TableFacts]) -> bool {
        let named = self.names.iter().any(|name| table::is_sequence_function(name));
        named || self.writes && tables.iter().any(table::may_move_sequence)
    }

    /// Whether it leaves nothing behind: given all tables that bear one of its names, and everything else outside
    /// `pg_catalog` that does, or that the tables use.
    pub fn is_clean(&self, tables: &[TableFacts], facts: &[FunctionFact]) -> bool {
        let judge = Judge { facts };
        facts.iter().all(|fact| judge.is_tame(fact))
            && tables.iter().all(|table| table::is_inert(table, self.writes, &judge))
    }
}
