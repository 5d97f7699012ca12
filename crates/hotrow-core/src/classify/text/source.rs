//! Scans SQL text from the catalogue (defaults, checks, trigger functions) for the functions and operators
//! that it uses. It does not parse the text.

use sqlparser::tokenizer::Token;

use crate::classify::text::names::{FunctionName, words_of_constant};
use crate::classify::text::tokens;
use crate::classify::text::tokens::{folded, word};

/// Words before a parenthesis that are no functions, because PostgreSQL allows no function with such a name without quotes.
const NOT_FUNCTIONS: &str = "
    all and any array as between case cast check collate distinct else from in into not on or precision row some then to
    unique using when where with bit char character dec decimal float interval numeric time timestamp varchar
";

/// Words before a parenthesis that are functions only if there are functions with these names.
const PERHAPS_FUNCTIONS: &str =
    "by elseif elsif escape if ilike index is like return similar varbit varying while zone";

/// Functions with FROM between their arguments.
const WITH_FROM: &str = "extract overlay substring trim";

fn is_in(list: &str, word: &str) -> bool {
    list.split_ascii_whitespace().any(|known| known == word)
}

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
        let all = (0..self.tokens.len()).filter_map(|index| self.function_at(index));
        let mut functions: Vec<_> = all.filter(|function| !self.is_perhaps(function)).collect();
        functions.sort();
        functions.dedup();
        functions
    }

    /// Words before a parenthesis that are syntax unless there is such a function.
    pub(crate) fn perhaps_functions(&self) -> impl Iterator<Item = FunctionName> {
        let all = (0..self.tokens.len()).filter_map(|index| self.function_at(index));
        all.filter(|function| self.is_perhaps(function))
    }

    fn is_perhaps(&self, function: &FunctionName) -> bool {
        function.schema.is_none() && is_in(PERHAPS_FUNCTIONS, &function.name)
    }

    /// Whether it reads a relation: it has a FROM that belongs neither to IS DISTINCT FROM nor to a function like `extract`.
    pub(crate) fn reads_relation(&self) -> bool {
        let is_from = |token: &Token| word(token).is_some_and(|word| word == "from");
        self.tokens.iter().enumerate().any(|(place, token)| {
            is_from(token) && !self.is_distinct_from(place) && !self.is_in_function_with_from(place)
        })
    }

    fn is_distinct_from(&self, place: usize) -> bool {
        let before = |places: usize| word(self.tokens.get(place.checked_sub(places)?)?);
        let (one, two, three) = (before(1), before(2), before(3));
        one.as_deref() == Some("distinct")
            && (two.as_deref() == Some("is")
                || two.as_deref() == Some("not") && three.as_deref() == Some("is"))
    }

    fn is_in_function_with_from(&self, place: usize) -> bool {
        let mut closed = 0;
        let opening = (0..place).rev().find(|place| match &self.tokens[*place] {
            Token::RParen => {
                closed += 1;
                false
            }
            Token::LParen if closed == 0 => true,
            Token::LParen => {
                closed -= 1;
                false
            }
            _ => false,
        });
        let name = opening.and_then(|place| word(self.tokens.get(place.checked_sub(1)?)?));
        name.is_some_and(|name| is_in(WITH_FROM, &name))
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
        let is_keyword = schema.is_none() && word(token).is_some() && is_in(NOT_FUNCTIONS, &name);
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
        own.find(|own| is_in(words, own))
    }
}
