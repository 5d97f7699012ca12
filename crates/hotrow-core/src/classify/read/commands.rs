//! Commands that are not queries, recognised by their first words, and their effects on the session. They are
//! never packed.

use sqlparser::tokenizer::Token;

use crate::classify::effects::effect::Effect;
use crate::classify::effects::side_effects::effect_of_query;
use crate::classify::read::alters::{alters, of_block};
use crate::classify::read::analysis::{
    Alters, Analysis, BlockCommand, Pass, Step, Transaction, clears_only, leaves, resets_all,
};
use crate::classify::read::settings::{reset, set, show};
use crate::classify::reason::Reason;
use crate::classify::text::tokens::{Cursor, folded, is_word};
use crate::limits;

/// The commands that EXPLAIN and CREATE TABLE AS can run.
const RUNNABLE: &[&str] = &[
    "select", "insert", "update", "delete", "with", "values", "table", "merge", "execute", "declare",
    "create",
];

/// One command whose first word does not begin a query.
pub(crate) fn command(tokens: &[Token]) -> Analysis {
    let mut cursor = Cursor::new(tokens);
    let Some(word) = cursor.peek_word() else {
        return Analysis::Pass(Pass::unknown(Reason::NotUnderstood(
            "it does not start with a word".to_owned(),
        )));
    };
    cursor.advance();
    let name = word.to_ascii_uppercase();
    match word.as_str() {
        "begin" | "start" | "commit" | "end" | "rollback" | "abort" | "savepoint" | "release" => {
            let (block_command, transaction) = transaction(&word, cursor);
            let steps = savepoint(&word, cursor).into_iter().collect();
            let reason = Reason::Transaction(name);
            // The prepared transaction may have changed anything.
            let is_prepared = word == "commit" && cursor.peek_word().as_deref() == Some("prepared");
            let alters = if is_prepared { Alters::Anything } else { Alters::Nothing };
            // In a session without a transaction, the server only warns.
            let is_end = matches!(transaction, Some(Transaction::End { chains: false, .. }));
            let leaves_open = match block_command {
                Some(BlockCommand::Commit) => Some(false),
                _ => reason.is_begin().then_some(true),
            };
            Analysis::Pass(Pass {
                block_command,
                transaction,
                leaves_open,
                steps,
                alters,
                clears_only: is_end.then(|| Box::new(Effect::NONE)),
                ..Pass::harmless(reason)
            })
        }
        "set" => set(cursor),
        "reset" => reset(cursor),
        "show" => show(cursor),
        "discard" => discard(cursor),
        "prepare" => Analysis::Pass(prepare(cursor)),
        "deallocate" => deallocate(cursor),
        "listen" => leaves(name, Effect { listen: true, ..Effect::NONE }),
        "unlisten" => match cursor.rest() {
            [Token::Mul] => clears_only(name, Effect { listen: true, ..Effect::NONE }),
            _ => leaves(name, Effect::NONE),
        },
        "declare" => declare(cursor),
        "close" if cursor.peek_word().as_deref() == Some("all") => {
            clears_only(name, Effect { holdable_cursor: true, ..Effect::NONE })
        }
        "close" | "fetch" | "move" | "notify" => leaves(name, Effect::NONE),
        "copy" => Analysis::Pass(copy(cursor)),
        "explain" => Analysis::Pass(explain(cursor)),
        "create" => Analysis::Pass(create(cursor)),
        "alter" | "drop" | "grant" | "revoke" | "security" | "reassign" | "import" => {
            Analysis::Pass(ddl(name, &word, cursor))
        }
        "comment" | "truncate" | "refresh" | "cluster" | "reindex" => {
            let effect = mentions_temporary(cursor);
            Analysis::Pass(Pass { effect, ..Pass::harmless(Reason::Utility(name)) })
        }
        "vacuum" | "analyze" | "analyse" | "checkpoint" | "lock" => {
            Analysis::Pass(Pass::harmless(Reason::Utility(name)))
        }
        // It runs a query that was prepared in SQL, and such a query changes no definition.
        "execute" => Analysis::Pass(Pass { alters: Alters::Nothing, ..Pass::unknown(Reason::Utility(name)) }),
        "do" => Analysis::Pass(Pass { alters: of_block(cursor), ..Pass::unknown(Reason::Utility(name)) }),
        _ => Analysis::Pass(Pass::unknown(Reason::Utility(name))),
    }
}

