//! A statement's text in a form that other users can see: on one line and without values. It is only
//! displayed and never run.

use super::settings::{Part, Settings};

/// The text on one line, with `?` in place of strings, numbers and values of settings, and without comments. It has at most
/// `chars_max` characters.
pub fn without_values(sql: &str, chars_max: usize) -> String {
    let mut out = String::new();
    let mut settings = Settings::default();
    let mut rest = sql;
    while let Some(c) = rest.chars().next() {
        if out.len() > 4 * chars_max {
            break; // enough, regardless of the number of bytes per character
        }
        let (kind, length) = token(rest);
        let text = &rest[..length];
        match kind {
            Kind::Space if out.is_empty() || out.ends_with(' ') => {}
            Kind::Space => out.push(' '),
            Kind::Value => {
                settings.is_value(Part::Literal);
                out.push('?');
            }
            Kind::Text(part) if settings.is_value(part) => out.push('?'),
            Kind::Text(_) => out.push_str(text),
        }
        rest = &rest[length.max(c.len_utf8())..];
    }
    let text = out.trim_end().trim_end_matches(';').trim_end();
    if text.chars().count() <= chars_max {
        return text.to_owned();
    }
    let mut cut: String = text.chars().take(chars_max.saturating_sub(1)).collect();
    cut.push('…');
    cut
}

enum Kind<'a> {
    Value,
    Space,
    Text(Part<'a>),
}

/// The first token of a text and its length.
fn token(rest: &str) -> (Kind<'_>, usize) {
    let c = rest.chars().next().unwrap_or(' ');
    match c {
        _ if c.is_whitespace() => (Kind::Space, rest.len() - rest.trim_start().len()),
        _ if rest.starts_with("--") => (Kind::Space, rest.find('\n').unwrap_or(rest.len())),
        _ if rest.starts_with("/*") => (Kind::Space, comment(rest)),
        '\'' => (Kind::Value, plain_string(rest)),
        '"' => (Kind::Text(Part::QuotedName), quoted(rest, '"', false)),
        '$' => match dollar_tag(rest) {
            Some(tag) => {
                let end = rest[tag.len()..].find(tag).map_or(rest.len(), |at| at + 2 * tag.len());
                (Kind::Value, end)
            }
            None => (Kind::Text(Part::Literal), 1 + digits(&rest[1..])),
        },
        '0'..='9' => (Kind::Value, number(rest)),
        '.' if rest[1..].starts_with(|c: char| c.is_ascii_digit()) => (Kind::Value, number(rest)),
        _ if is_word(c) => {
            let word = &rest[..rest.find(|c| !is_word(c)).unwrap_or(rest.len())];
            match prefixed_string(rest, word) {
                Some(length) => (Kind::Value, length),
                None => (Kind::Text(Part::Word(word)), word.len()),
            }
        }
        _ => (Kind::Text(Part::Sign(c)), c.len_utf8()),
    }
}

/// The length of a string whose kind is selected by the letters before its quote: `E`, `B`, `X`, `N`, `U&`.
fn prefixed_string(rest: &str, word: &str) -> Option<usize> {
    let is = |prefix: &str| word.eq_ignore_ascii_case(prefix);
    let quote = if is("u") && rest[word.len()..].starts_with("&'") { word.len() + 1 } else { word.len() };
    let is_prefix = quote > word.len() || ["e", "b", "x", "n"].iter().any(|prefix| is(prefix));
    let is_string = is_prefix && rest[quote..].starts_with('\'');
    is_string.then(|| quote + quoted(&rest[quote..], '\'', is("e")))
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '$'
}

fn digits(text: &str) -> usize {
    text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len())
}

/// A number, with its fraction and exponent.
fn number(text: &str) -> usize {
    let mut previous = ' ';
    let part = |c: char| {
        let sign = matches!(c, '+' | '-') && matches!(previous, 'e' | 'E');
        previous = c;
        c.is_ascii_alphanumeric() || c == '.' || c == '_' || sign
    };
    let length: usize = text
        .chars()
        .take_while({
            let mut part = part;
            move |c| part(*c)
        })
        .map(char::len_utf8)
        .sum();
    length.max(1)
}

