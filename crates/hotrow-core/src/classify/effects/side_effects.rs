//! The possible effects of a passed-through query on its session, derived from its tokens. It does not use a
//! syntax tree, because it has to judge queries that are too deep or too new for the parser.

use std::collections::HashSet;
use std::sync::LazyLock;

use sqlparser::tokenizer::Token;

use crate::classify::effects::effect::Effect;
use crate::classify::known::functions::{Behaviour, behaviour};
use crate::classify::text::tokens::{folded, is_word};

/// What a query's tokens show of its effects. A function that removes state is ignored, because the tokens do not show
/// whether it was called.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SideEffects {
    /// The effects of the functions on the lists, and of everything else that is known.
    pub known: Effect,
    /// It may call functions that are not on the lists.
    pub calls_others: bool,
    /// It creates a table.
    pub creates: bool,
}

impl SideEffects {
    /// Its effects. Any effect is possible if it calls unknown functions.
    pub(crate) fn effect(self) -> Effect {
        if self.calls_others { self.known.union(Effect::UNKNOWN) } else { self.known }
    }
}

/// Words before a parenthesis that call nothing.
const NOT_CALLED: &str = "
    all and any array as bernoulli between by case cast cross cube distinct else except exists filter for
    from full group having ilike in inner intersect into is isnull join lateral left like limit materialized
    natural not notnull offset on only or order outer over partition recursive returning right rollup row
    select set sets similar some symmetric then to union using values when where window with
    bit bpchar char character dec decimal float interval nchar numeric precision time timestamp timestamptz
    timetz varbit varchar varying
";

/// The side effects of one query.
///
/// A name on the lists is taken for PostgreSQL's own function. Passing through is correct in any case. A
/// user's function with a built-in name that changes the session is too rare to justify a catalog query for
/// each statement.
pub(crate) fn side_effects(tokens: &[Token]) -> SideEffects {
    let mut found = SideEffects::default();
    let selects = !is_word(tokens.first(), &["insert", "merge"]);
    let mut after_distinct_on = false;
    for (index, token) in tokens.iter().enumerate() {
        let Token::Word(name) = token else { continue };
        let plain = name.quote_style.is_none();
        let previous = before(tokens, index, 1);
        if is_own_operator(&tokens[index..]) {
            continue;
        }
        after_distinct_on |= is_word(Some(token), &["on"]) && is_word(previous, &["distinct"]);
        if is_word(Some(token), &["insert", "merge", "copy"]) {
            found.known.touches_sequence = true;
        } else if is_word(Some(token), &["into"]) && selects && !is_word(previous, &["insert", "merge"]) {
            found.creates = true;
            let temporary = is_word(tokens.get(index + 1), &["temp", "temporary", "local", "global"]);
            found.known.temporary |= temporary;
        }
        // A field of a composite value, or a function applied to the value: `(x).f` is `f(x)`.
        let is_field = previous == Some(&Token::Period) && before(tokens, index, 2) == Some(&Token::RParen);
        found.calls_others |= is_field || is_word(Some(token), &["operator"]);
        found.known.temporary |= in_temporary_schema(&name.value, plain);
        if tokens.get(index + 1) == Some(&Token::LParen)
            && let Some(name) = folded(token)
            && is_call(tokens, index, &name, plain, after_distinct_on)
        {
            call(&mut found, schema(tokens, index).as_deref(), &name, &tokens[index + 2..]);
        }
    }
    if updates_settings(tokens) {
        found.known = found.known.union(Behaviour::ChangesSettings.effect());
    }
    found
}

/// Whether the query may be an UPDATE of `pg_settings`.
pub(crate) fn updates_settings(tokens: &[Token]) -> bool {
    tokens.iter().any(|token| is_word(Some(token), &["update", "merge"])) && names_settings(tokens)
}

/// Whether the text has the name of `pg_settings`. A rule of this view calls `set_config` for an UPDATE.
pub(crate) fn names_settings(tokens: &[Token]) -> bool {
    const VIEW: &str = "pg_settings";
    let is_view =
        |token| is_word(Some(token), &[VIEW]) || matches!(token, Token::Word(word) if word.value == VIEW);
    tokens.iter().any(is_view)
}

/// `operator(pg_catalog.` and more: one of PostgreSQL's own operators.
fn is_own_operator(tokens: &[Token]) -> bool {
    let [operator, Token::LParen, schema, Token::Period, ..] = tokens else { return false };
    is_word(Some(operator), &["operator"]) && folded(schema).as_deref() == Some("pg_catalog")
}

/// Whether a name is, or begins like, the name of the session's temporary schema.
fn in_temporary_schema(name: &str, plain: bool) -> bool {
    const SCHEMA: &str = "pg_temp";
    let Some(start) = name.get(..SCHEMA.len()) else { return false };
    start == SCHEMA || plain && start.eq_ignore_ascii_case(SCHEMA)
}

/// The token `places` positions earlier.
fn before(tokens: &[Token], index: usize, places: usize) -> Option<&Token> {
    tokens.get(index.checked_sub(places)?)
}

/// The schema before a name.
fn schema(tokens: &[Token], index: usize) -> Option<String> {
    (before(tokens, index, 1)? == &Token::Period).then(|| before(tokens, index, 2).and_then(folded)).flatten()
}

