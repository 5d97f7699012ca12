//! The kind of a query that decides what to do about the reason why it is passed through. Knows its tokens only: most of these
//! queries are not parsed.

use sqlparser::tokenizer::Token;

use crate::classify::reason::StatementKind;
use crate::classify::text::tokens::is_word;

/// The kind, if it is one of those for which something else has to be done.
pub(crate) fn of(tokens: &[Token]) -> Option<StatementKind> {
    let skips = |two: &[Token]| is_word(two.first(), &["skip"]) && is_word(two.get(1), &["locked"]);
    let first = tokens.first();
    let changes =
        || tokens.iter().any(|token| is_word(Some(token), &["insert", "update", "delete", "merge"]));
    let only_reads =
        is_word(first, &["select", "values", "table"]) || is_word(first, &["with"]) && !changes();
    if tokens.windows(2).any(skips) {
        Some(StatementKind::SkipsLocked)
    } else if only_reads || first == Some(&Token::LParen) {
        Some(StatementKind::Reads)
    } else if is_word(first, &["insert"]) {
        Some(StatementKind::Inserts)
    } else {
        None
    }
}
