//! Lines of `pg_hba.conf` as fields of words: what quotes, commas, comments and continued lines mean. Not what words mean.

/// A word, and whether it stood in quotes, which takes its special meaning away.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Word {
    pub text: String,
    pub quoted: bool,
}

impl Word {
    /// The word if it has not lost its special meaning.
    pub fn keyword(&self) -> Option<&str> {
        (!self.quoted).then_some(&*self.text)
    }
}

/// A field: one word, or several with commas.
pub type Field = Vec<Word>;

/// The lines that say something, with their numbers.
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
    let mut goes_on = false; // behind a comma
    let mut rest = line;
    loop {
        rest = rest.trim_start();
        if rest.is_empty() || rest.starts_with('#') {
            return if goes_on { Err("it ends with a comma".to_owned()) } else { Ok(fields) };
        }
        let (word, behind) = word(rest)?;
        match fields.last_mut() {
            Some(field) if goes_on => field.push(word),
            _ => fields.push(vec![word]),
        }
        let behind_comma = behind.strip_prefix(',');
        goes_on = behind_comma.is_some();
        rest = behind_comma.unwrap_or(behind);
    }
}

/// The word at the front. Quotes may begin and end within it, and two of them are one.
fn word(text: &str) -> Result<(Word, &str), String> {
    let mut word = Word { text: String::new(), quoted: false };
    let mut in_quotes = false;
    let mut letters = text.char_indices().peekable();
    while let Some((index, letter)) = letters.next() {
        match letter {
            '"' if in_quotes && letters.peek().is_some_and(|(_, next)| *next == '"') => {
                word.text.push('"');
                letters.next();
            }
            '"' => {
                in_quotes = !in_quotes;
                word.quoted = true;
            }
            ',' | '#' if !in_quotes => return end(word, &text[index..]),
            letter if letter.is_whitespace() && !in_quotes => return end(word, &text[index..]),
            letter => word.text.push(letter),
        }
    }
    if in_quotes { Err("a quote is not closed".to_owned()) } else { end(word, "") }
}

fn end(word: Word, rest: &str) -> Result<(Word, &str), String> {
    if word.text.is_empty() && !word.quoted {
        return Err("a comma has nothing before it".to_owned());
    }
    Ok((word, rest))
}
