//! Reads a text that runs on a connection, such as the body of a function: the state that it leaves there as far as the
//! text shows, and the names through which it runs more code. It does not look up names.

use std::collections::BTreeSet;

use sqlparser::tokenizer::Token;

use crate::classify::effects::effect::Effect;
use crate::classify::effects::side_effects::{names_settings, side_effects};
use crate::classify::judge::composed::{self, Composed};
use crate::classify::judge::table::is_sequence_function;
use crate::classify::known::functions::Behaviour;
use crate::classify::read::analysis::Analysis;
use crate::classify::read::commands;
use crate::classify::text::tokens::{self, Cursor, folded, is_word};

/// Operators of syntax that does not show them: BETWEEN, IN, LIKE, SIMILAR TO, NULLIF, IS DISTINCT FROM.
const HIDDEN_OPERATORS: &str = "= <> < > <= >= ~~ !~~ ~~* !~~* ~ !~";

/// How a text is read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Language {
    /// Statements.
    Sql,
    /// A block of PL/pgSQL.
    PlPgSql,
    /// An expression, or one statement that the catalog stores: a view's query.
    Expression,
}

/// The names in a text that can be those of code, or of objects that run code.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Names {
    /// Names before a parenthesis.
    pub functions: BTreeSet<String>,
    /// Names behind a dot: `x.f` is `f(x)` if the row has no such field.
    pub fields: BTreeSet<String>,
    pub operators: BTreeSet<String>,
    /// All words of texts that only read. Each can be a relation or a type.
    pub read: BTreeSet<String>,
    /// All words of texts that may write.
    pub written: BTreeSet<String>,
    /// One of the texts may fire event triggers.
    pub fires_events: bool,
}

/// What a text does.
#[derive(Clone, Default, Debug)]
pub(crate) struct Code {
    /// The state that it leaves, as far as its own text shows.
    pub effect: Effect,
    /// It may change state that the server shows: it creates or removes something.
    pub changes_visible: bool,
    /// The names through which it runs more code.
    pub names: Names,
    /// PostgreSQL's own functions on whose results the judgement relies. A user's function could take the place of one.
    pub relied_on: BTreeSet<String>,
}

impl Code {
    /// Code that may leave any state.
    pub(crate) fn unknown() -> Self {
        Code { effect: Effect::UNKNOWN, ..Code::default() }
    }

    pub(crate) fn add(&mut self, other: Code) {
        self.effect = self.effect.union(other.effect);
        self.changes_visible |= other.changes_visible;
        self.names.add(other.names);
        self.relied_on.extend(other.relied_on);
    }
}

impl Names {
    pub(crate) fn add(&mut self, other: Names) {
        self.functions.extend(other.functions);
        self.fields.extend(other.fields);
        self.operators.extend(other.operators);
        self.read.extend(other.read);
        self.written.extend(other.written);
        self.fires_events |= other.fires_events;
    }

    /// The names that are not among these.
    pub(crate) fn without(self, known: &Names) -> Names {
        let new = |own: BTreeSet<String>, known: &BTreeSet<String>| {
            own.into_iter().filter(|name| !known.contains(name)).collect::<BTreeSet<_>>()
        };
        let written = new(self.written, &known.written);
        Names {
            functions: new(self.functions, &known.functions),
            fields: new(self.fields, &known.fields),
            operators: new(self.operators, &known.operators),
            read: new(new(self.read, &known.read), &known.written),
            written,
            fires_events: self.fires_events && !known.fires_events,
        }
    }

    /// Their number.
    pub fn count(&self) -> usize {
        let all = [&self.functions, &self.fields, &self.operators, &self.read, &self.written];
        all.iter().map(|names| names.len()).sum::<usize>() + usize::from(self.fires_events)
    }

    /// Whether a call of one of the functions may advance a sequence.
    pub(crate) fn move_sequences(&self) -> bool {
        self.functions.iter().any(|name| is_sequence_function(name))
    }
}

/// Reads a text. `writes` says that its tables may be written although it only reads: it is the query of a view.
pub(crate) fn read(text: &str, language: Language, writes: bool) -> Code {
    match tokens::read(text) {
        Ok(tokens) => read_tokens(&tokens, language, writes),
        Err(_) => Code::unknown(),
    }
}

