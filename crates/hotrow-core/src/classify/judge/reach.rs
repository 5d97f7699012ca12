//! Decides which state a passed-through statement can leave on its connection. This depends on its text and on all code
//! that it can reach by a name: functions, views, triggers, defaults, operators, casts. It does not query the catalog.
//!
//! The names in the text are looked up in the catalog (`reached_code.sql`), then those in the code that was found, until
//! nothing new is found. All objects with a name count, in whatever schema they are. So the answer does not depend on the
//! client's `search_path`.

use std::collections::BTreeSet;

use serde::Deserialize;
use sqlparser::tokenizer::Token;

use crate::classify::effects::effect::Effect;
use crate::classify::effects::side_effects::starts_query;
use crate::classify::judge::code::{self, Code, Language, Names};
use crate::classify::known::functions::{Behaviour, behaviour, leaves_no_state};
use crate::classify::text::tokens;
use crate::classify::text::tokens::{is_word, word};
use crate::limits;

/// Commands that run no other code.
const PLAIN_COMMANDS: &str = "
    begin start commit end rollback abort savepoint release set reset show discard deallocate listen unlisten notify
    checkpoint lock close
";

/// PostgreSQL's own trigger functions that users attach to their tables.
const TRIGGERS: &str =
    "suppress_redundant_updates_trigger tsvector_update_trigger tsvector_update_trigger_column";

/// The code that a statement can reach, as far as it is known.
#[derive(Clone, Debug, Default)]
pub struct Reach {
    code: Code,
    /// The names that have been looked up.
    known: Names,
    /// The names that have not.
    new: Names,
    seen: BTreeSet<String>,
    bytes: usize,
    rounds: usize,
    moves_sequence: bool,
}

/// Code that was found in the catalog, as `reached_code.sql` returns it.
#[derive(Clone, Debug, Deserialize)]
pub struct Found {
    /// The names that are those of PostgreSQL's own functions too, unless they depend on their arguments only.
    pub built_in: Vec<String>,
    pub code: Vec<FoundCode>,
}

/// One text of code, or code that has none.
#[derive(Clone, Debug, Deserialize)]
pub struct FoundCode {
    /// Tells it from all others.
    pub id: String,
    /// It is one of PostgreSQL's own functions.
    pub built_in: bool,
    /// The name of its object.
    pub name: String,
    /// `expression`, or the language of a function. Code that has no text counts as `c`.
    pub language: String,
    pub text: Option<String>,
    /// `pg_proc.provolatile`.
    pub volatility: Option<char>,
    /// The settings with which a function runs, each as `name=value`.
    pub settings: Option<Vec<String>>,
    /// Its tables may be written.
    pub writes: bool,
    /// The extension it belongs to.
    pub extension: Option<String>,
}

/// The code that a text can reach. `None` if the text does not show it.
pub fn reach(sql: &str) -> Option<Reach> {
    if sql.len() > limits::REACHING_BYTES_MAX {
        return None;
    }
    let mut reach = Reach::default();
    let tokens = tokens::read(sql).ok()?;
    for statement in tokens.split(|token| *token == Token::SemiColon).filter(|tokens| !tokens.is_empty()) {
        if starts_query(statement) || is_word(statement.first(), &["call"]) {
            reach.add(code::read_tokens(statement, Language::Sql, false));
        } else if is_word(statement.first(), &["do"]) {
            reach.add(code::read(block(statement)?, Language::PlPgSql, false));
        } else if !is_in(PLAIN_COMMANDS, &word(statement.first()?)?) {
            return None;
        }
    }
    (reach.new.count() <= limits::REACHED_NAMES_MAX).then_some(reach)
}

/// The text of a DO block in PL/pgSQL.
fn block(statement: &[Token]) -> Option<&str> {
    let mut text = None;
    let mut rest = &statement[1..];
    loop {
        rest = match rest {
            [] => return text,
            [language, name, rest @ ..]
                if is_word(Some(language), &["language"])
                    && (is_word(Some(name), &["plpgsql"]) || tokens::string(name) == Some("plpgsql")) =>
            {
                rest
            }
            [string, rest @ ..] if text.is_none() => {
                text = Some(tokens::string(string)?);
                rest
            }
            _ => return None,
        };
    }
}

