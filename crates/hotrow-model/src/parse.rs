//! The words of a command as scripts write it: `increment a 2 #r1`, `create_sale shoe 3 per_buyer=2 hold=1`. A request ID follows
//! `#`.

use crate::Id;

/// A word that a script cannot have there.
#[derive(Debug, thiserror::Error)]
#[error("the script needs {wanted} where it says {found:?}; correct that line")]
pub struct ParseError {
    wanted: &'static str,
    found: String,
}

impl ParseError {
    pub(crate) fn new(wanted: &'static str, found: &str) -> Self {
        Self { wanted, found: found.to_owned() }
    }
}

/// The words of a line. Words with a name (`hold=1`) are kept separately.
pub struct Words<'a> {
    line: &'a str,
    plain: std::vec::IntoIter<&'a str>,
    named: Vec<(&'a str, &'a str)>,
    request: Option<Id>,
}

impl<'a> Words<'a> {
    pub fn of(line: &'a str) -> Result<Self, ParseError> {
        let (mut plain, mut named, mut request) = (Vec::new(), Vec::new(), None);
        for word in line.split_whitespace() {
            if let Some(id) = word.strip_prefix('#') {
                request = Some(id.parse()?);
            } else if let Some(pair) = word.split_once('=') {
                named.push(pair);
            } else {
                plain.push(word);
            }
        }
        Ok(Self { line, plain: plain.into_iter(), named, request })
    }

    pub fn next_word(&mut self) -> Option<&'a str> {
        self.plain.next()
    }

    pub fn text(&mut self) -> Result<String, ParseError> {
        self.next_word().map(str::to_owned).ok_or_else(|| ParseError::new("one more word", self.line))
    }

    pub fn texts(&mut self) -> Result<Vec<String>, ParseError> {
        Ok(self.text()?.split(',').map(str::to_owned).collect())
    }

    pub fn number(&mut self) -> Result<i64, ParseError> {
        number(&self.text()?)
    }

    pub fn number_or_1(&mut self) -> Result<i64, ParseError> {
        self.next_word().map_or(Ok(1), number)
    }

    pub fn numbers(&mut self) -> Result<Vec<i64>, ParseError> {
        self.text()?.split(',').map(number).collect()
    }

    pub fn id(&mut self) -> Result<Id, ParseError> {
        self.text()?.parse()
    }

    pub fn request(&self) -> Result<Option<Id>, ParseError> {
        Ok(self.request)
    }

    pub fn option(&self, name: &str) -> Result<Option<i64>, ParseError> {
        let found = self.named.iter().find(|(named, _)| *named == name);
        found.map(|(_, value)| number(value)).transpose()
    }

    /// An argument that scripts do not write.
    pub fn nothing<T: Default>(&self) -> Result<T, ParseError> {
        Ok(T::default())
    }
}

fn number(word: &str) -> Result<i64, ParseError> {
    word.parse().map_err(|_| ParseError::new("a number", word))
}
