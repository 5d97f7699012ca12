//! Rejects, by its tokens, a statement that can never be packed or that is too deep for the parser. The
//! parser gets only the other statements.

use sqlparser::tokenizer::Token;

use crate::classify::reason::Reason;
use crate::classify::text::tokens::{is_word, string, word};
use crate::limits;

/// The parser limits nesting, but `a + a + a + …` builds a tree as deep as the text is long. This constant
/// limits that depth.
const MAX_CHAIN: usize = 600;

/// Deeper parentheses are not parsed. The parser needs large stack frames, and the threads that run it have
/// small stacks.
const MAX_PARENTHESES: usize = 20;

/// A WITH that only reads. As a rule it finds its rows by other conditions than keys.
pub(crate) const ONLY_READS: &str = "WITH of which no statement changes rows";

/// Checks the syntax of a statement that begins with SELECT, INSERT, UPDATE, DELETE or another keyword of a
/// query.
pub(crate) fn screen(tokens: &[Token]) -> Result<(), Reason> {
    match tokens.first().and_then(word).as_deref() {
        Some("select" | "insert" | "update" | "delete") => check_subqueries(tokens)?,
        Some("with") => check_with(tokens)?,
        Some("merge") => return Err(Reason::Unsupported("MERGE")),
        _ => return Err(Reason::Unsupported("a query other than a plain SELECT")),
    }
    check_strings(tokens)?;
    // The parser reads it as `=`. PostgreSQL has no such operator, but a user can create one.
    if tokens.contains(&Token::DoubleEq) {
        return Err(Reason::Operator("==".to_owned()));
    }
    if tokens.len() > limits::PARSED_TOKENS_MAX {
        return Err(Reason::TooLarge("long"));
    }
    check_depth(tokens)
}

/// PostgreSQL reads `'now'` or `'today'` when it analyses a statement. A lane prepares the statement once,
/// and all later calls would get the time of that analysis.
fn check_strings(tokens: &[Token]) -> Result<(), Reason> {
    const MOMENTS: &[&str] = &["now", "today", "tomorrow", "yesterday"];
    let is_moment = |word: &str| MOMENTS.iter().any(|moment| word.eq_ignore_ascii_case(moment));
    let means_moment = |text: &str| text.split(|c: char| !c.is_ascii_alphabetic()).any(is_moment);
    match tokens.iter().filter_map(string).any(means_moment) {
        true => Err(Reason::Unsupported("a date or time by name, such as 'now'")),
        false => Ok(()),
    }
}

/// Most statements with WITH only read.
fn check_with(tokens: &[Token]) -> Result<(), Reason> {
    if is_word(tokens.get(1), &["recursive"]) {
        return Err(Reason::Unsupported("WITH RECURSIVE"));
    }
    let writes = tokens.iter().any(|token| is_word(Some(token), &["insert", "update", "delete"]));
    if writes { Ok(()) } else { Err(Reason::Unsupported(ONLY_READS)) }
}

/// A second SELECT is packed only if it finds the rows of an UPDATE or DELETE, by LIMIT or in an array, or makes the rows of an
/// INSERT from arrays.
fn check_subqueries(tokens: &[Token]) -> Result<(), Reason> {
    let finds = |token: &Token| is_word(Some(token), &["limit", "fetch", "unnest"]);
    if is_word(tokens.first(), &["update", "delete"]) && tokens.iter().any(finds) {
        return Ok(());
    }
    let Some(second) = tokens.iter().skip(1).position(|token| is_word(Some(token), &["select"])) else {
        return Ok(());
    };
    let before = &tokens[..=second];
    let open = |token: &&Token| **token == Token::LParen;
    let close = |token: &&Token| **token == Token::RParen;
    let nested = before.iter().filter(open).count() > before.iter().filter(close).count();
    let rest = &tokens[second + 2..];
    let is_insert = is_word(tokens.first(), &["insert"]);
    let any = |words: &[&str]| rest.iter().any(|token| is_word(Some(token), words));
    if is_insert && !nested && any(&["unnest"]) && !any(&["select"]) {
        return Ok(());
    }
    let combines = is_word(before.last(), &["union", "intersect", "except", "all", "distinct"]);
    Err(Reason::Unsupported(match nested {
        true => "a subquery",
        false if is_insert => "INSERT from a query",
        false if combines => "UNION, INTERSECT or EXCEPT",
        false => "a subquery",
    }))
}

/// Checks that no expression in these tokens can be deeper than [`MAX_CHAIN`].
///
/// A chain grows by at least one token per level, within one slot between commas or through the parentheses
/// inside it. The number of tokens in all slots that are open at one time is therefore a bound.
fn check_depth(tokens: &[Token]) -> Result<(), Reason> {
    let mut outer = Vec::new();
    let (mut slot, mut sum) = (0_usize, 0_usize);
    for token in tokens {
        match token {
            Token::Comma => {
                sum -= slot;
                slot = 0;
                continue;
            }
            Token::RParen | Token::RBracket | Token::RBrace => {
                sum -= slot;
                slot = outer.pop().unwrap_or_default();
                continue;
            }
            _ => {}
        }
        slot += 1;
        sum += 1;
        if matches!(token, Token::LParen | Token::LBracket | Token::LBrace) {
            outer.push(std::mem::take(&mut slot));
        }
        if sum > MAX_CHAIN || outer.len() > MAX_PARENTHESES {
            return Err(Reason::TooLarge("deep"));
        }
    }
    Ok(())
}