pub(crate) fn read_tokens(tokens: &[Token], language: Language, writes: bool) -> Code {
    if tokens.iter().any(|token| is_ambiguous(token) || is_folded_unlike(token)) {
        return Code::unknown();
    }
    let found = side_effects(tokens);
    let mut code = Code {
        effect: found.known,
        // INTO names variables in PL/pgSQL.
        changes_visible: found.creates && language != Language::PlPgSql,
        ..Code::default()
    };
    let mut writes = writes || tokens.iter().any(|token| is_word(Some(token), WRITING));
    if language != Language::Expression {
        for start in starts(tokens, language) {
            let end = tokens[start..].iter().position(|token| *token == Token::SemiColon);
            command(&mut code, &tokens[start..end.map_or(tokens.len(), |end| start + end)], language);
        }
        writes |= code.names.fires_events;
    }
    if language == Language::PlPgSql {
        for text in composed::texts(tokens) {
            match text.and_then(composed_code) {
                Some(composed) => code.add(composed),
                None => code.effect.dynamic_sql = true,
            }
        }
    }
    if writes && names_settings(tokens) {
        code.effect = code.effect.union(Behaviour::ChangesSettings.effect());
    }
    names(&mut code, tokens, writes);
    code
}

/// Words of statements that write to the tables that they name, or run the code of their indexes.
const WRITING: &[&str] = &[
    "insert", "update", "delete", "merge", "copy", "truncate", "analyze", "analyse", "cluster", "reindex",
    "refresh", "vacuum",
];

/// Whether `standard_conforming_strings` decides where a string ends.
fn is_ambiguous(token: &Token) -> bool {
    match token {
        Token::SingleQuotedString(text) | Token::NationalStringLiteral(text) => {
            text.ends_with('\\') || text.contains("\\'")
        }
        _ => false,
    }
}

/// Whether the server could fold a name's letters that this crate keeps: outside of ASCII, in a single-byte encoding. Letters
/// that the connection's encoding has spoilt count too.
fn is_folded_unlike(token: &Token) -> bool {
    let odd = |c: char| c == char::REPLACEMENT_CHARACTER || !c.is_ascii() && c.is_uppercase();
    matches!(token, Token::Word(word) if word.value.chars().any(odd))
}

fn names(code: &mut Code, tokens: &[Token], writes: bool) {
    let names = &mut code.names;
    for (index, token) in tokens.iter().enumerate() {
        let Some(name) = folded(token) else { continue };
        let follows_dot = index > 0 && tokens[index - 1] == Token::Period;
        if tokens.get(index + 1) == Some(&Token::LParen) {
            // Only its result shows whether a lock was released.
            code.changes_visible |= name.starts_with("pg_advisory_unlock");
            names.functions.insert(name.clone());
        } else if follows_dot {
            names.fields.insert(name.clone());
        }
        if writes {
            names.written.insert(name)
        } else {
            names.read.insert(name)
        };
    }
    names.operators.extend(tokens::operators(tokens));
    names.operators.extend(HIDDEN_OPERATORS.split(' ').map(str::to_owned));
}

/// Where statements can begin. In PL/pgSQL, these words also occur within expressions: `case when a then b end`.
fn starts(tokens: &[Token], language: Language) -> Vec<usize> {
    let words: &[&str] = match language {
        Language::PlPgSql => &["begin", "then", "else", "loop"],
        Language::Sql | Language::Expression => &["atomic"],
    };
    let begins = |before: &Token| match before {
        Token::SemiColon => true,
        Token::ShiftRight => language == Language::PlPgSql, // the end of a label
        before => is_word(Some(before), words),
    };
    (0..tokens.len())
        .filter(|index| index.checked_sub(1).is_none_or(|before| begins(&tokens[before])))
        .collect()
}

/// Commands that begin with these words leave nothing but what their words and calls show.
const QUERIES: &[&str] = &["select", "insert", "update", "delete", "merge", "with", "values", "table"];
/// Commands about the transaction, or about the server.
const PLAIN: &[&str] = &[
    "begin",
    "start",
    "commit",
    "end",
    "rollback",
    "abort",
    "savepoint",
    "release",
    "fetch",
    "move",
    "close",
    "notify",
    "lock",
    "show",
    "call",
    "checkpoint",
    "truncate",
    "analyze",
    "analyse",
    "vacuum",
];
/// Commands that change the catalog, but none of the code that a name can reach.
const CATALOG: &[&str] = &["comment", "grant", "revoke", "refresh", "reindex", "cluster"];
/// Commands whose effects are those that they have as a statement of a client.
const AS_STATEMENTS: &[&str] =
    &["set", "reset", "discard", "listen", "unlisten", "prepare", "deallocate", "copy", "explain"];
