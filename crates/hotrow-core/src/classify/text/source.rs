//! Scans SQL text from the catalog (defaults, checks, trigger functions) for the functions and operators
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

    /// Whether it handles errors: EXCEPTION WHEN, and not RAISE EXCEPTION.
    pub(crate) fn has_handler(&self) -> bool {
        let is = |place: usize, wanted| self.tokens.get(place).and_then(word).as_deref() == Some(wanted);
        (0..self.tokens.len()).any(|place| is(place, "exception") && is(place + 1, "when"))
    }

    /// Whether it has a command that changes the session: SET and RESET where a statement begins, SET of a custom setting
    /// anywhere, and words that stand for nothing else.
    pub(crate) fn changes_session(&self) -> bool {
        let folded_at = |place: usize| self.tokens.get(place).and_then(folded);
        let begins = |place: usize| match place.checked_sub(1).map(|before| &self.tokens[before]) {
            None | Some(Token::SemiColon) => true,
            Some(before) => word(before).is_some_and(|before| is_in("begin else loop then", &before)),
        };
        let is_custom = |place: usize| {
            let has_scope = matches!(folded_at(place + 1).as_deref(), Some("local" | "session"));
            let name = place + 1 + usize::from(has_scope);
            let follows_dot = self.tokens.get(name + 1) == Some(&Token::Period);
            folded_at(name).is_some_and(|folded| follows_dot || folded.contains('.'))
        };
        (0..self.tokens.len()).any(|place| match folded_at(place).as_deref() {
            Some("deallocate" | "discard" | "listen" | "unlisten") => true,
            Some("load" | "reset") => begins(place),
            Some("set") => begins(place) || is_custom(place),
            _ => false,
        })
    }

    /// Whether a name before a parenthesis is a table with a list of columns, or VALUES.
    pub(crate) fn is_table(&self, name: &str) -> bool {
        let is = |place: Option<usize>, wanted: &str| {
            place.and_then(|place| self.tokens.get(place)).and_then(folded).as_deref() == Some(wanted)
        };
        name == "values"
            || (0..self.tokens.len()).filter(|place| is(Some(*place), name)).all(|place| {
                let schema = if place.checked_sub(1).map(|dot| &self.tokens[dot]) == Some(&Token::Period) {
                    2
                } else {
                    0
                };
                is(place.checked_sub(1 + schema), "into")
                    || self.tokens.get(place + 1) != Some(&Token::LParen)
            })
    }

    /// Its string constants that can be read as source.
    pub(crate) fn constants(&self) -> impl Iterator<Item = Source> {
        self.tokens.iter().filter_map(tokens::string).filter_map(Source::read)
    }

    /// The first of its words that is in `words`.
    pub(crate) fn mentions(&self, words: &str) -> Option<String> {
        let mut own = self.tokens.iter().filter_map(folded);
        own.find(|own| is_in(words, own))
    }
}
