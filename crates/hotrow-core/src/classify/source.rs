//! Scans SQL text that the catalogue gives (defaults, checks, trigger functions) for what it calls; never parses it.

use sqlparser::dialect::PostgreSqlDialect;
use sqlparser::tokenizer::{Token, Tokenizer};

use super::FunctionName;

/// Words that stand before a parenthesis without being a function.
const NOT_FUNCTIONS: &[&str] = &[
    "all",
    "and",
    "any",
    "array",
    "as",
    "between",
    "bit",
    "by",
    "case",
    "cast",
    "char",
    "character",
    "check",
    "collate",
    "dec",
    "decimal",
    "distinct",
    "else",
    "elsif",
    "elseif",
    "escape",
    "float",
    "from",
    "if",
    "ilike",
    "in",
    "index",
    "interval",
    "into",
    "is",
    "like",
    "not",
    "numeric",
    "on",
    "or",
    "precision",
    "return",
    "row",
    "similar",
    "some",
    "then",
    "time",
    "timestamp",
    "to",
    "unique",
    "using",
    "varbit",
    "varchar",
    "varying",
    "when",
    "where",
    "while",
    "with",
    "zone",
];

/// A piece of source as tokens; `None` when it can't be read.
pub(super) struct Source {
    tokens: Vec<Token>,
}

impl Source {
    /// Reads a text, leaving out white space, comments and what strings hold.
    pub(super) fn read(text: &str) -> Option<Self> {
        let dialect = PostgreSqlDialect {};
        let mut tokens = Tokenizer::new(&dialect, text).tokenize().ok()?;
        tokens.retain(|token| !matches!(token, Token::Whitespace(_)));
        Some(Self { tokens })
    }

    /// All functions it calls: names in front of a parenthesis, and functions without parentheses.
    pub(super) fn functions(&self) -> Vec<FunctionName> {
        let mut functions = Vec::new();
        for (index, token) in self.tokens.iter().enumerate() {
            let Token::Word(word) = token else { continue };
            if self.tokens.get(index + 1) != Some(&Token::LParen) {
                continue;
            }
            let quoted = word.quote_style.is_some();
            let name = if quoted { word.value.clone() } else { word.value.to_ascii_lowercase() };
            let schema = self.schema_before(index);
            if !quoted && schema.is_none() && NOT_FUNCTIONS.contains(&name.as_str()) {
                continue;
            }
            functions.push(FunctionName { schema, name });
        }
        functions.sort();
        functions.dedup();
        functions
    }

    fn schema_before(&self, index: usize) -> Option<String> {
        match self.tokens.get(index.checked_sub(2)?..index)? {
            [Token::Word(schema), Token::Period] if schema.quote_style.is_some() => {
                Some(schema.value.clone())
            }
            [Token::Word(schema), Token::Period] => Some(schema.value.to_ascii_lowercase()),
            _ => None,
        }
    }

    /// The first of these words that it contains, quoted or not.
    pub(super) fn mentions<'w>(&self, words: &[&'w str]) -> Option<&'w str> {
        self.tokens.iter().find_map(|token| match token {
            Token::Word(word) => words.iter().find(|w| word.value.eq_ignore_ascii_case(w)).copied(),
            _ => None,
        })
    }
}
