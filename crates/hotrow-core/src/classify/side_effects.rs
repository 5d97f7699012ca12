//! What a query that is passed through may leave behind in its session, read off its tokens; never off a tree, so that
//! queries which are too deep or too new for the parser are judged too.

use sqlparser::tokenizer::Token;

use super::Effect;
use super::functions::{Conduct, conduct};
use super::tokens::{folded, is_word, word};

/// What a query leaves behind, what it takes away, and whether it creates a table.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SideEffects {
    pub effect: Effect,
    pub clears: Effect,
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
pub(super) fn side_effects(tokens: &[Token]) -> SideEffects {
    let mut found = SideEffects::default();
    let selects = !is_word(tokens.first(), &["insert", "merge"]);
    for (index, token) in tokens.iter().enumerate() {
        let Some(name) = folded(token) else { continue };
        let plain = word(token).is_some();
        match name.as_str() {
            "insert" | "merge" | "copy" if plain => found.effect.touches_sequence = true,
            "into" if plain && selects && !is_word(before(tokens, index, 1), &["insert", "merge"]) => {
                found.creates = true;
                let temporary = is_word(tokens.get(index + 1), &["temp", "temporary", "local", "global"]);
                found.effect.temporary |= temporary;
            }
            // A field of a composite value, or a function applied to it: `(x).f` is `f(x)`.
            _ if before(tokens, index, 1) == Some(&Token::Period)
                && before(tokens, index, 2) == Some(&Token::RParen) =>
            {
                found.effect = found.effect.union(Effect::UNKNOWN);
            }
            "operator" if plain => found.effect = found.effect.union(Effect::UNKNOWN),
            _ if name.starts_with("pg_temp") => found.effect.temporary = true,
            _ => {}
        }
        if tokens.get(index + 1) == Some(&Token::LParen) && is_call(tokens, index, &name, plain) {
            call(&mut found, schema(tokens, index).as_deref(), &name);
        }
    }
    found.clears = found.clears.without(found.effect);
    found
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
fn is_call(tokens: &[Token], index: usize, name: &str, plain: bool) -> bool {
    let qualified = before(tokens, index, 1) == Some(&Token::Period);
    if qualified {
        let start = index.saturating_sub(2);
        return !is_word(before(tokens, start, 1), &["into"]);
    }
    if plain && NOT_CALLED.split_ascii_whitespace().any(|known| known == name) {
        return false;
    }
    let names_columns = match before(tokens, index, 1) {
        // `(values …) t (a)`, but not `distinct on (a) f(b)`
        Some(Token::RParen) => {
            let is_distinct_on =
                |at: usize| is_word(tokens.get(at), &["distinct"]) && is_word(tokens.get(at + 1), &["on"]);
            !(0..index).any(is_distinct_on)
        }
        // `insert into t (a)`, `… as t (a)`, `with recursive t (a)`
        previous => is_word(previous, &["into", "as", "recursive", "conflict"]),
    };
    let is_conflict = plain && name == "conflict" && is_word(before(tokens, index, 1), &["on"]);
    !names_columns && !is_conflict && !is_common_table(tokens, index)
}

/// `with t (a, b) as (…)`, `, u (c) as materialized (…)`
fn is_common_table(tokens: &[Token], index: usize) -> bool {
    let leads = match before(tokens, index, 1) {
        Some(Token::Comma) => true,
        previous => is_word(previous, &["with"]),
    };
    let close = tokens[index..].iter().position(|token| *token == Token::RParen);
    leads
        && close.is_some_and(|close| {
            let columns = &tokens[index + 2..index + close];
            let after = &tokens[index + close + 1..];
            columns.iter().all(|token| matches!(token, Token::Word(_) | Token::Comma))
                && is_word(after.first(), &["as"])
                && (after.get(1) == Some(&Token::LParen) || is_word(after.get(1), &["materialized", "not"]))
        })
}

fn call(found: &mut SideEffects, schema: Option<&str>, name: &str) {
    let of_call = match schema {
        None | Some("pg_catalog") => conduct(name).effect(),
        // The schema pack is Hotrow's own and leaves nothing behind.
        Some("hotrow" | "information_schema") => Effect::NONE,
        Some(_) => Effect::UNKNOWN,
    };
    found.effect = found.effect.union(of_call);
    found.clears.advisory_lock |= schema.is_none() && conduct(name) == Conduct::UnlocksSession;
}

impl Conduct {
    /// What a call of such a function leaves behind.
    pub(super) fn effect(self) -> Effect {
        match self {
            Self::Packable | Self::Plural | Self::Telling(_) | Self::UnlocksSession => Effect::NONE,
            Self::MovesSequence | Self::SetsSequence => Effect { touches_sequence: true, ..Effect::NONE },
            Self::ReadsSequence => Effect { needs_sequence_state: true, ..Effect::NONE },
            Self::LocksSession => Effect { advisory_lock: true, ..Effect::NONE },
            Self::ChangesSettings => Effect { settings: true, role: true, ..Effect::NONE },
            Self::Unknown => Effect::UNKNOWN,
        }
    }
}