/// Commands that may do anything.
const UNKNOWN: &[&str] = &["do", "load", "import", "security", "reassign"];

/// Records what the command that begins here leaves, if one begins here.
fn command(code: &mut Code, tokens: &[Token], language: Language) {
    let is_sql = language == Language::Sql;
    let first = tokens.first();
    // `set := 1` assigns to a variable.
    let assigns =
        matches!(tokens.get(1), Some(Token::Assignment | Token::Eq | Token::Period | Token::LBracket));
    if first.is_none() || assigns && !is_sql || is_word(first, QUERIES) {
    } else if is_word(first, AS_STATEMENTS) || is_sql && is_word(first, &["declare"]) {
        code.effect = code.effect.union(effect_of_command(tokens));
        code.changes_visible |= !is_word(first, &["set"]);
    } else if is_word(first, CATALOG) {
        code.names.fires_events = true;
    } else if is_word(first, &["create", "alter", "drop"]) {
        code.changes_visible = true; // in the temporary schema, if that is the first one in search_path
        code.names.fires_events = true;
        if !changes_no_code(Cursor::new(tokens)) {
            code.effect = code.effect.union(Effect::UNKNOWN);
        }
    } else if is_word(first, UNKNOWN)
        || is_word(first, &["truncate"]) && Cursor::new(tokens).mentions(&["cascade"])
    {
        // TRUNCATE CASCADE reaches tables that no name shows.
        code.effect = code.effect.union(Effect::UNKNOWN);
    } else if is_sql
        && !is_word(first, PLAIN)
        && first != Some(&Token::LParen)
        && !is_word(first, &["return"])
    {
        code.effect = code.effect.union(Effect::UNKNOWN);
    }
}

fn effect_of_command(tokens: &[Token]) -> Effect {
    match commands::command(tokens) {
        Analysis::Pass(pass) => pass.effect.without(Effect { unknown: true, ..Effect::NONE }),
        Analysis::Deallocate(_) => Effect::NONE,
        // The server takes a setting of the gateway for a custom one.
        _ => Effect { unlisted_settings: true, ..Effect::NONE },
    }
}

/// Whether CREATE, ALTER or DROP gives no name other code than its own text shows.
pub(crate) fn changes_no_code(mut cursor: Cursor<'_>) -> bool {
    let alters = is_word(cursor.rest().first(), &["alter"]);
    let drops = is_word(cursor.rest().first(), &["drop"]);
    cursor.advance();
    if cursor.mentions(&["execute"]) {
        return false;
    }
    for words in [&["local", "global"][..], &["temp", "temporary", "unlogged"], &["unique"]] {
        cursor.take(words);
    }
    let kind = cursor.peek_word();
    match kind.as_deref() {
        Some("table") if alters => {
            cursor.mentions(&["add", "attach", "detach"])
                && !cursor.mentions(&[
                    "rename", "owner", "enable", "disable", "trigger", "rule", "set", "alter", "drop",
                    "inherit", "of", "replica", "cluster", "type",
                ])
        }
        Some("table" | "index" | "sequence") => !alters,
        Some("view" | "trigger" | "function" | "procedure" | "schema") => drops,
        _ => false,
    }
}

/// What a composed text does. Only commands that run nothing of an object can have a name that is not known.
fn composed_code(composed: Composed) -> Option<Code> {
    let tokens = tokens::read(&composed.text).ok()?;
    let mut statements = tokens.split(|token| *token == Token::SemiColon).filter(|tokens| !tokens.is_empty());
    if composed.has_names && !statements.all(runs_nothing_of_the_name) {
        return None;
    }
    let mut code = read_tokens(&tokens, Language::Sql, false);
    code.relied_on.extend(composed.relied_on);
    Some(code)
}

fn runs_nothing_of_the_name(statement: &[Token]) -> bool {
    let cursor = Cursor::new(statement);
    let first = cursor.peek_word();
    let adds_constraints = || {
        statement.windows(2).all(|pair| {
            !is_word(pair.first(), &["add"])
                || is_word(pair.get(1), &["constraint", "primary", "unique", "check", "foreign"])
        })
    };
    changes_no_code(cursor)
        && match first.as_deref() {
            Some("create") => !cursor.mentions(&["as"]),
            Some("alter") => adds_constraints(),
            Some("drop") => true,
            _ => false,
        }
}