/// The length of a string without letters before its quote. Another quote follows a backslash only if the string ends there, or
/// if it goes on: with `standard_conforming_strings = off`, and in a second line of a string that began with `E`. The text
/// does not tell these apart, so none of the rest is shown.
fn plain_string(text: &str) -> usize {
    let length = quoted(text, '\'', false);
    let is_in_doubt = length != quoted(text, '\'', true);
    if is_in_doubt { text.len() } else { length }
}

/// The length of the quoted part, or of the remaining text if the quote does not end.
fn quoted(text: &str, quote: char, escapes: bool) -> usize {
    let mut chars = text.char_indices().skip(1).peekable();
    while let Some((index, c)) = chars.next() {
        if escapes && c == '\\' {
            chars.next();
        } else if c == quote && chars.next_if(|(_, next)| *next == quote).is_none() {
            return index + 1;
        }
    }
    text.len()
}

fn dollar_tag(text: &str) -> Option<&str> {
    let end = text[1..].find('$')? + 2;
    let name = &text[1..end - 1];
    let is_name = name.chars().all(|c| c.is_alphanumeric() || c == '_');
    (is_name && !name.starts_with(|c: char| c.is_ascii_digit())).then_some(&text[..end])
}

/// A comment with its nested comments.
fn comment(text: &str) -> usize {
    let (mut depth, mut index) = (0_usize, 0);
    while index < text.len() {
        let rest = &text.as_bytes()[index..];
        if rest.starts_with(b"/*") {
            (depth, index) = (depth + 1, index + 2);
        } else if rest.starts_with(b"*/") {
            (depth, index) = (depth - 1, index + 2);
            if depth == 0 {
                return index;
            }
        } else {
            index += 1;
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(sql: &str) -> String {
        without_values(sql, 200)
    }

    #[test]
    fn no_value_is_shown() {
        for (sql, expected) in [
            ("update t set a = 'secret', b = 42 where id = $1", "update t set a = ?, b = ? where id = $1"),
            ("select 1.5e-3, .5, 0x1F, -7, t1.c2", "select ?, ?, ?, -?, t1.c2"),
            ("select 'it''s', E'it\\'s secret', x'1F', U&'d\\0061t'", "select ?, ?, ?, ?"),
            ("select $$secret$$, $a$se$b$cret$a$, $2", "select ?, ?, $2"),
            ("alter role ann password 'secret';", "alter role ann password ?"),
            ("select -- secret\n 1 /* secret /* more */ secret */ , 2", "select ? , ?"),
            ("select \"my 'name\" from \"t1\"", "select \"my 'name\" from \"t1\""),
            ("select 'secret", "select ?"),
            ("select 'it\\'s secret', 'more secret'", "select ?"),
            ("select e'a'\n'it\\'s secret' , 1", "select ? ?"),
            ("select 'a\\\\', 'b\\c', 1", "select ?, ?, ?"),
            ("select $a$secret", "select ?"),
            ("  select\n\n  1  ;  ", "select ?"),
            ("", ""),
            ("select 'ü', name is null", "select ?, name is null"),
            ("select U&\"d\\0061t\" from t, date'2026-01-01'", "select U&\"d\\0061t\" from t, date?"),
        ] {
            assert_eq!(shown(sql), expected, "{sql}");
        }
    }

    #[test]
    fn the_text_is_truncated_to_the_maximum_length() {
        assert_eq!(without_values("select abcdef", 13), "select abcdef");
        assert_eq!(without_values("select abcdefg", 13), "select abcde…");
        assert_eq!(without_values(&"ü".repeat(20), 3), "üü…");
    }

    proptest::proptest! {
        #[test]
        fn no_text_causes_a_panic(sql in "[ a-zA-Z0-9'\"$eE\\\\;.*/ü\n&-]{0,60}") {
            shown(&sql);
        }

        #[test]
        fn quoted_contents_are_never_shown(before in "[a-z =(,]{0,10}", secret in "[A-Z ;\"$]{3,10}") {
            let sql = format!("select {before} '{secret}' , 1");
            proptest::prop_assert!(!shown(&sql).contains(secret.trim()) || secret.trim().is_empty());
        }
    }
}