/// Whether the name before a parenthesis is a call. Otherwise it names an object with columns.
fn is_call(tokens: &[Token], index: usize, name: &str, plain: bool, after_distinct_on: bool) -> bool {
    static NOT_CALLED_WORDS: LazyLock<HashSet<&str>> =
        LazyLock::new(|| NOT_CALLED.split_ascii_whitespace().collect());
    let qualified = before(tokens, index, 1) == Some(&Token::Period);
    if qualified {
        let start = index.saturating_sub(2);
        return !is_word(before(tokens, start, 1), &["into"]);
    }
    if plain && NOT_CALLED_WORDS.contains(name) {
        return false;
    }
    let names_columns = match before(tokens, index, 1) {
        // `(values …) t (a)`, but not `distinct on (a) f(b)`
        Some(Token::RParen) => !after_distinct_on,
        // `insert into t (a)`, `… as t (a)`, `with recursive t (a)`
        previous => is_word(previous, &["into", "as", "recursive", "conflict"]),
    };
    let is_conflict = plain && name == "conflict" && is_word(before(tokens, index, 1), &["on"]);
    !names_columns && !is_conflict && !is_common_table(tokens, index)
}

/// `with t (a, b) as (…)`, `, u (c) as materialized (…)`
///
/// The scan ahead stops at the first token that is neither a name nor a comma. No other scan starts among the
/// tokens that it passes, because each scan starts at a parenthesis. All scans together therefore read each
/// token at most once.
fn is_common_table(tokens: &[Token], index: usize) -> bool {
    let leads = match before(tokens, index, 1) {
        Some(Token::Comma) => true,
        previous => is_word(previous, &["with"]),
    };
    if !leads {
        return false;
    }
    let mut after =
        tokens[index + 2..].iter().skip_while(|token| matches!(token, Token::Word(_) | Token::Comma));
    after.next() == Some(&Token::RParen)
        && is_word(after.next(), &["as"])
        && match after.next() {
            Some(Token::LParen) => true,
            next => is_word(next, &["materialized", "not"]),
        }
}

/// A call of a function. `arguments` are the tokens after its opening parenthesis.
fn call(found: &mut SideEffects, schema: Option<&str>, name: &str, arguments: &[Token]) {
    let of_call = match schema {
        None | Some("pg_catalog") if name == "set_config" => set_config(arguments),
        None | Some("pg_catalog") if name == "setseed" => Effect::of_setting(Some("seed")),
        None | Some("pg_catalog") if behaviour(name) != Behaviour::Unknown => behaviour(name).effect(),
        // The hotrow schema belongs to Hotrow and has no effects on the session.
        Some("hotrow" | "information_schema") => Effect::NONE,
        None | Some(_) => {
            found.calls_others = true;
            Effect::NONE
        }
    };
    found.known = found.known.union(of_call);
}

/// The effects of `set_config` with these arguments. A name that the text does not show can be any setting's.
fn set_config(arguments: &[Token]) -> Effect {
    // With standard_conforming_strings = off, a backslash begins an escape, so the server sees another name.
    let (name, rest) = match arguments {
        [Token::SingleQuotedString(name), Token::Comma, rest @ ..] if !name.contains('\\') => (name, rest),
        _ => return Behaviour::ChangesSettings.effect(),
    };
    match ends_at_comma(rest) {
        Some([is_local, Token::RParen, ..]) if is_word(Some(is_local), &["true"]) => {
            Effect::of_local_setting(Some(name))
        }
        _ => Effect::of_setting(Some(name)),
    }
}

/// What follows the comma behind an expression, if one follows. The calls in the expression are looked at by themselves.
fn ends_at_comma(tokens: &[Token]) -> Option<&[Token]> {
    let mut depth = 0_usize;
    for (index, token) in tokens.iter().enumerate() {
        match token {
            Token::Comma if depth == 0 => return Some(&tokens[index + 1..]),
            Token::LParen | Token::LBracket => depth += 1,
            Token::RParen | Token::RBracket => depth = depth.checked_sub(1)?,
            Token::SemiColon => return None,
            _ => {}
        }
    }
    None
}

impl Behaviour {
    /// The effects of a call of such a function.
    pub(crate) fn effect(self) -> Effect {
        match self {
            Self::Packable | Self::Plural | Self::Observing(_) | Self::TriesLock | Self::UnlocksSession => {
                Effect::NONE
            }
            Self::MovesSequence | Self::SetsSequence => Effect { touches_sequence: true, ..Effect::NONE },
            Self::ReadsSequence => Effect { needs_sequence_state: true, ..Effect::NONE },
            Self::LocksSession => Effect { advisory_lock: true, ..Effect::NONE },
            Self::ChangesSettings => {
                Effect { unlisted_settings: true, seed: true, role: true, ..Effect::NONE }
            }
            Self::Unknown => Effect::UNKNOWN,
        }
    }
}

pub(crate) fn starts_query(tokens: &[Token]) -> bool {
    const QUERIES: &[&str] = &["select", "insert", "update", "delete", "with", "values", "table", "merge"];
    is_word(tokens.first(), QUERIES) || tokens.first() == Some(&Token::LParen)
}

/// The effects of a query inside another command: the rest of EXPLAIN, PREPARE, CREATE TABLE AS or COPY.
pub(crate) fn effect_of_query(tokens: &[Token]) -> Effect {
    if starts_query(tokens) { side_effects(tokens).effect() } else { Effect::UNKNOWN }
}
