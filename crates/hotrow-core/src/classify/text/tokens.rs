//! A statement as tokens, without white space and comments and without a tree.

use sqlparser::dialect::PostgreSqlDialect;
use sqlparser::tokenizer::{Token, Tokenizer};

use crate::classify::reason::Reason;

/// A text's tokens. Fails if PostgreSQL would read other tokens.
pub(crate) fn read(sql: &str) -> Result<Vec<Token>, Reason> {
    // PostgreSQL takes these characters for letters. The tokeniser takes them for white space.
    if sql.contains(|c: char| c == '\x0b' || !c.is_ascii() && c.is_whitespace()) {
        return Err(Reason::NotUnderstood("white space outside ASCII".to_owned()));
    }
    let mut tokens = Tokenizer::new(&PostgreSqlDialect {}, sql)
        .tokenize()
        .map_err(|error| Reason::of_parser(&error.to_string()))?;
    // PostgreSQL takes such a sequence of three tokens for one identifier with Unicode escapes.
    let is_escaped = |three: &[Token]| {
        matches!(three, [Token::Word(u), Token::Ampersand, Token::Word(name)]
            if u.quote_style.is_none() && u.value.eq_ignore_ascii_case("u") && name.quote_style == Some('"'))
    };
    if tokens.windows(3).any(is_escaped) {
        return Err(Reason::NotUnderstood("an identifier with Unicode escapes".to_owned()));
    }
    let mut run = Run::default();
    tokens.iter().try_for_each(|token| check_operator(token, &mut run))?;
    tokens.retain(|token| !matches!(token, Token::Whitespace(_)));
    Ok(tokens)
}

/// The operator characters directly before a token.
#[derive(Default)]
struct Run {
    text: String,
    /// One of the characters keeps the signs at the end of the run in the operator.
    is_special: bool,
}

/// Checks that PostgreSQL reads the same operators. PostgreSQL takes the longest run of operator characters
/// for one operator. It removes the signs at the end unless the run has a special character, and it ends the
/// run where a comment begins.
fn check_operator(token: &Token, run: &mut Run) -> Result<(), Reason> {
    const SPECIAL: &str = "~!@#%^&|`?";
    let is_operator = |c: char| "+-*/<>=".contains(c) || SPECIAL.contains(c);
    let text = match token {
        Token::Word(_) | Token::Number(..) | Token::SingleQuotedString(_) | Token::Placeholder(_) => None,
        Token::Whitespace(_) | Token::Comma | Token::Period | Token::SemiColon => None,
        Token::LParen | Token::RParen | Token::LBracket | Token::RBracket => None,
        token => Some(token.to_string()).filter(|text| text.chars().all(is_operator)),
    };
    let Some(text) = text else {
        run.text.clear();
        run.is_special = false;
        return Ok(());
    };
    if text.contains("--") || text.contains("/*") {
        return Err(Reason::NotUnderstood("a comment begins inside an operator".to_owned()));
    }
    let goes_on = !run.text.is_empty();
    run.text.push_str(&text);
    run.is_special |= text.contains(|c| SPECIAL.contains(c));
    let is_sign = matches!(token, Token::Plus | Token::Minus) && !run.is_special;
    if goes_on && !is_sign {
        return Err(Reason::NotUnderstood(format!("the operator {}", run.text)));
    }
    Ok(())
}

/// The contents of a string, whatever its quoting.
pub(crate) fn string(token: &Token) -> Option<&str> {
    match token {
        Token::SingleQuotedString(text)
        | Token::EscapedStringLiteral(text)
        | Token::UnicodeStringLiteral(text)
        | Token::NationalStringLiteral(text) => Some(text),
        Token::DollarQuotedString(quoted) => Some(&quoted.value),
        _ => None,
    }
}

/// The operators among these tokens, as written.
pub(crate) fn operators(tokens: &[Token]) -> Vec<String> {
    let mut operators: Vec<String> =
        tokens.iter().map(Token::to_string).filter(|text| is_operator(text)).collect();
    operators.sort();
    operators.dedup();
    operators
}

fn is_operator(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| "+-*/<>=~!@#%^&|`?".contains(c))
}

/// A position in a statement's tokens, for commands that are recognised by their first words.
#[derive(Clone, Copy)]
pub(crate) struct Cursor<'t> {
    tokens: &'t [Token],
}

impl<'t> Cursor<'t> {
    pub(crate) fn new(tokens: &'t [Token]) -> Self {
        Self { tokens }
    }

    /// The tokens that are left.
    pub(crate) fn rest(self) -> &'t [Token] {
        self.tokens
    }

    /// The next unquoted word in lower case.
    pub(crate) fn peek_word(self) -> Option<String> {
        word(self.tokens.first()?)
    }

    /// Takes the next word if it is one of these.
    pub(crate) fn take(&mut self, words: &[&str]) -> bool {
        let found = is_word(self.tokens.first(), words);
        if found {
            self.advance();
        }
        found
    }

    /// Takes the next token.
    pub(crate) fn advance(&mut self) -> Option<&'t Token> {
        let (first, rest) = self.tokens.split_first()?;
        self.tokens = rest;
        Some(first)
    }

    /// Takes a dotted name, folded.
    pub(crate) fn take_name(&mut self) -> Option<String> {
        let mut name = self.advance().and_then(folded)?;
        while self.tokens.first() == Some(&Token::Period) {
            self.advance();
            name.push('.');
            name.push_str(&self.advance().and_then(folded)?);
        }
        Some(name)
    }

    /// Whether one of these words is among the remaining tokens.
    pub(crate) fn mentions(self, words: &[&str]) -> bool {
        self.tokens.iter().any(|token| is_word(Some(token), words))
    }

    /// Skips to the first of these words, which becomes the next token. `false` if there is none.
    pub(crate) fn skip_to(&mut self, words: &[&str]) -> bool {
        let place = self.tokens.iter().position(|token| is_word(Some(token), words));
        if let Some(place) = place {
            self.tokens = &self.tokens[place..];
        }
        place.is_some()
    }
}

/// Whether the token is one of these words, unquoted.
pub(crate) fn is_word(token: Option<&Token>, words: &[&str]) -> bool {
    match token {
        Some(Token::Word(word)) if word.quote_style.is_none() => {
            words.iter().any(|known| word.value.eq_ignore_ascii_case(known))
        }
        _ => false,
    }
}

/// A name as PostgreSQL folds it.
pub(crate) fn folded(token: &Token) -> Option<String> {
    match token {
        Token::Word(word) if word.quote_style.is_some() => Some(word.value.clone()),
        Token::Word(word) => Some(word.value.to_ascii_lowercase()),
        _ => None,
    }
}

/// An unquoted word in lower case.
pub(crate) fn word(token: &Token) -> Option<String> {
    match token {
        Token::Word(word) if word.quote_style.is_none() => Some(word.value.to_ascii_lowercase()),
        _ => None,
    }
}
