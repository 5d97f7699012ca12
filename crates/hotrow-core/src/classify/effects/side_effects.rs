//! What a query that is passed through may leave behind in its session, read off its tokens; never off a tree, so that
//! queries which are too deep or too new for the parser are judged too.

use std::collections::HashSet;
use std::sync::LazyLock;

use sqlparser::tokenizer::Token;

use crate::classify::effects::effect::Effect;
use crate::classify::known::functions::{Behaviour, behaviour};
use crate::classify::text::tokens::{folded, is_word};

/// What a query leaves behind, and whether it creates a table. That a function takes something away counts for nothing:
/// nobody knows whether it was called.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SideEffects {
    pub effect: Effect,
    pub creates: bool,
}

/// Words that stand before a parenthesis without calling anything.
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
/// A name on the lists is taken for PostgreSQL's own function: passing through is right in any case, and a function
/// of a user's that hides behind a built-in name and changes the session is not worth a catalogue query each time.
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
            found.effect.touches_sequence = true;
        } else if is_word(Some(token), &["into"]) && selects && !is_word(previous, &["insert", "merge"]) {
            found.creates = true;
            let temporary = is_word(tokens.get(index + 1), &["temp", "temporary", "local", "global"]);
            found.effect.temporary |= temporary;
        }
        // A field of a composite value, or a function applied to it: `(x).f` is `f(x)`.
        let is_field = previous == Some(&Token::Period) && before(tokens, index, 2) == Some(&Token::RParen);
        if is_field || is_word(Some(token), &["operator"]) {
            found.effect = found.effect.union(Effect::UNKNOWN);
        }
        found.effect.temporary |= in_temporary_schema(&name.value, plain);
        if tokens.get(index + 1) == Some(&Token::LParen)
            && let Some(name) = folded(token)
            && is_call(tokens, index, &name, plain, after_distinct_on)
        {
            call(&mut found, schema(tokens, index).as_deref(), &name);
        }
    }
    found
}

/// `operator(pg_catalog.` and more: an operator of PostgreSQL's own.
fn is_own_operator(tokens: &[Token]) -> bool {
    let [operator, Token::LParen, schema, Token::Period, ..] = tokens else { return false };
    is_word(Some(operator), &["operator"]) && folded(schema).as_deref() == Some("pg_catalog")
}

/// Whether a name is, or begins like, that of the session's own schema.
fn in_temporary_schema(name: &str, plain: bool) -> bool {
    const SCHEMA: &str = "pg_temp";
    let Some(start) = name.get(..SCHEMA.len()) else { return false };
    start == SCHEMA || plain && start.eq_ignore_ascii_case(SCHEMA)
}

/// The token so many places before.
fn before(tokens: &[Token], index: usize, places: usize) -> Option<&Token> {
    tokens.get(index.checked_sub(places)?)
}

/// The schema written in front of a name.
fn schema(tokens: &[Token], index: usize) -> Option<String> {
    (before(tokens, index, 1)? == &Token::Period).then(|| before(tokens, index, 2).and_then(folded)).flatten()
}

/// Whether the name in front of a parenthesis is called, rather than the name of something with columns.
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
/// The look ahead stops at the first token that is neither a name nor a comma. No other look ahead begins among the
/// tokens it passes, because each begins at a parenthesis: all of them together read each token at most once.
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

fn call(found: &mut SideEffects, schema: Option<&str>, name: &str) {
    let of_call = match schema {
        None | Some("pg_catalog") => behaviour(name).effect(),
        // The schema pack is Hotrow's own and leaves nothing behind.
        Some("hotrow" | "information_schema") => Effect::NONE,
        Some(_) => Effect::UNKNOWN,
    };
    found.effect = found.effect.union(of_call);
}

impl Behaviour {
    /// What a call of such a function leaves behind.
    pub(crate) fn effect(self) -> Effect {
        match self {
            Self::Packable | Self::Plural | Self::Observing(_) | Self::UnlocksSession => Effect::NONE,
            Self::MovesSequence | Self::SetsSequence => Effect { touches_sequence: true, ..Effect::NONE },
            Self::ReadsSequence => Effect { needs_sequence_state: true, ..Effect::NONE },
            Self::LocksSession => Effect { advisory_lock: true, ..Effect::NONE },
            Self::ChangesSettings => Effect { settings: true, role: true, ..Effect::NONE },
            Self::Unknown => Effect::UNKNOWN,
        }
    }
}

pub(crate) fn starts_query(tokens: &[Token]) -> bool {
    const QUERIES: &[&str] = &["select", "insert", "update", "delete", "with", "values", "table", "merge"];
    is_word(tokens.first(), QUERIES) || tokens.first() == Some(&Token::LParen)
}

/// What a query inside another command leaves behind: the rest of EXPLAIN, PREPARE, CREATE TABLE AS, COPY.
pub(crate) fn effect_of_query(tokens: &[Token]) -> Effect {
    if starts_query(tokens) { side_effects(tokens).effect } else { Effect::UNKNOWN }
}
