//! Decides whether a passed-through statement is known to leave its session unchanged. This depends on its
//! text and on everything that it can reach by a name: views, triggers, defaults, functions, operators and
//! casts. It does not query the catalogue.

use sqlparser::tokenizer::Token;

use crate::classify::effects::effect::Effect;
use crate::classify::effects::side_effects::{side_effects, starts_query};
use crate::classify::facts::{FunctionFact, TableFacts};
use crate::classify::judge::namesakes::Judge;
use crate::classify::judge::table;
use crate::classify::text::tokens;
use crate::classify::text::tokens::{folded, is_word};
use crate::limits;

/// Maximum number of names. A statement with more names is not examined.
const NAMES_MAX: usize = 200;

/// Operators of syntax that does not show them: BETWEEN, IN, LIKE, SIMILAR TO, NULLIF, IS DISTINCT FROM.
const HIDDEN_OPERATORS: &str = "= <> < > <= >= ~~ !~~ ~~* !~~* ~ !~";

/// Commands that run no other code.
const PLAIN_COMMANDS: &str = "
    begin start commit end rollback abort savepoint release set reset show discard deallocate listen unlisten notify
    checkpoint lock close
";

/// The state that a statement is known to leave behind if it is passed through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Proof {
    /// It leaves nothing but perhaps sequence values.
    pub is_clean: bool,
    /// It may move a sequence.
    pub moves_sequence: bool,
}

impl Proof {
    /// Nothing is known: it may leave any state.
    pub const NONE: Self = Proof { is_clean: false, moves_sequence: true };
}

/// The objects that a statement can reach.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reach {
    /// Its names and operators. Each can be a table, a view, a function, an operator or a type.
    pub names: Vec<String>,
    /// It changes rows, which runs defaults, checks and triggers.
    writes: bool,
}

/// The objects that a text can reach. `None` if the text does not show them.
pub fn reach(sql: &str) -> Option<Reach> {
    if sql.len() > limits::CLASSIFIED_INLINE_BYTES_MAX {
        return None;
    }
    let mut reach = Reach { names: Vec::new(), writes: false };
    let tokens = tokens::read(sql).ok()?;
    for statement in tokens.split(|token| *token == Token::SemiColon).filter(|tokens| !tokens.is_empty()) {
        if starts_query(statement) {
            reach.query(statement)?;
        } else if !PLAIN_COMMANDS.split_ascii_whitespace().any(|word| is_word(statement.first(), &[word])) {
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
            return None; // it pins its session, or its effect is known only afterwards
        }
        let words = self.names.len();
        self.names.extend(tokens.iter().filter_map(folded));
        if self.names[words..].iter().any(|name| name.starts_with("pg_advisory_unlock")) {
            return None; // only the result shows whether a lock was released
        }
        self.names.extend(tokens::operators(tokens));
        self.names.extend(HIDDEN_OPERATORS.split(' ').map(str::to_owned));
        self.writes |=
            tokens.iter().any(|token| is_word(Some(token), &["insert", "update", "delete", "merge"]));
        Some(())
    }

    /// The names that need a second catalogue query: those in the tables' own expressions.
    pub fn names_in_tables(&self, tables: &[TableFacts]) -> Vec<String> {
        if self.writes { tables.iter().flat_map(table::all_names).collect() } else { Vec::new() }
    }

    /// Whether it may advance a sequence.
    pub fn moves_sequence(&self, tables: &[TableFacts]) -> bool {
        let named = self.names.iter().any(|name| table::is_sequence_function(name));
        named || self.writes && tables.iter().any(table::may_move_sequence)
    }

    /// Whether it leaves the session unchanged. `tables` are all tables with one of its names. `facts` are
    /// all other objects outside `pg_catalog` with one of its names, or with a name that the tables use.
    pub fn is_clean(&self, tables: &[TableFacts], facts: &[FunctionFact]) -> bool {
        let judge = Judge { facts };
        facts.iter().all(|fact| judge.is_tame(fact))
            && tables.iter().all(|table| table::is_inert(table, self.writes, &judge))
    }
}
