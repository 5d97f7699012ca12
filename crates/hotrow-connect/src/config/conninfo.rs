//! Splits the TLS parameters off a libpq URL or keyword string, because the parser of the other parameters does not
//! know all of them.

use std::borrow::Cow;

use percent_encoding::percent_decode_str;

/// The text without these parameters, and the parameters with their values. The parser of the remaining text reports
/// syntax errors.
pub fn split(text: &str, parameters: &[&str]) -> (String, Vec<(String, String)>) {
    if text.starts_with("postgres://") || text.starts_with("postgresql://") {
        split_url(text, parameters)
    } else {
        split_keywords(text, parameters)
    }
}

fn split_url(text: &str, parameters: &[&str]) -> (String, Vec<(String, String)>) {
    let after_user = text.find('@').unwrap_or(0);
    let Some(mark) = text[after_user..].find('?').map(|at| at + after_user) else {
        return (text.to_owned(), Vec::new());
    };
    let (mut found, mut rest) = (Vec::new(), Vec::new());
    for pair in text[mark + 1..].split('&') {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        if parameters.contains(&&*decoded(name)) {
            found.push((decoded(name).into_owned(), decoded(value).into_owned()));
        } else {
            rest.push(pair);
        }
    }
    let mut without = text[..mark].to_owned();
    if !rest.is_empty() {
        without.push('?');
        without.push_str(&rest.join("&"));
    }
    (without, found)
}

fn decoded(text: &str) -> Cow<'_, str> {
    percent_decode_str(text).decode_utf8_lossy()
}

fn split_keywords(text: &str, parameters: &[&str]) -> (String, Vec<(String, String)>) {
    let (mut found, mut without, mut rest) = (Vec::new(), String::new(), text);
    while let Some((pair, behind)) = next_pair(rest) {
        if parameters.contains(&pair.0) {
            found.push((pair.0.to_owned(), pair.1));
            without.push(' ');
        } else {
            without.push_str(&rest[..rest.len() - behind.len()]);
        }
        rest = behind;
    }
    without.push_str(rest);
    (without, found)
}

/// The first `name = value` and the remaining text.
fn next_pair(text: &str) -> Option<((&str, String), &str)> {
    let (name, rest) = text.trim_start().split_once('=')?;
    let rest = rest.trim_start();
    let quoted = rest.starts_with('\'');
    let mut value = String::new();
    let mut characters = rest.char_indices().skip(usize::from(quoted));
    while let Some((at, character)) = characters.next() {
        match character {
            '\\' => value.push(characters.next()?.1),
            '\'' if quoted => return Some(((name.trim_end(), value), &rest[at + 1..])),
            _ if !quoted && character.is_whitespace() => {
                return Some(((name.trim_end(), value), &rest[at..]));
            }
            _ => value.push(character),
        }
    }
    (!quoted).then_some(((name.trim_end(), value), ""))
}

#[cfg(test)]
mod tests {
    use super::split;

    const PARAMETERS: [&str; 2] = ["sslmode", "sslkey"];

    fn check(text: &str, rest: &str, parameters: &[(&str, &str)]) {
        let parameters: Vec<_> =
            parameters.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        assert_eq!(split(text, &PARAMETERS), (rest.to_owned(), parameters), "{text}");
    }

    #[test]
    fn tls_parameters_of_a_url_are_split_off() {
        check("postgres://a@b/c", "postgres://a@b/c", &[]);
        check("postgres://a@b/c?sslmode=require", "postgres://a@b/c", &[("sslmode", "require")]);
        check(
            "postgresql://b?x=1&sslmode=prefer&y=%20&sslkey=%2Fa%20b",
            "postgresql://b?x=1&y=%20",
            &[("sslmode", "prefer"), ("sslkey", "/a b")],
        );
        check("postgres://a:p?sslmode=x@b/c", "postgres://a:p?sslmode=x@b/c", &[]);
        check("postgres://b?sslmode", "postgres://b", &[("sslmode", "")]);
    }

    #[test]
    fn tls_parameters_of_a_keyword_string_are_split_off() {
        check("host=b user=a", "host=b user=a", &[]);
        check("host=b sslmode = require user=a", "host=b  user=a", &[("sslmode", "require")]);
        check(r"sslkey='/a b\'c' password='sslmode=x'", "  password='sslmode=x'", &[("sslkey", "/a b'c")]);
        check(r"sslkey=a\ b sslmode=''", "  ", &[("sslkey", "a b"), ("sslmode", "")]);
        check("password=p\\'q sslmode=disable", "password=p\\'q ", &[("sslmode", "disable")]);
        check("nonsense", "nonsense", &[]);
        check("sslmode='open", "sslmode='open", &[]);
    }
}
