//! What a statement that is passed through can leave on its connection for the ones after it. No I/O.

use hotrow_mysql_core::reader::{Token, tokens, without_end};

/// What is left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Harm<'a> {
    /// Nothing, and it sees nothing of the statement before it, if these are tables without triggers: names with their databases.
    /// A view or a trigger can call a function that leaves anything.
    Tables(Vec<(Option<&'a str>, &'a str)>),
    /// Nothing that a packed statement sees.
    None,
    /// This setting, which another connection gets by the same statement.
    Setting(&'static str),
    /// This database becomes the session's, if the server agrees.
    Database(&'a str),
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
const NO_FUNCTIONS: [&str; 15] = [
    "in", "and", "or", "not", "where", "on", "exists", "values", "select", "from", "using", "by", "join",
    "set", "distinct",
];
/// Words that lead out of what a statement on tables can do.
const LEADING_OUT: [&str; 10] = [
    "into",
    "procedure",
    "next",
    "previous",
    "value",
    "handler",
    "sql_calc_found_rows",
    "temporary",
    "lock",
    "outfile",
];
/// Words behind the tables of a statement.
const AFTER_TABLES: [&str; 9] =
    ["where", "group", "having", "order", "limit", "union", "except", "intersect", "returning"];
/// Settings that change what a packed statement means. A lane has them too.
const SETTINGS: [&str; 8] = [
    "names",
    "sql_mode",
    "time_zone",
    "character_set_results",
    "sql_auto_is_null",
    "foreign_key_checks",
    "unique_checks",
    "sql_safe_updates",
];
/// Settings that do not. The server's status tells whether the session is in autocommit mode.
const FREE_SETTINGS: [&str; 4] = ["autocommit", "net_write_timeout", "net_read_timeout", "wait_timeout"];
/// Character sets in which the gateway cannot read its own answers.
const WIDE: [&str; 3] = ["ucs2", "utf16", "utf32"];
/// Variables that tell nothing of another statement.
const VARIABLES: [&str; 36] = [
    "auto_increment_increment",
    "autocommit",
    "character_set_client",
    "character_set_connection",
    "character_set_database",
    "character_set_results",
    "character_set_server",
    "collation_connection",
    "collation_database",
    "collation_server",
    "default_storage_engine",
    "have_query_cache",
    "hostname",
    "init_connect",
    "interactive_timeout",
    "license",
    "lower_case_table_names",
    "max_allowed_packet",
    "net_buffer_length",
    "net_read_timeout",
    "net_write_timeout",
    "performance_schema",
    "port",
    "query_cache_size",
    "query_cache_type",
    "read_only",
    "socket",
    "sql_mode",
    "system_time_zone",
    "time_zone",
    "tx_isolation",
    "tx_read_only",
    "version",
    "version_comment",
    "wait_timeout",
    "transaction_isolation",
];

const KILL_OPTIONS: [&str; 4] = ["hard", "soft", "connection", "query"];

/// Judges a statement.
pub fn judge(text: &str) -> Harm<'_> {
    let text = without_end(text).trim_ascii();
    let lower = text.to_ascii_lowercase();
    if TRANSACTION.contains(&&*lower) || is_variables(&lower) {
        return Harm::None;
    }
    if let Some(harm) = setting(&lower) {
        return harm;
    }
    if let Some(name) = lower.strip_prefix("use").and_then(|_| used(text)) {
        return Harm::Database(name);
    }
    // The two texts have the same tokens, and names of tables can differ in their case.
    match (tokens(&lower), tokens(text)) {
        (Some(lower), Some(tokens)) => Tables::of(&lower, &tokens).map_or(Harm::Any, Harm::Tables),
        _ => Harm::Any,
    }
}

/// The database that `use shop` names. A comment or a name in another form is not read.
fn used(text: &str) -> Option<&str> {
    let tokens = tokens(text)?;
    let [Token::Word(word), Token::Word(name) | Token::Quoted(name)] = *tokens else { return None };
    (word.eq_ignore_ascii_case("use") && is_plain_database(name)).then_some(name)
}

/// Whether a name means the same database in a statement and in a login, and needs no quotes or escapes as a text.
pub fn is_plain_database(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_$-".contains(&byte);
    !name.is_empty() && name.bytes().all(is_plain)
}

/// The connection that a statement kills, or whose statement it kills.
pub fn killed(text: &str) -> Option<u32> {
    let text = without_end(text).to_ascii_lowercase();
    let mut words = text.split_ascii_whitespace().filter(|word| !KILL_OPTIONS.contains(word));
    match [words.next(), words.next(), words.next()] {
        [Some("kill"), Some(thread), None] => thread.parse().ok(),
        _ => None,
    }
}

/// `select 1`, `select @@version, @@session.sql_mode as mode`
fn is_variables(text: &str) -> bool {
    let Some(list) = text.strip_prefix("select ") else { return false };
    let is_name = |word: &str| word.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    let is_value = |word: &str| match word.strip_prefix("@@") {
        Some(name) => VARIABLES.contains(&name.strip_prefix("session.").unwrap_or(name)),
        None => word.bytes().all(|byte| byte.is_ascii_digit()),
    };
    list.split(',').all(|item| match *item.split_ascii_whitespace().collect::<Vec<_>>() {
        [value] => is_value(value),
        [value, "as", alias] => is_value(value) && is_name(alias),
        _ => false,
    })
}

/// `set names utf8mb4`, `set session sql_mode = 'STRICT_ALL_TABLES'`
fn setting(text: &str) -> Option<Harm<'static>> {
    let rest = text.strip_prefix("set ")?.trim_ascii_start();
    let rest =
        ["session ", "@@session.", "@@"].iter().find_map(|scope| rest.strip_prefix(scope)).unwrap_or(rest);
    let is_named = |name: &&&'static str| rest.starts_with(**name);
    let repeated = SETTINGS.iter().find(is_named);
    let name = repeated.or_else(|| FREE_SETTINGS.iter().find(is_named))?;
    let value = rest[name.len()..].trim_ascii_start();
    let value = if *name == "names" { Some(value) } else { value.strip_prefix('=') };
    let value = value?.trim_ascii();
    let (quoted, rest) = match value.strip_prefix('\'').and_then(|text| text.split_once('\'')) {
        Some((quoted, rest)) => (quoted, rest),
        None => ("", value),
    };
    let in_text = |byte: u8| byte.is_ascii_alphanumeric() || b"_,+-: /".contains(&byte);
    let outside = |byte: u8| byte.is_ascii_alphanumeric() || b"_ ".contains(&byte);
    let is_plain = quoted.bytes().all(in_text) && rest.bytes().all(outside);
    let is_wide = WIDE.iter().any(|name| value.contains(name));
    (is_plain && !is_wide).then_some(repeated.map_or(Harm::None, |name| Harm::Setting(name)))
}

