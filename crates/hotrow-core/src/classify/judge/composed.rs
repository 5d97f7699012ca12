//! Reads the texts that a function in PL/pgSQL composes and runs (EXECUTE), as far as its own text shows them: constants,
//! joined with names and values that are certain to be quoted.

use std::collections::BTreeSet;

use sqlparser::tokenizer::Token;

use crate::classify::text::tokens::{self, folded, is_word};

/// Stands for a quoted name that is not known.
const NAME: &str = "\"?\"";
/// Stands for a quoted value.
const VALUE: &str = "'?'";
/// Stands for a word that is no keyword.
const WORD: &str = "word";

/// A text, as far as it is known.
#[derive(Default)]
pub(crate) struct Composed {
    pub text: String,
    /// Parts of it are names that are not known.
    pub has_names: bool,
    /// PostgreSQL's own functions that compose it.
    pub relied_on: BTreeSet<String>,
}

/// The texts that a function composes and runs. `None` for a text that is not known.
pub(crate) fn texts(tokens: &[Token]) -> Vec<Option<Composed>> {
    let runs = (0..tokens.len()).filter(|index| runs(tokens, *index));
    runs.map(|index| {
        let rest = &tokens[index + 1..];
        compose(&rest[..end_of_expression(rest)], tokens)
    })
    .collect()
}

/// Whether EXECUTE begins here. Elsewhere the word is a privilege, or part of CREATE TRIGGER.
fn runs(tokens: &[Token], index: usize) -> bool {
    let before = index.checked_sub(1).map(|before| &tokens[before]);
    is_word(tokens.get(index), &["execute"])
        && (matches!(before, None | Some(Token::SemiColon | Token::ShiftRight))
            || is_word(before, &["in", "query", "for", "begin", "then", "else", "loop"]))
}

/// The number of tokens before INTO, USING, LOOP or the end of the statement.
fn end_of_expression(tokens: &[Token]) -> usize {
    let mut depth = 0_usize;
    let end = tokens.iter().position(|token| {
        match token {
            Token::LParen | Token::LBracket => depth += 1,
            Token::RParen | Token::RBracket => depth = depth.saturating_sub(1),
            _ => {}
        }
        *token == Token::SemiColon || depth == 0 && is_word(Some(token), &["into", "using", "loop"])
    });
    end.unwrap_or(tokens.len())
}

/// The parts between these tokens outside of parentheses.
fn split<'t>(tokens: &'t [Token], at: &Token) -> Vec<&'t [Token]> {
    let (mut parts, mut start, mut depth) = (Vec::new(), 0, 0_usize);
    for (index, token) in tokens.iter().enumerate() {
        match token {
            Token::LParen | Token::LBracket => depth += 1,
            Token::RParen | Token::RBracket => depth = depth.saturating_sub(1),
            token if token == at && depth == 0 => {
                parts.push(&tokens[start..index]);
                start = index + 1;
            }
            _ => {}
        }
    }
    parts.push(&tokens[start..]);
    parts
}

/// The arguments of a call, if these tokens are one call of the function.
fn arguments<'t>(tokens: &'t [Token], function: &str) -> Option<Vec<&'t [Token]>> {
    let [name, Token::LParen, inner @ .., Token::RParen] = tokens else { return None };
    let mut depth = 0_i32;
    let is_one = inner.iter().all(|token| {
        match token {
            Token::LParen => depth += 1,
            Token::RParen => depth -= 1,
            _ => {}
        }
        depth >= 0
    });
    (is_one && is_word(Some(name), &[function])).then(|| split(inner, &Token::Comma))
}

