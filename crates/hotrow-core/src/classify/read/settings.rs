//! SET, RESET and SHOW: their effects, and Hotrow's own setting `hotrow.pack`. Other commands are read
//! elsewhere.

use sqlparser::tokenizer::Token;

use crate::classify::effects::effect::Effect;
use crate::classify::read::analysis::{Analysis, Pass, clears, leaves};
use crate::classify::reason::Reason;
use crate::classify::text::tokens::Cursor;

/// SET.
pub(crate) fn set(mut cursor: Cursor<'_>) -> Analysis {
    let settings = Effect { settings: true, ..Effect::NONE };
    if cursor.take(&["local", "transaction", "constraints"]) {
        return Analysis::Pass(Pass::harmless(Reason::Transaction(
            "SET LOCAL or SET TRANSACTION".to_owned(),
        )));
    }
    let session = cursor.take(&["session"]);
    match cursor.peek_word().as_deref() {
        Some("role") => return leaves("SET ROLE".to_owned(), Effect { role: true, ..settings }),
        Some("authorization") if session => {
            return leaves("SET SESSION AUTHORIZATION".to_owned(), Effect { role: true, ..settings });
        }
        _ => {}
    }
    let name = cursor.take_name();
    if name.as_deref() == Some("hotrow.pack")
        && (cursor.take(&["to"]) || take_equals(&mut cursor))
        && let [value] = cursor.rest()
        && let Some(analysis) = switch(value)
    {
        return analysis;
    }
    if name.as_deref() == Some("application_name") && (cursor.take(&["to"]) || take_equals(&mut cursor)) {
        let names = matches!(cursor.rest(), [Token::SingleQuotedString(_)]) || is_plain_word(cursor.rest());
        if names {
            // The gateway sets the name on every connection that the session uses. Drivers set it after
            // log-in.
            return leaves("SET application_name".to_owned(), Effect::NONE);
        }
        if matches!(cursor.rest(), [Token::Word(word)] if word.quote_style.is_none()) {
            return clears(
                "SET application_name TO DEFAULT".to_owned(),
                Effect { name: true, ..Effect::NONE },
            );
        }
    }
    // `SET SESSION CHARACTERISTICS` and `SET TIME ZONE` arrive here too. Each of them is a setting.
    let role = matches!(name.as_deref(), Some("role" | "session_authorization"));
    leaves("SET".to_owned(), Effect { role, ..settings })
}

/// One word that is a value and not DEFAULT.
fn is_plain_word(tokens: &[Token]) -> bool {
    matches!(tokens, [Token::Word(word)] if !word.value.eq_ignore_ascii_case("default"))
}

fn take_equals(cursor: &mut Cursor<'_>) -> bool {
    let found = cursor.rest().first() == Some(&Token::Eq);
    if found {
        cursor.advance();
    }
    found
}

/// `hotrow.pack` with one of the usual values of a setting of type bool, or with its default.
fn switch(token: &Token) -> Option<Analysis> {
    let text = match token {
        Token::Word(word) => &word.value,
        Token::SingleQuotedString(text) | Token::Number(text, _) => text,
        _ => return None,
    };
    match text.to_ascii_lowercase().as_str() {
        "on" | "true" | "1" | "yes" => Some(Analysis::SetPack(true)),
        "off" | "false" | "0" | "no" => Some(Analysis::SetPack(false)),
        "default" if matches!(token, Token::Word(_)) => Some(Analysis::ResetPack),
        _ => None,
    }
}

/// RESET.
pub(crate) fn reset(mut cursor: Cursor<'_>) -> Analysis {
    match cursor.take_name().as_deref() {
        Some("all") => clears("RESET ALL".to_owned(), Effect { settings: true, name: true, ..Effect::NONE }),
        Some("application_name") => {
            clears("RESET application_name".to_owned(), Effect { name: true, ..Effect::NONE })
        }
        Some("hotrow.pack") => Analysis::ResetPack,
        _ => leaves("RESET".to_owned(), Effect::NONE),
    }
}

/// SHOW.
pub(crate) fn show(mut cursor: Cursor<'_>) -> Analysis {
    match cursor.take_name().as_deref() {
        Some("hotrow.pack") => Analysis::ShowPack,
        _ => leaves("SHOW".to_owned(), Effect::NONE),
    }
}
