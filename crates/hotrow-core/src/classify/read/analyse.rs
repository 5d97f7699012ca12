//! Reads a statement's text. The result is a candidate for packing, one of Hotrow's own commands, or a
//! statement that is passed through with a reason.

use sqlparser::ast::Statement;
use sqlparser::dialect::PostgreSqlDialect;
use sqlparser::parser::Parser;
use sqlparser::tokenizer::Token;

use crate::classify::effects::effect::Effect;
use crate::classify::effects::side_effects::{side_effects, starts_query, updates_settings};
use crate::classify::read::analysis::{Alters, Analysis, Pass, Step, Transaction};
use crate::classify::read::candidate::Candidate;
use crate::classify::read::head::Finders;
use crate::classify::read::{commands, common, insert, kind, point};
use crate::classify::reason::Reason;
use crate::classify::text::screen;
use crate::classify::text::tokens::{self, Cursor, is_word};
use crate::limits;

/// Deeper nesting is passed through. The parser needs up to 20 KiB of stack for each level, or 100 KiB if it is not optimised
/// (see [`limits::STACK_BYTES`]).
const MAX_NESTING: usize = 40;

/// Analyses the text of one protocol message, with or without `$n` parameters.
///
/// The text is read as PostgreSQL reads it under `standard_conforming_strings = on` and an ASCII-safe
/// `client_encoding`. In a session with other settings, the caller must pass statements through without
/// calling this function.
pub fn analyse(sql: &str) -> Analysis {
    if sql.len() > limits::STATEMENT_BYTES_MAX {
        return Analysis::Pass(Pass::unknown(Reason::TooLarge("long")));
    }
    let tokens = match tokens::read(sql) {
        Ok(tokens) => tokens,
        Err(reason) => return Analysis::Pass(Pass::unknown(reason)),
    };
    let mut statements = tokens.split(|token| *token == Token::SemiColon).filter(|tokens| !tokens.is_empty());
    match (statements.next(), statements.next()) {
        (None, _) => Analysis::Pass(Pass::harmless(Reason::Empty)),
        (Some(only), None) => one(only),
        (Some(first), Some(second)) => Analysis::Pass(union([first, second].into_iter().chain(statements))),
    }
}

/// The effects of several statements are those of each of them. Nothing counts as cleared, because one of
/// them can fail.
fn union<'t>(statements: impl Iterator<Item = &'t [Token]>) -> Pass {
    let mut union = Pass::harmless(Reason::SeveralStatements);
    let mut in_body = false;
    let mut sets = Vec::new();
    let mut has_others = false;
    let mut clears_only = Some(Effect::NONE);
    for (index, tokens) in statements.enumerate() {
        if index == limits::UNIT_STATEMENTS_MAX {
            union.reason = Reason::ManyStatements;
            has_others = true;
        }
        clears_only = clears_only.zip(cleared_by(tokens)).map(|(before, more)| before.union(more));
        if starts_query(tokens) {
            let found = side_effects(tokens);
            union.effect = union.effect.union(found.effect());
            union.alters = union.alters.max(created(found.creates));
            has_others = true;
            continue;
        }
        // The body of a function in SQL, with semicolons, up to its END.
        in_body |= is_word(tokens.first(), &["create"]) && Cursor::new(tokens).mentions(&["atomic"]);
        if in_body && is_word(tokens.first(), &["end"]) {
            in_body = false;
            continue;
        }
        match commands::command(tokens) {
            Analysis::Pass(pass) => {
                if pass.steps.is_empty() && commands::ends_transaction(tokens) {
                    union.steps.push(Step::End);
                }
                union.steps.extend(pass.steps);
                union.effect = union.effect.union(pass.effect);
                union.removes_names |= pass.removes_names;
                union.alters = union.alters.max(pass.alters);
                union.leaves_open = pass.leaves_open.or(union.leaves_open);
                if let Some(begin @ Transaction::Begin { .. }) = pass.transaction.filter(|_| index == 0) {
                    let words: Vec<String> = tokens.iter().map(ToString::to_string).collect();
                    union.begins = Some(Box::new((begin, words.join(" "))));
                }
                has_others |= pass.sets.is_empty();
                sets.extend(pass.sets);
            }
            // The server gets the setting too. Nothing is packed while it is set.
            Analysis::Set(..) | Analysis::SetWrong(_) | Analysis::Reset(_) => {
                union.effect.unlisted_settings = true;
                has_others = true;
            }
            Analysis::Candidate(_) | Analysis::Show(_) | Analysis::Deallocate(_) => has_others = true,
        }
    }
    if !has_others {
        union.sets = sets.into();
    }
    let is_known = union.reason == Reason::SeveralStatements;
    union.clears_only = clears_only.filter(|_| is_known).map(Box::new);
    union
}

/// The state that a statement clears, if it does nothing else.
fn cleared_by(tokens: &[Token]) -> Option<Effect> {
    let is_unlocking = match tokens {
        [select, function, Token::LParen, Token::RParen] => {
            is_word(Some(select), &["select"]) && is_word(Some(function), &["pg_advisory_unlock_all"])
        }
        _ => false,
    };
    if is_unlocking {
        return Some(Effect { advisory_lock: true, ..Effect::NONE });
    }
    match commands::command(tokens) {
        Analysis::Pass(pass) if pass.transaction.is_none() => pass.clears_only.as_deref().copied(),
        _ => None,
    }
}