/// The text that an expression gives. `tokens` is the whole function.
fn compose(expression: &[Token], tokens: &[Token]) -> Option<Composed> {
    let mut composed = Composed::default();
    for part in split(expression, &Token::StringConcat) {
        if let [constant] = part {
            composed.text.push_str(tokens::string(constant)?);
        } else if let Some(arguments) = arguments(part, "format") {
            composed.relied_on.insert("format".to_owned());
            composed.format(&arguments, tokens)?;
        } else if arguments(part, "quote_ident").is_some() {
            composed.relied_on.insert("quote_ident".to_owned());
            composed.push_name();
        } else {
            let function = ["quote_literal", "quote_nullable"]
                .into_iter()
                .find(|name| arguments(part, name).is_some())?;
            composed.relied_on.insert(function.to_owned());
            composed.text.push_str(VALUE);
        }
    }
    Some(composed)
}

impl Composed {
    fn push_name(&mut self) {
        self.text.push_str(NAME);
        self.has_names = true;
    }

    /// Adds the result of `format`.
    fn format(&mut self, arguments: &[&[Token]], tokens: &[Token]) -> Option<()> {
        let [[pattern], values @ ..] = arguments else { return None };
        let mut next = 0;
        let mut rest = tokens::string(pattern)?;
        while let Some((before, spec)) = rest.split_once('%') {
            self.text.push_str(before);
            let digits = spec.bytes().take_while(u8::is_ascii_digit).count();
            let (position, spec) = match spec[digits..].strip_prefix('$') {
                Some(after) => (spec[..digits].parse::<usize>().ok()?.checked_sub(1)?, after),
                None => (next, spec),
            };
            let kind = spec.chars().next()?;
            match kind {
                '%' => self.text.push('%'),
                'I' => self.push_name(),
                'L' => self.text.push_str(VALUE),
                's' => {
                    self.is_word(values.get(position)?, tokens)?;
                    self.text.push_str(WORD);
                    self.has_names = true;
                }
                _ => return None,
            }
            next = if kind == '%' { next } else { position + 1 };
            rest = &spec[1..];
        }
        self.text.push_str(rest);
        Some(())
    }

    /// Whether this is a variable whose value is certain to be one long word: it begins with a constant, ends with the digits
    /// of a hash, and never changes.
    fn is_word(&mut self, value: &[Token], tokens: &[Token]) -> Option<()> {
        let [variable] = value else { return None };
        let variable = folded(variable)?;
        let begin = tokens.iter().position(|token| is_word(Some(token), &["begin"]))?;
        let mut depth = 0_usize;
        let mut declared = None;
        for (index, token) in tokens.iter().enumerate() {
            match token {
                Token::LParen => depth += 1,
                Token::RParen => depth = depth.saturating_sub(1),
                // Within parentheses nothing is assigned to it, except by CALL.
                token if depth == 0 && folded(token).as_ref() == Some(&variable) => {
                    (index < begin && declared.replace(index).is_none()).then_some(())?;
                }
                _ => {}
            }
        }
        if tokens.iter().any(|token| is_word(Some(token), &["call"])) {
            return None;
        }
        let rest = &tokens[declared? + 1..];
        let declaration = &rest[..rest.iter().position(|token| *token == Token::SemiColon)?];
        let value = declaration.iter().position(|token| *token == Token::Assignment)? + 1;
        let [[constant], hash] = &split(&declaration[value..], &Token::StringConcat)[..] else { return None };
        let is_letter = |c: char| c.is_ascii_lowercase() || c == '_';
        let starts = tokens::string(constant)?;
        (!starts.is_empty() && starts.chars().all(is_letter) && self.is_hash(hash)).then_some(())
    }

    fn is_hash(&mut self, expression: &[Token]) -> bool {
        let mut relies_on = |name: &str| {
            self.relied_on.insert(name.to_owned());
            true
        };
        if arguments(expression, "md5").is_some() {
            return relies_on("md5");
        }
        let Some(encoded) = arguments(expression, "encode") else { return false };
        let [bytes, [format]] = &encoded[..] else { return false };
        let hash = ["sha224", "sha256", "sha384", "sha512"]
            .into_iter()
            .find(|name| arguments(bytes, name).is_some());
        tokens::string(format) == Some("hex")
            && hash.is_some_and(|name| relies_on(name) && relies_on("encode"))
    }
}