/// Whether it begins or ends a transaction and nothing else: one of the kind that lanes run (READ COMMITTED, READ WRITE),
/// and one that the gateway can begin or end itself. A standby refuses SERIALIZABLE and READ WRITE.
fn transaction(word: &str, mut cursor: Cursor<'_>) -> (Option<BlockCommand>, Option<Transaction>) {
    const NEITHER: (Option<BlockCommand>, Option<Transaction>) = (None, None);
    let begin = |tag| {
        let begin = Transaction::Begin { tag, on_standbys: true, keeps_snapshot: false, has_modes: false };
        (Some(BlockCommand::Begin(tag)), begin)
    };
    let (block_command, mut transaction) = match word {
        "begin" => begin("BEGIN"),
        "start" if cursor.take(&["transaction"]) => begin("START TRANSACTION"),
        "commit" | "end" => (Some(BlockCommand::Commit), Transaction::End { commits: true, chains: false }),
        "rollback" | "abort" => (None, Transaction::End { commits: false, chains: false }),
        _ => return NEITHER,
    };
    if word != "start" {
        cursor.take(&["transaction", "work"]);
    }
    let mut in_lanes = true;
    if let Transaction::End { chains, .. } = &mut transaction
        && cursor.take(&["and"])
    {
        *chains = !cursor.take(&["no"]);
        in_lanes = !*chains;
        if !cursor.take(&["chain"]) {
            return NEITHER;
        }
    }
    while let Transaction::Begin { on_standbys, keeps_snapshot, has_modes, .. } = &mut transaction
        && let Some(mode) = mode(&mut cursor)
    {
        in_lanes &= mode.in_lanes;
        *on_standbys &= mode.on_standbys;
        *keeps_snapshot |= mode.keeps_snapshot;
        *has_modes = true;
        if cursor.rest().first() == Some(&Token::Comma) {
            cursor.advance();
            if cursor.rest().is_empty() {
                return NEITHER;
            }
        }
    }
    match cursor.rest() {
        [] => (block_command.filter(|_| in_lanes), Some(transaction)),
        _ => NEITHER,
    }
}

/// A command about a savepoint.
fn savepoint(word: &str, mut cursor: Cursor<'_>) -> Option<Step> {
    let step = match word {
        "savepoint" => Step::Savepoint,
        "release" => Step::Release,
        "rollback" => {
            cursor.take(&["transaction", "work"]);
            if !cursor.take(&["to"]) {
                return None;
            }
            Step::RollBackTo
        }
        _ => return None,
    };
    // The word can also be the savepoint's name.
    if word != "savepoint" && cursor.rest().len() > 1 {
        cursor.take(&["savepoint"]);
    }
    let mut name = cursor.advance().and_then(folded).unwrap_or_default();
    while name.len() > limits::IDENTIFIER_BYTES_MAX {
        name.pop();
    }
    Some(step(name))
}

/// Whether a command that is no ROLLBACK TO can end a transaction.
pub(crate) fn ends_transaction(tokens: &[Token]) -> bool {
    is_word(tokens.first(), &["commit", "end", "rollback", "abort"])
        || is_word(tokens.first(), &["prepare"]) && is_word(tokens.get(1), &["transaction"])
}

/// Where a mode of a transaction is possible, and what it means.
#[derive(Clone, Copy)]
struct Mode {
    in_lanes: bool,
    on_standbys: bool,
    keeps_snapshot: bool,
}

const ANYWHERE: Mode = Mode { in_lanes: true, on_standbys: true, keeps_snapshot: false };
const NOT_IN_LANES: Mode = Mode { in_lanes: false, ..ANYWHERE };
const NOT_ON_STANDBYS: Mode = Mode { on_standbys: false, ..ANYWHERE };
const REPEATABLE_READ: Mode = Mode { keeps_snapshot: true, ..NOT_IN_LANES };
const SERIALIZABLE: Mode = Mode { on_standbys: false, ..REPEATABLE_READ };

/// The words of the modes.
const MODES: [(&[&str], Mode); 8] = [
    (&["isolation", "level", "read", "committed"], ANYWHERE),
    (&["isolation", "level", "read", "uncommitted"], NOT_IN_LANES),
    (&["isolation", "level", "repeatable", "read"], REPEATABLE_READ),
    (&["isolation", "level", "serializable"], SERIALIZABLE),
    (&["read", "write"], NOT_ON_STANDBYS),
    (&["read", "only"], NOT_IN_LANES),
    (&["deferrable"], NOT_IN_LANES),
    (&["not", "deferrable"], NOT_IN_LANES),
];

/// Takes one mode.
fn mode(cursor: &mut Cursor<'_>) -> Option<Mode> {
    MODES.iter().find_map(|(words, mode)| {
        let mut after = *cursor;
        words.iter().all(|word| after.take(&[word])).then(|| {
            *cursor = after;
            *mode
        })
    })
}

fn discard(cursor: Cursor<'_>) -> Analysis {
    let cleared = match cursor.peek_word().as_deref() {
        Some("all") => return resets_all("DISCARD".to_owned(), Effect::DISCARDED),
        Some("temp" | "temporary") => Effect { temporary: true, ..Effect::NONE },
        Some("sequences") => Effect { touches_sequence: true, needs_sequence_state: true, ..Effect::NONE },
        _ => Effect::NONE,
    };
    clears_only("DISCARD".to_owned(), cleared)
}

