//! Reads `pgbouncer.ini`: sections, keys and values as PgBouncer reads them, and the connection strings in it. Pure.

/// A line with a key and a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its line, counted from one.
    pub line: usize,
    /// The section, in lower case.
    pub section: String,
    /// The key, without the quotes of a database's name.
    pub key: String,
    pub value: String,
}

/// A line that is not understood.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {cause}")]
pub struct Error {
    /// The line, counted from one.
    pub line: usize,
    /// Why.
    pub cause: &'static str,
}

/// The section of `%include` directives, which are not followed.
pub const INCLUDES: &str = "%include";

/// All entries in their order.
pub fn read(text: &str) -> Result<Vec<Entry>, Error> {
    let (mut section, mut entries) = (String::new(), Vec::new());
    for (index, line) in text.lines().enumerate() {
        let (number, line) = (index + 1, line.trim());
        let error = |cause| Error { line: number, cause };
        if line.is_empty() || line.starts_with([';', '#']) {
            continue;
        }
        if let Some(name) = line.strip_prefix('[') {
            let name = name.strip_suffix(']').ok_or(error("the section has no closing bracket"))?;
            section = name.trim().to_ascii_lowercase();
        } else if let Some(file) = line.strip_prefix("%include") {
            let (key, value) = (String::new(), file.trim().to_owned());
            entries.push(Entry { line: number, section: INCLUDES.to_owned(), key, value });
        } else {
            if section.is_empty() {
                return Err(error("there is no section before this line, such as [databases]"));
            }
            let (key, rest) = key(line).ok_or(error("a name in quotes has no end"))?;
            let value = rest.trim_start().strip_prefix('=').ok_or(error("there is no = after the name"))?;
            let (section, value) = (section.clone(), value.trim().to_owned());
            entries.push(Entry { line: number, section, key, value });
        }
    }
    Ok(entries)
}

/// The key of a line and the rest.
fn key(line: &str) -> Option<(String, &str)> {
    let Some(quoted) = line.strip_prefix('"') else {
        let end = line.find(|c: char| c == '=' || c.is_whitespace()).unwrap_or(line.len());
        return Some((line[..end].to_owned(), &line[end..]));
    };
    until_quote(quoted, '"')
}

/// The text until a quote that is not doubled, and the rest after it.
fn until_quote(text: &str, quote: char) -> Option<(String, &str)> {
    let (mut found, mut characters) = (String::new(), text.char_indices().peekable());
    while let Some((at, character)) = characters.next() {
        if character != quote {
            found.push(character);
        } else if characters.next_if(|(_, next)| *next == quote).is_some() {
            found.push(quote);
        } else {
            return Some((found, &text[at + 1..]));
        }
    }
    None
}

/// The pairs of a connection string: `host=db1 connect_query='select ''x'''`.
pub fn pairs(text: &str) -> Result<Vec<(String, String)>, &'static str> {
    let (mut pairs, mut rest) = (Vec::new(), text.trim_start());
    while !rest.is_empty() {
        let (name, behind) =
            rest.split_once('=').ok_or("there is no = after a name in the connection string")?;
        let behind = behind.trim_start();
        let (value, behind) = match behind.strip_prefix('\'') {
            Some(quoted) => until_quote(quoted, '\'').ok_or("a value in quotes has no end")?,
            None => {
                let end = behind.find(char::is_whitespace).unwrap_or(behind.len());
                (behind[..end].to_owned(), &behind[end..])
            }
        };
        pairs.push((name.trim().to_ascii_lowercase(), value));
        rest = behind.trim_start();
    }
    Ok(pairs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_as_by_pgbouncer() {
        let text = "; comment\n[Databases]\n\"my \"\"db\"\"\" = host=a ; not a comment\n* = \n\n  # comment\n[pgbouncer]\nauth_type=md5\n%include more.ini\n";
        let entries = read(text).unwrap();
        let lines: Vec<_> =
            entries.iter().map(|entry| (entry.line, &*entry.section, &*entry.key, &*entry.value)).collect();
        assert_eq!(
            lines,
            [
                (3, "databases", "my \"db\"", "host=a ; not a comment"),
                (4, "databases", "*", ""),
                (8, "pgbouncer", "auth_type", "md5"),
                (9, INCLUDES, "", "more.ini"),
            ]
        );
    }

    #[test]
    fn a_line_that_is_not_understood_is_named() {
        for (text, line, word) in [
            ("[pgbouncer\n", 1, "bracket"),
            ("\nlisten_port = 1\n", 2, "section"),
            ("[pgbouncer]\nlisten_port\n", 2, "="),
            ("[databases]\n\"open = host=a\n", 2, "quotes"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.line == line && error.cause.contains(word), "{text:?}: {error}");
        }
    }

    #[test]
    fn connection_strings_are_split_into_pairs() {
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let text = "host=a,b  port = 6432 password='it''s = ok' dbname=x";
        let all =
            [pair("host", "a,b"), pair("port", "6432"), pair("password", "it's = ok"), pair("dbname", "x")];
        assert_eq!(pairs(text).unwrap(), all);
        assert_eq!(pairs("").unwrap(), []);
        assert!(pairs("host").is_err() && pairs("password='x").is_err());
    }
}
