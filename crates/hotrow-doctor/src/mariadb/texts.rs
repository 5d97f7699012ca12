//! Texts of statements without their values, and with values in place of parameters. The server has accepted the texts. No I/O.

/// What a text without values shows for each value.
const VALUE: &str = "?";

/// The text on one line without comments, with `?` in place of each value and `?, …` in place of lists of them. A text in double
/// quotes counts as a value: only with ANSI_QUOTES it is a name.
pub fn without_values(sql: &str) -> String {
    let mut out: Vec<&str> = Vec::new();
    let mut rest = sql.trim_start();
    while let Some(first) = rest.chars().next() {
        let (part, length) = part(rest, first);
        match part {
            Part::Comment => {}
            Part::Space if out.last().is_none_or(|last| *last == " ") => {}
            Part::Space => out.push(" "),
            Part::Value => value(&mut out),
            Part::Text => out.push(&rest[..length]),
        }
        rest = &rest[length..];
    }
    let text: String = out.concat();
    text.trim_end().trim_end_matches(';').trim_end().to_owned()
}

/// Adds a value, or makes the value before it a list.
fn value(out: &mut Vec<&str>) {
    let mut before = out.iter().rev().filter(|part| **part != " ");
    let is_list = before.next() == Some(&",") && matches!(before.next(), Some(&VALUE | &"…"));
    if !is_list {
        return out.push(VALUE);
    }
    while let Some(last) = out.pop() {
        if last == VALUE {
            return out.extend([VALUE, ",", " ", "…"]);
        }
        if last == "…" {
            return out.push(last);
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Comment,
    Space,
    Value,
    Text,
}

/// The first part of a text, and its length.
fn part(rest: &str, first: char) -> (Part, usize) {
    let is_word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '$' | '@');
    let word = || rest.find(|c: char| !is_word(c)).unwrap_or(rest.len());
    let dash_comment = rest.strip_prefix("--").is_some_and(|after| {
        after.chars().next().is_none_or(|next| next.is_whitespace() || next.is_control())
    });
    match first {
        '/' if rest.starts_with("/*") => (Part::Comment, rest.find("*/").map_or(rest.len(), |end| end + 2)),
        '-' if dash_comment => (Part::Comment, rest.find('\n').unwrap_or(rest.len())),
        '#' => (Part::Comment, rest.find('\n').unwrap_or(rest.len())),
        '\'' | '"' => (Part::Value, quoted(rest, first)),
        '`' => (Part::Text, 1 + rest[1..].find('`').map_or(rest.len() - 1, |end| end + 1)),
        '?' => (Part::Value, 1),
        '0'..='9' => (Part::Value, number(rest)),
        // Such as x'41', _utf8'a' and n'a'.
        c if is_word(c) && rest[word()..].starts_with('\'') && is_introducer(&rest[..word()]) => {
            (Part::Value, word() + quoted(&rest[word()..], '\''))
        }
        c if is_word(c) => (Part::Text, word()),
        c if c.is_whitespace() => (Part::Space, c.len_utf8()),
        c => (Part::Text, c.len_utf8()),
    }
}

fn is_introducer(word: &str) -> bool {
    word.starts_with('_') || ["x", "b", "n"].iter().any(|one| word.eq_ignore_ascii_case(one))
}

/// The length of a number: also 0x41 and 1e-5.
fn number(rest: &str) -> usize {
    let mut length = 0;
    let mut before = ' ';
    for c in rest.chars() {
        let is_sign = matches!(c, '+' | '-') && matches!(before, 'e' | 'E') && !rest.starts_with("0x");
        if !(c.is_alphanumeric() || c == '.' || c == '_' || is_sign) {
            break;
        }
        length += c.len_utf8();
        before = c;
    }
    length
}

/// The length of a text in quotes. A text that was cut has no end.
fn quoted(rest: &str, quote: char) -> usize {
    let mut letters = rest.char_indices().skip(1).peekable();
    while let Some((at, letter)) = letters.next() {
        if letter == '\\' {
            letters.next();
        } else if letter == quote && letters.next_if(|(_, next)| *next == quote).is_none() {
            return at + 1;
        }
    }
    rest.len()
}

/// The most parameters for which all kinds of values are tried.
const PARAMETERS_MAX: u32 = 8;

/// The text with integers and texts in place of its parameters: what a prepared statement can be executed with. With many parameters,
/// they are all integers or all texts.
pub fn with_values(sql: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut rest = sql;
    while let Some(first) = rest.chars().next() {
        let (_, length) = part(rest, first);
        match first {
            '?' => parts.push(String::new()),
            _ => parts.last_mut().expect("there is a first part").push_str(&rest[..length]),
        }
        rest = &rest[length..];
    }
    let parameters = u32::try_from(parts.len() - 1).unwrap_or(u32::MAX);
    let masks: Vec<u32> = match parameters {
        0..=PARAMETERS_MAX => (0..1 << parameters).collect(),
        _ => vec![0, u32::MAX],
    };
    let text = |mask: u32| {
        let mut text = parts[0].clone();
        for (place, part) in parts[1..].iter().enumerate() {
            text += if mask >> (place % 32) & 1 == 0 { "1" } else { "'x'" };
            text += part;
        }
        text
    };
    masks.into_iter().map(text).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_value_is_left() {
        for (sql, shown) in [
            (
                "UPDATE item  SET stock=stock - 1\n WHERE id = 7;",
                "UPDATE item SET stock=stock - ? WHERE id = ?",
            ),
            ("select 'it''s', \"a\\\"b\", 'x\\'y' from t1", "select ?, … from t1"),
            (
                "insert into t2 (a, b) values (1, 'x'), (2, 'y')",
                "insert into t2 (a, b) values (?, …), (?, …)",
            ),
            ("select x'41', 0x41, 1e-5, _utf8'ab', n'c', .5", "select ?, …, .?"),
            (
                "select 1 -- secret\n from `a b` # secret\n/* secret */ where a1 = 2",
                "select ? from `a b` where a1 = ?",
            ),
            ("select 1 where a = 'cut", "select ? where a = ?"),
            ("select a-1, a--1", "select a-?, a--?"),
            (
                "update t set a = ? where id in (?,?, 3 ) and b = 4",
                "update t set a = ? where id in (?, … ) and b = ?",
            ),
            ("select @a, t.1a, é from größe where ä = 'ö'", "select @a, t.?, é from größe where ä = ?"),
        ] {
            assert_eq!(without_values(sql), shown, "{sql}");
        }
    }

    #[test]
    fn every_text_has_an_end() {
        for sql in ["'", "\"", "`", "/*", "--", "#", "x'", "\\", "'\\", "?", "", "é'é"] {
            without_values(sql);
            with_values(sql);
        }
    }

    #[test]
    fn parameters_become_values() {
        assert_eq!(with_values("a = '?' and b = `?`"), ["a = '?' and b = `?`"]);
        assert_eq!(
            with_values("a = ? and b = ?"),
            ["a = 1 and b = 1", "a = 'x' and b = 1", "a = 1 and b = 'x'", "a = 'x' and b = 'x'"]
        );
        assert_eq!(with_values(&"?,".repeat(9)).len(), 2);
    }
}