/// PREPARE counts the effects of the statement that it prepares, because EXECUTE does not show them.
fn prepare(mut cursor: Cursor<'_>) -> Pass {
    // A statement can have the name `transaction` too.
    let is_name = cursor.rest().get(1) == Some(&Token::LParen) || is_word(cursor.rest().get(1), &["as"]);
    if !is_name && cursor.take(&["transaction"]) {
        return Pass::harmless(Reason::Transaction("PREPARE TRANSACTION".to_owned()));
    }
    let mut name = cursor;
    let prepares = name.take_name().map(Into::into);
    let inner = if cursor.skip_to(&["as"]) {
        cursor.advance();
        effect_of_query(cursor.rest())
    } else {
        Effect::UNKNOWN
    };
    let effect = Effect { prepared: true, ..Effect::NONE }.union(inner);
    Pass { effect, prepares, ..Pass::harmless(Reason::Session("PREPARE".to_owned())) }
}

fn deallocate(mut cursor: Cursor<'_>) -> Analysis {
    // `DEALLOCATE prepare` without another name means a statement called `prepare`.
    if cursor.rest().len() > 1 {
        cursor.take(&["prepare"]);
    }
    if cursor.peek_word().as_deref() == Some("all") {
        return clears_only("DEALLOCATE ALL".to_owned(), Effect { prepared: true, ..Effect::NONE });
    }
    match (cursor.take_name(), cursor.rest()) {
        (Some(name), []) => Analysis::Deallocate(name),
        _ => Analysis::Pass(Pass::unknown(Reason::NotUnderstood("DEALLOCATE".to_owned()))),
    }
}

fn declare(mut cursor: Cursor<'_>) -> Analysis {
    let with_hold = {
        let mut options = cursor;
        options.advance();
        let words = options.rest().iter().map_while(crate::classify::text::tokens::word).collect::<Vec<_>>();
        words.windows(2).any(|pair| pair == ["with", "hold"])
    };
    let query = if cursor.skip_to(&["for"]) {
        cursor.advance();
        effect_of_query(cursor.rest())
    } else {
        Effect::UNKNOWN
    };
    leaves("DECLARE".to_owned(), Effect { holdable_cursor: with_hold, ..Effect::NONE }.union(query))
}

/// COPY of a query has the query's effects. COPY FROM can advance sequences.
fn copy(mut cursor: Cursor<'_>) -> Pass {
    let effect = match cursor.rest() {
        [Token::LParen, ..] => {
            cursor.advance();
            effect_of_query(inside(cursor.rest()))
        }
        _ => Effect { touches_sequence: true, ..mentions_temporary(cursor) },
    };
    Pass { effect, ..Pass::harmless(Reason::Copy) }
}

/// The tokens up to the parenthesis that closes the preceding one.
fn inside(tokens: &[Token]) -> &[Token] {
    let mut depth = 1_usize;
    let end = tokens.iter().position(|token| {
        match token {
            Token::LParen => depth += 1,
            Token::RParen => depth -= 1,
            _ => {}
        }
        depth == 0
    });
    &tokens[..end.unwrap_or(tokens.len())]
}

/// EXPLAIN runs the statement only with ANALYZE. Planning can run the statement's immutable functions in both
/// cases.
fn explain(mut cursor: Cursor<'_>) -> Pass {
    let reason = Reason::Utility("EXPLAIN".to_owned());
    if !cursor.mentions(&["analyze", "analyse"]) {
        return Pass::harmless(reason);
    }
    let effect = if cursor.skip_to(RUNNABLE) { effect_of_query(cursor.rest()) } else { Effect::UNKNOWN };
    Pass { effect, ..Pass::harmless(reason) }
}

fn create(mut cursor: Cursor<'_>) -> Pass {
    let mut kind = cursor;
    kind.take(&["or"]);
    kind.take(&["replace"]);
    kind.take(&["local", "global"]);
    let temporary = kind.take(&["temp", "temporary"]);
    kind.take(&["unlogged", "materialized", "recursive"]);
    let runs_a_query = kind.take(&["table"]) || cursor.mentions(&["materialized"]);
    let mut pass = ddl("CREATE".to_owned(), "create", cursor);
    pass.effect.temporary |= temporary;
    if runs_a_query && cursor.skip_to(&["as"]) {
        cursor.advance();
        if is_word(cursor.rest().first(), RUNNABLE) {
            pass.effect = pass.effect.union(effect_of_query(cursor.rest()));
        }
    }
    pass
}

fn ddl(name: String, word: &str, cursor: Cursor<'_>) -> Pass {
    let of_database = cursor.peek_word().as_deref() == Some("database");
    Pass {
        effect: mentions_temporary(cursor),
        alters: alters(word, cursor),
        of_database,
        ..Pass::harmless(Reason::Utility(name))
    }
}

/// `pg_temp` can qualify any name.
fn mentions_temporary(cursor: Cursor<'_>) -> Effect {
    let temporary = cursor.rest().iter().any(|token| match token {
        Token::Word(word) => word.value.to_ascii_lowercase().starts_with("pg_temp"),
        _ => false,
    });
    Effect { temporary, ..Effect::NONE }
}