/// One statement.
fn one(tokens: &[Token]) -> Analysis {
    if starts_query(tokens) { query(tokens) } else { commands::command(tokens) }
}

fn query(tokens: &[Token]) -> Analysis {
    match candidate(tokens) {
        Ok(candidate) => match candidate.changes_settings() {
            Some(function) => calls_settings(tokens, function),
            None if updates_settings(tokens) => calls_settings(tokens, "set_config"),
            None => Analysis::Candidate(Box::new(candidate)),
        },
        Err(reason) => {
            let reason = match kind::of(tokens) {
                Some(kind) => reason.in_kind(kind),
                None => reason,
            };
            pass(tokens, reason)
        }
    }
}

/// A query that calls this function, which changes settings.
fn calls_settings(tokens: &[Token], function: &str) -> Analysis {
    let effect = side_effects(tokens).effect();
    let call = match (effect.unlisted_settings, effect.role) {
        (true, true) if function == "set_config" => "set_config of a setting that its text does not name",
        (true, false) if function == "set_config" => "set_config of a custom setting",
        (false, true) => "set_config of the role",
        (false, false) if effect.seed && function == "set_config" => "set_config of seed",
        _ if !effect.pins() => "set_config until the end of the transaction",
        _ => function,
    };
    pass(tokens, Reason::Session(call.to_owned()))
}

/// A query that is passed through for this reason.
fn pass(tokens: &[Token], reason: Reason) -> Analysis {
    let found = side_effects(tokens);
    let unclear = matches!(reason, Reason::NotUnderstood(_));
    let alters = if unclear { Alters::Anything } else { created(found.creates) };
    Analysis::Pass(Pass { effect: found.effect(), alters, ..Pass::harmless(reason) })
}

/// What a query changes in the catalog if it creates a table, by INTO.
fn created(creates: bool) -> Alters {
    if creates { Alters::Tables } else { Alters::Nothing }
}

fn candidate(tokens: &[Token]) -> Result<Candidate, Reason> {
    screen::screen(tokens)?;
    let parsed = match parse(tokens) {
        // Many statements with WITH only read, in syntax that the parser does not know.
        Err(Reason::NotUnderstood(_)) if is_word(tokens.first(), &["with"]) => {
            return Err(Reason::Unsupported("WITH with syntax that the parser does not understand"));
        }
        parsed => parsed?,
    };
    match parsed {
        Statement::Query(mut query) => match query.with.take() {
            Some(with) => common::statement(&with, &query),
            None => point::select(&query, &[]),
        },
        Statement::Update(update) => point::update(&update, &mut Finders::default()),
        Statement::Delete(delete) => point::delete(&delete, &mut Finders::default()),
        Statement::Insert(insert) => insert::insert(&insert, &[]),
        _ => Err(Reason::NotUnderstood("the parser takes it for another command".to_owned())),
    }
}

pub(crate) fn parse(tokens: &[Token]) -> Result<Statement, Reason> {
    let dialect = PostgreSqlDialect {};
    let mut parser = Parser::new(&dialect).with_recursion_limit(MAX_NESTING).with_tokens(known_words(tokens));
    let statement = parser.parse_statement().map_err(|error| Reason::of_parser(&error.to_string()))?;
    match parser.next_token().token {
        Token::EOF => Ok(statement),
        Token::Word(extra) => Err(Reason::NotUnderstood(format!("unexpected {extra}"))),
        _ => Err(Reason::NotUnderstood("something follows its end".to_owned())),
    }
}

/// Leaves out words that the parser does not know: ONLY, which it takes for a table's name, and the strength of the row
/// locks FOR NO KEY UPDATE and FOR KEY SHARE. Tables with children and statements with row locks are never packed.
/// Ends the list of a SELECT before ON CONFLICT, where the parser takes ON for a name.
fn known_words(tokens: &[Token]) -> Vec<Token> {
    let (mut known, mut left_out) = (Vec::with_capacity(tokens.len()), 0);
    let mut is_in_list = false;
    for (index, token) in tokens.iter().enumerate() {
        if left_out > 0 {
            left_out -= 1;
            continue;
        }
        known.push(token.clone());
        is_in_list = match is_in_list {
            false => is_word(Some(token), &["select"]),
            true => !is_word(Some(token), &["from", "values"]),
        };
        if is_in_list
            && is_word(tokens.get(index + 1), &["on"])
            && is_word(tokens.get(index + 2), &["conflict"])
        {
            is_in_list = false;
            known.extend(["LIMIT", "ALL"].map(Token::make_keyword));
        }
        let follow = |words: &[&str]| {
            words.iter().enumerate().all(|(place, word)| is_word(tokens.get(index + 1 + place), &[word]))
        };
        left_out = if is_word(Some(token), &["for"]) && follow(&["no", "key", "update"]) {
            2
        } else if is_word(Some(token), &["for"]) && follow(&["key", "share"]) {
            1
        } else {
            let names_table = matches!(tokens.get(index + 2), Some(Token::Word(_)));
            usize::from(is_word(Some(token), &["update", "from"]) && follow(&["only"]) && names_table)
        };
    }
    known
}
