//! Scans SQL text from the catalogue (defaults, checks, trigger functions) for the functions and operators
//! that it uses. It does not parse the text.

use sqlparser::tokenizer::Token;

use crate::classify::text::names::{FunctionName, words_of_constant};
use crate::classify::text::tokens;
use crate::classify::text::tokens::{folded, word};

/// Words before a parenthesis that are not functions.
const NOT_FUNCTIONS: &str = "
    all and any array as between by case cast check collate distinct else elsif elseif escape from if ilike in index
    into is like not on or precision return row similar some then to unique using when where while with zone
    bit char character dec decimal float interval numeric time timestamp varbit varchar varying
";

/// A piece of source as tokens.
pub(crate) struct Source {
    tokens: Vec<Token>,
}

impl Source {
    /// Reads a text without white space and comments. `None` if it cannot be read.
    pub(crate) fn read(text: &str) -> Option<Self> {
        Some(Self { tokens: tokens::read(text).ok()? })
    }

    /// All functions that it calls: names before a parenthesis, and `(x).f`, which is `f(x)` if `x` has no
    /// field `f`.
    pub(crate) fn functions(&self) -> Vec<FunctionName> {
        let mut functions: Vec<_> =
            (0..self.tokens.len()).filter_map(|index| self.function_at(index)).collect();
        functions.sort();
        functions.dedup();
        functions
    }

    fn function_at(&self, index: usize) -> Option<FunctionName> {
        let token = &self.tokens[index];
        let name = folded(token)?;
        let before = |places: usize| self.tokens.get(index.checked_sub(places)?);
        let follows_dot = before(1) == Some(&Token::Period);
        if follows_dot && before(2) == Some(&Token::RParen) {
            return Some(FunctionName { schema: None, name });
        }
        if self.tokens.get(index + 1) != Some(&Token::LParen) {
            return None;
        }
        let schema = if follows_dot { before(2).and_then(folded) } else { None };
        let is_keyword = schema.is_none()
            && word(token).is_some()
            && NOT_FUNCTIONS.split_ascii_whitespace().any(|known| known == name);
        (!is_keyword).then_some(FunctionName { schema, name })
    }

    /// All operators it writes.
    pub(crate) fn operators(&self) -> Vec<String> {
        tokens::operators(&self.tokens)
    }

    /// All words. Each of them can be the name of a type.
    pub(crate) fn words(&self) -> impl Iterator<Item = String> {
        self.tokens.iter().filter_map(folded)
    }

    /// The words of its string constants. Each of them can be a name that a function like `to_tsvector`
    /// reads.
    pub(crate) fn words_of_constants(&self) -> Vec<String> {
        self.tokens.iter().filter_map(tokens::string).flat_map(words_of_constant).collect()
    }

    /// All functions and operators, and all possible types.
    pub(crate) fn names(&self) -> Vec<String> {
        self.words().chain(self.operators()).collect()
    }

    /// The first of its words that is in `words`.
    pub(crate) fn mentions(&self, words: &str) -> Option<String> {
        let mut own = self.tokens.iter().filter_map(folded);
        own.find(|own| words.split_ascii_whitespace().any(|known| known == own))
    }
}