/// Finds the tables of a statement that reads or changes tables, and calls nothing that is unknown.
struct Tables<'t, 'a> {
    lower: &'t [Token<'t>],
    tokens: &'t [Token<'a>],
    found: Vec<(Option<&'a str>, &'a str)>,
}

impl<'t, 'a> Tables<'t, 'a> {
    fn of(lower: &'t [Token<'t>], tokens: &'t [Token<'a>]) -> Option<Vec<(Option<&'a str>, &'a str)>> {
        let mut tables = Tables { lower, tokens, found: Vec::new() };
        let start = tables.target()?;
        (tables.calls_nothing_unknown(start) && tables.read(start).is_some() && !tables.found.is_empty())
            .then_some(tables.found)
    }

    /// Reads the table that is changed. Returns the place behind it, or 0 for a query.
    fn target(&mut self) -> Option<usize> {
        let mut at = 1;
        let is_one = |at: usize, word| self.lower.get(at).is_some_and(|token| is_word(*token, word));
        let into = match self.lower.first()? {
            Token::Word("select") => return Some(0),
            Token::Word("update") => None,
            Token::Word("delete") => Some("from"),
            Token::Word("insert" | "replace") => Some("into"),
            _ => return None,
        };
        at += usize::from(is_one(at, "ignore"));
        if let Some(word) = into {
            is_one(at, word).then_some(())?;
            at += 1;
        }
        let behind = self.table(at)?;
        let next = self.lower.get(behind).copied();
        let fits = match self.lower[0] {
            Token::Word("update") => next.is_some_and(|token| is_word(token, "set")),
            Token::Word("delete") => {
                next.is_none_or(|token| AFTER_TABLES.iter().any(|word| is_word(token, word)))
            }
            _ => next.is_some_and(|token| {
                ["(", "values", "set", "select"].iter().any(|word| is_word(token, word))
            }),
        };
        fits.then_some(behind)
    }

    /// Notes the table whose name begins here. Returns the place behind it.
    fn table(&mut self, at: usize) -> Option<usize> {
        let name = |at: usize| match *self.tokens.get(at)? {
            Token::Word(name) | Token::Call(name) | Token::Quoted(name) => Some(name),
            _ => None,
        };
        let first = name(at)?;
        if self.lower.get(at + 1) != Some(&Token::Sign(".")) {
            self.found.push((None, first));
            return Some(at + 1);
        }
        self.found.push((Some(first), name(at + 2)?));
        Some(at + 3)
    }

    fn calls_nothing_unknown(&self, start: usize) -> bool {
        let rest = &self.lower[start..];
        let is_known = |place: usize| {
            let before = place.checked_sub(1).map(|before| rest[before]);
            let is_called = rest.get(place + 1) == Some(&Token::Sign("("));
            match rest[place] {
                Token::Word(word) | Token::Call(word) if LEADING_OUT.contains(&word) => false,
                Token::Call(word) if NO_FUNCTIONS.contains(&word) => true,
                Token::Call(word) => FUNCTIONS.contains(&word) && before != Some(Token::Sign(".")),
                Token::Word(word) if is_called => NO_FUNCTIONS.contains(&word),
                Token::Quoted(_) => !is_called,
                _ => true,
            }
        };
        (0..rest.len()).all(is_known)
    }

    /// Notes the tables behind FROM and JOIN. A list of tables with commas is not read.
    fn read(&mut self, start: usize) -> Option<()> {
        let (mut depth, mut open) = (0_usize, Vec::new());
        for at in start..self.lower.len() {
            let is_column = at.checked_sub(1).is_some_and(|before| self.lower[before] == Token::Sign("."));
            match self.lower[at] {
                _ if is_column => {}
                Token::Sign("(") => depth += 1,
                Token::Sign(")") => {
                    depth = depth.checked_sub(1)?;
                    open.retain(|of| *of <= depth);
                }
                Token::Sign(",") if open.last() == Some(&depth) => return None,
                Token::Word(word) | Token::Call(word) if AFTER_TABLES.contains(&word) => {
                    open.pop_if(|of| *of == depth);
                }
                // Other meanings stand between tables.
                Token::Word("for") => is_word(*self.lower.get(at + 1)?, "update").then_some(())?,
                Token::Word(word @ ("from" | "join" | "straight_join"))
                | Token::Call(word @ ("from" | "join" | "straight_join")) => {
                    if word == "from" {
                        open.push(depth);
                    }
                    let next = [self.lower.get(at + 1), self.lower.get(at + 2)];
                    match next {
                        [Some(Token::Sign("(")), Some(token)] if is_word(*token, "select") => {}
                        _ => drop(self.table(at + 1)?),
                    }
                }
                _ => {}
            }
        }
        Some(())
    }
}

