//! Splits lines of `pg_hba.conf` into fields of tokens: quotes, commas, comments and continued lines. The
//! meaning of tokens is decided in `line`.

/// A token, and whether it was quoted. A quoted token has no special meaning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    pub text: String,
    pub quoted: bool,
}

impl Token {
    /// The token if it can have a special meaning.
    pub fn keyword(&self) -> Option<&str> {
        (!self.quoted).then_some(&*self.text)
    }
}

/// A field: one token, or several tokens separated by commas.
pub type Field = Vec<Token>;

/// The non-empty lines with their numbers.
pub fn lines(text: &str) -> impl Iterator<Item = (usize, Result<Vec<Field>, String>)> {
    let mut lines = text.lines().enumerate();
    let joined = std::iter::from_fn(move || {
        let (index, line) = lines.next()?;
        let mut whole = line.to_owned();
        while whole.ends_with('\\') {
            whole.pop();
            let Some((_, more)) = lines.next() else { break };
            whole.push_str(more);
        }
        Some((index + 1, fields(&whole)))
    });
    joined.filter(|(_, fields)| fields.as_ref().is_ok_and(|fields| !fields.is_empty()) || fields.is_err())
}

fn fields(line: &str) -> Result<Vec<Field>, String> {
    let mut fields: Vec<Field> = Vec::new();
    let mut goes_on = false; // after a comma
    let mut rest = line;
    loop {
        rest = rest.trim_start();
        if rest.is_empty() || rest.starts_with('#') {
            return if goes_on { Err("the line ends with a comma".to_owned()) } else { Ok(fields) };
        }
        let (token, behind) = token(rest)?;
        match fields.last_mut() {
            Some(field) if goes_on => field.push(token),
            _ => fields.push(vec![token]),
        }
        let behind_comma = behind.strip_prefix(',');
        goes_on = behind_comma.is_some();
        rest = behind_comma.unwrap_or(behind);
    }
}

/// The first token. Quotes can begin and end inside it, and two quotes stand for one.
fn token(text: &str) -> Result<(Token, &str), String> {
    let mut token = Token { text: String::new(), quoted: false };
    let mut in_quotes = false;
    let mut letters = text.char_indices().peekable();
    while let Some((index, letter)) = letters.next() {
        match letter {
            '"' if in_quotes && letters.peek().is_some_and(|(_, next)| *next == '"') => {
                token.text.push('"');
                letters.next();
            }
            '"' => {
                in_quotes = !in_quotes;
                token.quoted = true;
            }
            ',' | '#' if !in_quotes => return end(token, &text[index..]),
            letter if letter.is_whitespace() && !in_quotes => return end(token, &text[index..]),
            letter => token.text.push(letter),
        }
    }
    if in_quotes { Err("a quote is not closed".to_owned()) } else { end(token, "") }
}

fn end(token: Token, rest: &str) -> Result<(Token, &str), String> {
    if token.text.is_empty() && !token.quoted {
        return Err("a comma has nothing before it".to_owned());
    }
    Ok((token, rest))
}
