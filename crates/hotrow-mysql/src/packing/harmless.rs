//! What a statement that is passed through can leave on its connection for the ones after it. No I/O.

use crate::packing::reader::{Token, tokens};

/// What is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Harm {
    /// Nothing.
    None,
    /// A setting, which another connection gets by the same statement.
    Setting,
    /// Anything, or it sees what another statement has left.
    Any,
}

const TRANSACTION: [&str; 5] = ["begin", "start transaction", "commit", "rollback", "commit work"];
/// Functions that neither see nor change a session. Names are lower case.
const FUNCTIONS: [&str; 22] = [
    "count", "sum", "min", "max", "avg", "coalesce", "ifnull", "nullif", "if", "now", "length", "lower",
    "upper", "concat", "abs", "round", "floor", "ceil", "greatest", "least", "trim", "date",
];
/// Words before a parenthesis that are no functions.
const NO_FUNCTIONS: [&str; 10] =
    ["in", "and", "or", "not", "where", "on", "exists", "values", "select", "from"];
/// Words that lead out of what a query can do.
const LEADING_OUT: [&str; 9] =
    ["into", "procedure", "next", "previous", "value", "handler", "sql_calc_found_rows", "temporary", "lock"];
/// The settings that a session can change and still be packed.
const SETTINGS: [&str; 12] = [
    "names",
    "autocommit",
    "sql_mode",
    "time_zone",
    "character_set_results",
    "net_write_timeout",
    "net_read_timeout",
    "wait_timeout",
    "sql_auto_is_null",
    "foreign_key_checks",
    "unique_checks",
    "sql_safe_updates",
];

/// Judges a statement.
pub fn judge(text: &str) -> Harm {
    let text = text.trim_ascii().to_ascii_lowercase();
    if TRANSACTION.contains(&&*text) || is_variables(&text) {
        return Harm::None;
    }
    if is_setting(&text) {
        return Harm::Setting;
    }
    match tokens(&text) {
        Some(tokens) if is_query(&tokens) => Harm::None,
        _ => Harm::Any,
    }
}

/// `select @@version, @@sql_mode`: no function, and no variable that tells of another statement.
fn is_variables(text: &str) -> bool {
    let Some(list) = text.strip_prefix("select @@") else { return false };
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_@,. ".contains(&byte);
    let telling = ["warning_count", "error_count", "identity", "insert_id", "into", "from"];
    list.bytes().all(is_plain)
        && !telling.iter().any(|word| list.contains(word))
        && !list.replace("@@", "").contains('@')
}

/// `set names utf8mb4`, `set session sql_mode = 'STRICT_ALL_TABLES'`
fn is_setting(text: &str) -> bool {
    let Some(rest) = text.strip_prefix("set ") else { return false };
    let rest = rest.trim_ascii_start();
    let rest =
        ["session ", "@@session.", "@@"].iter().find_map(|scope| rest.strip_prefix(scope)).unwrap_or(rest);
    let Some(name) = SETTINGS.iter().find(|name| rest.starts_with(**name)) else { return false };
    let value = rest[name.len()..].trim_ascii_start();
    let value = if *name == "names" { Some(value) } else { value.strip_prefix('=') };
    let is_plain = |value: &str| {
        let (quoted, rest) = match value.strip_prefix('\'').and_then(|text| text.split_once('\'')) {
            Some((quoted, rest)) => (quoted, rest),
            None => ("", value),
        };
        let in_text = |byte: u8| byte.is_ascii_alphanumeric() || b"_,+-: /".contains(&byte);
        let outside = |byte: u8| byte.is_ascii_alphanumeric() || b"_ ".contains(&byte);
        quoted.bytes().all(in_text) && rest.bytes().all(outside)
    };
    value.is_some_and(|value| is_plain(value.trim_ascii()))
}

fn is_query(tokens: &[Token<'_>]) -> bool {
    if tokens.first() != Some(&Token::Word("select")) {
        return false;
    }
    let leads_out = |token: &Token<'_>| matches!(token, Token::Word(word) if LEADING_OUT.contains(word));
    let calls = tokens.windows(2).filter(|pair| pair[1] == Token::Sign("("));
    let mut names = calls.filter_map(|pair| match pair[0] {
        Token::Word(word) => Some(word),
        Token::Quoted(_) => Some("`"), // a stored function
        _ => None,
    });
    let has_table = tokens.contains(&Token::Word("from"));
    has_table
        && !tokens.iter().any(leads_out)
        && names.all(|name| FUNCTIONS.contains(&name) || NO_FUNCTIONS.contains(&name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_are_judged_by_what_they_leave() {
        for (text, harm) in [
            ("BEGIN", Harm::None),
            ("select @@version, @@session.sql_mode", Harm::None),
            ("SELECT count(*), max(a) from t where id in (1, 2)", Harm::None),
            ("set names utf8mb4", Harm::Setting),
            ("SET NAMES 'utf8mb4' COLLATE 'x'", Harm::Any),
            ("set session sql_mode='STRICT_TRANS_TABLES,NO_ZERO_DATE'", Harm::Setting),
            ("set @@autocommit = 0", Harm::Setting),
            ("set autocommit = 1, @x = 2", Harm::Any),
            ("set sql_mode = concat(@@sql_mode, 'x')", Harm::Any),
            ("set timestamp = 1", Harm::Any),
            ("set transaction isolation level serializable", Harm::Any),
            ("select row_count()", Harm::Any),
            ("select @@warning_count", Harm::Any),
            ("select last_insert_id() from t", Harm::Any),
            ("select f(1) from t", Harm::Any),
            ("select `f`(1) from t", Harm::Any),
            ("select shop.f (1) from t", Harm::Any),
            ("select a from t into outfile 'x'", Harm::Any),
            ("select next value for s from t", Harm::Any),
            ("show warnings", Harm::Any),
            ("create temporary table t (a int)", Harm::Any),
            ("call p()", Harm::Any),
        ] {
            assert_eq!(judge(text), harm, "{text}");
        }
    }
}