fn is_word(token: Token<'_>, wanted: &str) -> bool {
    matches!(token, Token::Word(word) | Token::Call(word) | Token::Sign(word) if word == wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_are_judged_by_what_they_leave() {
        for (text, harm) in [
            ("BEGIN", Harm::None),
            ("commit;", Harm::None),
            ("select 1", Harm::None),
            ("select @@version, @@session.sql_mode AS mode", Harm::None),
            ("set names utf8mb4", Harm::Setting("names")),
            ("SET NAMES 'utf8mb4' COLLATE 'x'", Harm::Any),
            ("set session sql_mode='STRICT_TRANS_TABLES,NO_ZERO_DATE'", Harm::Setting("sql_mode")),
            ("set @@autocommit = 0", Harm::None),
            ("set autocommit = 1, @x = 2", Harm::Any),
            ("set character_set_results = utf16", Harm::Any),
            ("set sql_mode = concat(@@sql_mode, 'x')", Harm::Any),
            ("set timestamp = 1", Harm::Any),
            ("set transaction isolation level serializable", Harm::Any),
            ("select row_count()", Harm::Any),
            ("select @@warning_count", Harm::Any),
            ("select @@last_gtid", Harm::Any),
            ("select @@version, x", Harm::Any),
            ("select @@version as a b", Harm::Any),
            ("select last_insert_id() from t", Harm::Any),
            ("select f(1) from t", Harm::Any),
            ("select `f`(1) from t", Harm::Any),
            ("select shop.f (1) from t", Harm::Any),
            ("select shop.max(1) from t", Harm::Any),
            ("select count (1) from t", Harm::Any),
            ("select a from t into outfile 'x'", Harm::Any),
            ("select next value for s from t", Harm::Any),
            ("select 1 from t, v", Harm::Any),
            ("select 1 from t join u on t.a = u.a, v", Harm::Any),
            ("select 1 from (t, v)", Harm::Any),
            ("select 1 from t for system_time all, v", Harm::Any),
            ("select 1 from t join u on t.where = u.a, v", Harm::Any),
            ("update t, v set a = 1", Harm::Any),
            ("delete from t using v join t", Harm::Any),
            ("update t set a = f(1)", Harm::Any),
            ("show warnings", Harm::Any),
            ("create temporary table t (a int)", Harm::Any),
            ("call p()", Harm::Any),
            ("use Shop", Harm::Database("Shop")),
            ("USE `my-shop`;", Harm::Database("my-shop")),
            ("use `a b`", Harm::Any),
            ("use ``", Harm::Any),
            ("use a.b", Harm::Any),
            ("use /*!99999 x */ y", Harm::Any),
            ("use", Harm::Any),
        ] {
            assert_eq!(judge(text), harm, "{text}");
        }
    }

    #[test]
    fn the_killed_connection_is_read() {
        for (text, thread) in [
            ("KILL 7", Some(7)),
            ("kill soft query 7;", Some(7)),
            ("kill connection 7", Some(7)),
            ("kill query id 7", None),
            ("kill user ann", None),
            ("select 7", None),
        ] {
            assert_eq!(killed(text), thread, "{text}");
        }
    }

    #[test]
    fn the_tables_of_a_statement_are_found() {
        for (text, tables) in [
            ("SELECT count(*), max(a) from Item where id in (1, 2)", &[(None, "Item")][..]),
            (
                "select 1 from a.T x left join `u` using (a, b) where exists (select 1 from w)",
                &[(Some("a"), "T"), (None, "u"), (None, "w")],
            ),
            ("select a from (select a, b from t) x order by a, b", &[(None, "t")]),
            ("insert ignore into t (a, b) values (1, 2), (3, 4)", &[(None, "t")]),
            ("insert into t(a) select a from u", &[(None, "t"), (None, "u")]),
            ("update t set a = a + 1 where id in (1, 2)", &[(None, "t")]),
            ("delete from t limit 5", &[(None, "t")]),
            ("replace into s.t values (1)", &[(Some("s"), "t")]),
        ] {
            assert_eq!(judge(text), Harm::Tables(tables.to_vec()), "{text}");
        }
    }
}