fn is_in(list: &str, word: &str) -> bool {
    list.split_ascii_whitespace().any(|known| known == word)
}

impl Reach {
    /// Whether it runs nothing but itself.
    pub fn runs_nothing(&self) -> bool {
        self.known.count() == 0 && self.new.count() == 0
    }

    /// Looks up these names too, at once: those that an earlier judgement of the same statement has come to. If the code has
    /// not changed, nothing else is found.
    pub fn expect(&mut self, names: Names) {
        self.new.add(names);
    }

    /// The names that have been looked up.
    pub fn looked_up(&self) -> &Names {
        &self.known
    }

    /// The names that have to be looked up next. `None` if nothing more can be found, or need be.
    pub fn names(&self) -> Option<&Names> {
        (self.new.count() > 0 && !self.code.effect.unknown).then_some(&self.new)
    }

    /// Notes what was found with the names. `None` if it is too much.
    pub fn found(&mut self, found: Option<Found>) {
        let names = std::mem::take(&mut self.new);
        let unknown_built_in =
            |found: &Found| found.built_in.iter().any(|name| behaviour(name) == Behaviour::Unknown);
        self.rounds += 1;
        self.known.add(names);
        let Some(found) = found.filter(|found| !unknown_built_in(found)) else {
            return self.add(Code::unknown());
        };
        for code in found.code {
            if self.seen.insert(code.id.clone()) {
                self.bytes += code.text.as_ref().map_or(0, String::len);
                self.found_code(&code);
            }
        }
        let is_too_much = self.rounds >= limits::REACHED_DEPTH_MAX && self.new.count() > 0
            || self.bytes > limits::REACHED_BYTES_MAX
            || self.known.count() + self.new.count() > limits::REACHED_NAMES_MAX;
        if is_too_much {
            self.add(Code::unknown());
        }
    }

    fn found_code(&mut self, found: &FoundCode) {
        if found.extension.as_ref().is_some_and(|extension| leaves_no_state(extension, &found.name)) {
            return;
        }
        let language = match found.language.as_str() {
            "sql" => Language::Sql,
            "plpgsql" => Language::PlPgSql,
            "expression" => Language::Expression,
            _ => return self.add(without_text(found)),
        };
        if language != Language::Expression && self.code.relied_on.contains(&found.name) {
            self.add(Code { effect: Effect { dynamic_sql: true, ..Effect::NONE }, ..Code::default() });
        }
        let sets_seed = |setting: &String| setting.to_ascii_lowercase().starts_with("seed=");
        if found.settings.iter().flatten().any(sets_seed) {
            self.code.effect.seed = true;
        }
        self.add(code::read(found.text.as_deref().unwrap_or_default(), language, found.writes));
    }

    fn add(&mut self, mut code: Code) {
        self.moves_sequence |= code.names.move_sequences();
        self.new.add(std::mem::take(&mut code.names).without(&self.known));
        self.code.add(code);
    }

    /// Whether it leaves nothing but perhaps sequence values. Otherwise the server has to be queried.
    pub fn is_clean(&self) -> bool {
        let allowed = Effect {
            touches_sequence: true,
            needs_sequence_state: true,
            local_settings: true,
            ..Effect::NONE
        };
        self.new.count() == 0
            && !self.code.changes_visible
            && self.code.effect.without(allowed) == Effect::NONE
    }

    /// Whether it may change what names mean, at least until the end of its transaction.
    pub fn changes_meaning(&self) -> bool {
        !self.is_clean() || self.code.effect.changes_meaning()
    }

    /// Whether it may advance a sequence.
    pub fn moves_sequence(&self) -> bool {
        self.moves_sequence || !self.is_clean()
    }

    /// The state that it may leave although the server does not show it.
    pub fn hidden(&self) -> Effect {
        self.code.effect.hidden()
    }
}

/// What code leaves that has no readable text.
fn without_text(found: &FoundCode) -> Code {
    let effect = match found.volatility {
        _ if !found.built_in => Effect { other_language: true, ..Effect::NONE },
        Some('i') => Effect::NONE,
        _ if is_in(TRIGGERS, &found.name) => Effect::NONE,
        _ => behaviour(&found.name).effect(),
    };
    Code { effect, changes_visible: found.name.starts_with("pg_advisory_unlock"), ..Code::default() }
}
