//! What a command changes in the catalog, read from its words. What verdicts make of that is not known here.

use sqlparser::tokenizer::Token;

use crate::classify::read::analysis::Alters;
use crate::classify::text::tokens::{self, Cursor, folded, is_word};

/// Kinds of objects that are tables or belong to one.
const OF_TABLES: &[&str] = &["table", "index", "trigger", "policy", "rule", "view", "unique"];

/// Kinds of objects whose privileges are facts of a verdict.
const PRIVILEGES_COUNT: &[&str] =
    &["schema", "function", "procedure", "routine", "type", "domain", "language", "foreign", "all"];

/// Words of a block that can change the catalog, or run a text that is not known.
const IN_BLOCKS: &[&str] = &[
    "alter", "call", "create", "do", "drop", "execute", "grant", "import", "load", "reassign", "revoke",
    "security",
];

/// What this command changes. `cursor` is after its first word.
pub(crate) fn alters(word: &str, cursor: Cursor<'_>) -> Alters {
    match word {
        "create" => of_create(cursor),
        // CASCADE can drop objects of other kinds.
        "drop" if cursor.mentions(&["cascade"]) => Alters::Anything,
        "drop" | "alter" => of_kind(cursor),
        "grant" | "revoke" => of_privileges(cursor),
        _ => Alters::Anything,
    }
}

fn of_create(mut cursor: Cursor<'_>) -> Alters {
    if cursor.take(&["or"]) {
        cursor.take(&["replace"]);
    }
    cursor.take(&["local", "global"]);
    if cursor.take(&["temp", "temporary"]) {
        // The object is seen by its own session only, unless it is a part of another table.
        let is_table = cursor.peek_word().is_some_and(|word| word == "table");
        let is_part = cursor.mentions(&["inherits", "partition"]);
        return if is_table && !is_part { Alters::Nothing } else { Alters::Tables };
    }
    cursor.take(&["unlogged", "recursive", "materialized"]);
    of_kind(cursor)
}

/// What a command changes that goes on with the kind of the object.
fn of_kind(cursor: Cursor<'_>) -> Alters {
    match cursor.peek_word() {
        Some(word) if OF_TABLES.contains(&word.as_str()) => Alters::Tables,
        _ => Alters::Anything,
    }
}

/// The privileges of tables, sequences and databases are checked by the server each time. Others are facts: whether a function may be
/// called, or a schema looked into. A role that becomes a member of another one has all privileges of that one.
fn of_privileges(mut cursor: Cursor<'_>) -> Alters {
    if !cursor.skip_to(&["on"]) {
        return Alters::Anything;
    }
    cursor.advance();
    if cursor.take(&["all"]) {
        return if cursor.take(&["tables", "sequences"]) { Alters::Nothing } else { Alters::Anything };
    }
    match cursor.peek_word() {
        Some(word) if PRIVILEGES_COUNT.contains(&word.as_str()) => Alters::Anything,
        _ => Alters::Nothing,
    }
}

/// What a DO block changes. The code that it calls does not count, as in a query.
pub(crate) fn of_block(cursor: Cursor<'_>) -> Alters {
    let in_plpgsql = match cursor.rest() {
        [_] => true,
        [one, language, other] => {
            is_word(Some(language), &["language"]) && is_word(Some(other), &["plpgsql"])
                || is_word(Some(one), &["language"]) && is_word(Some(language), &["plpgsql"])
        }
        _ => false,
    };
    let body = cursor.rest().iter().find_map(tokens::string).filter(|_| in_plpgsql);
    let words = body.and_then(|body| tokens::read(body).ok());
    let is_harmless = |token: &Token| folded(token).is_none_or(|word| !IN_BLOCKS.contains(&word.as_str()));
    match words {
        Some(words) if words.iter().all(is_harmless) => Alters::Nothing,
        _ => Alters::Anything,
    }
}
