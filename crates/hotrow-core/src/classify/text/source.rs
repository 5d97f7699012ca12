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
    /// field `f`. `exists` says whether a name that is also syntax can mean a function.
    pub(crate) fn functions(&self, exists: impl Fn(&str) -> bool) -> Vec<FunctionName> {
        let mut functions: Vec<_> =
            (0..self.tokens.len()).filter_map(|index| self.function_at(index, &exists)).collect();
        functions.sort();
        functions.dedup();
        functions
    }

    /// Whether it reads a relation: it has a FROM that belongs neither to IS DISTINCT FROM nor to a function like `extract`.
    pub(crate) fn reads_relation(&self) -> bool {
        // For each open parenthesis, whether FROM separates the arguments in it.
        let mut open = Vec::new();
        for (place, token) in self.tokens.iter().enumerate() {
            let before = |places: usize| word(self.tokens.get(place.checked_sub(places)?)?);
            match token {
                Token::LParen => open.push(before(1).is_some_and(|name| is_in(WITH_FROM, &name))),
                Token::RParen => drop(open.pop()),
                _ if word(token).as_deref() != Some("from") || open.last() == Some(&true) => {}
                _ => match [before(3), before(2), before(1)].each_ref().map(Option::as_deref) {
                    [_, Some("is"), Some("distinct")] | [Some("is"), Some("not"), Some("distinct")] => {}
                    _ => return true,
                },
            }
        }
        false
    }

    fn function_at(&self, index: usize, exists: impl Fn(&str) -> bool) -> Option<FunctionName> {
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
        let is_syntax = || is_in(NOT_FUNCTIONS, &name) || is_in(PERHAPS_FUNCTIONS, &name) && !exists(&name);
        let is_keyword = schema.is_none() && word(token).is_some() && is_syntax();
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

    /// Whether it calls `set_config` or has SET with a custom setting, also in a constant, which can be a statement.
    pub(crate) fn makes_custom_setting(&self) -> bool {
        let folded_at = |place: usize| self.tokens.get(place).and_then(folded);
        let is_set = |place: usize| {
            let has_scope = matches!(folded_at(place + 1).as_deref(), Some("local" | "session"));
            let dot = place + 2 + usize::from(has_scope);
            folded_at(dot - 1).is_some() && self.tokens.get(dot) == Some(&Token::Period)
        };
        (0..self.tokens.len()).any(|place| match folded_at(place).as_deref() {
            Some("set_config") => true,
            Some("set") => is_set(place),
            _ => {
                let text = tokens::string(&self.tokens[place]).and_then(Source::read);
                text.is_some_and(|text| text.makes_custom_setting())
            }
        })
    }

    /// The first of its words that is in `words`.
    pub(crate) fn mentions(&self, words: &str) -> Option<String> {
        let mut own = self.tokens.iter().filter_map(folded);
        own.find(|own| is_in(words, own))
    }
}
