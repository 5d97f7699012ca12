//! SET, RESET and SHOW: their effects, and Hotrow's own settings. Other commands are read
//! elsewhere.

use sqlparser::tokenizer::Token;

use crate::classify::effects::effect::Effect;
use crate::classify::read::analysis::{Analysis, Pass, Switch, SwitchChange, clears, leaves, resets_all};
use crate::classify::reason::Reason;
use crate::classify::text::tokens::{Cursor, is_word};
use crate::limits;
use crate::settings::{self, PlainSet};

pub(crate) fn set(mut cursor: Cursor<'_>) -> Analysis {
    let mut local = cursor;
    let is_local = local.take(&["local"]);
    if is_local && let Some(analysis) = set_switch(local, true) {
        return analysis;
    }
    // A custom setting can begin with each of these words: `local.tenant`.
    let is_custom = cursor.rest().get(1) == Some(&Token::Period);
    if !is_custom && cursor.take(&["local", "transaction", "constraints"]) {
        let effect = match is_local {
            true => Effect::of_local_setting(local.take_name().as_deref()),
            false => Effect::NONE,
        };
        let reason = match effect.seed {
            true => Reason::Session("SET seed".to_owned()),
            false => Reason::Transaction("SET LOCAL or SET TRANSACTION".to_owned()),
        };
        return Analysis::Pass(Pass { effect, ..Pass::harmless(reason) });
    }
    let session = !is_custom && cursor.take(&["session"]);
    let role = Effect { role: true, ..Effect::NONE };
    let is_custom = cursor.rest().get(1) == Some(&Token::Period);
    match cursor.peek_word().as_deref().filter(|_| !is_custom) {
        Some("role") => return leaves("SET ROLE".to_owned(), role),
        Some("authorization") if session => return leaves("SET SESSION AUTHORIZATION".to_owned(), role),
        _ => {}
    }
    if let Some(analysis) = set_switch(cursor, false) {
        return analysis;
    }
    let name = cursor.take_name();
    if name.as_deref() == Some("application_name") && (cursor.take(&["to"]) || take_equals(&mut cursor)) {
        let names = matches!(cursor.rest(), [Token::SingleQuotedString(_)]) || is_plain_word(cursor.rest());
        if names {
            // The gateway sets the name on every connection that the session uses. Drivers set it after
            // login.
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
    let effect = Effect::of_setting(name.as_deref());
    let command = match name.as_deref().map(str::to_ascii_lowercase).as_deref() {
        Some("role") => "SET ROLE",
        Some("session_authorization") => "SET SESSION AUTHORIZATION",
        Some("seed") => "SET seed",
        _ if effect.unlisted_settings => "SET of a custom setting",
        _ => "SET",
    };
    let sets = name.and_then(|name| plain_set(name, cursor)).into_iter().collect();
    Analysis::Pass(Pass { effect, sets, ..Pass::harmless(Reason::Session(command.to_owned())) })
}

/// The SET, if the new value depends on the text alone. The cursor is behind the name.
fn plain_set(name: String, mut cursor: Cursor<'_>) -> Option<PlainSet> {
    let is_zone = name == "time" && cursor.take(&["zone"]);
    let is_encoding = name == "names";
    if !is_zone && !is_encoding && !cursor.take(&["to"]) && !take_equals(&mut cursor) {
        return None;
    }
    let name = match (is_zone, is_encoding) {
        (true, _) => "timezone".to_owned(),
        (_, true) => settings::CLIENT_ENCODING.to_owned(),
        _ => name.to_ascii_lowercase(),
    };
    let has_interval = cursor.rest().iter().any(|token| is_word(Some(token), &["interval"]));
    let is_value = |token: &Token| match token {
        // The time zone LOCAL is the one at the login. The server shortens longer names with a notice, unless
        // `client_min_messages` suppresses it.
        Token::Word(word) => {
            let follows_login =
                is_word(Some(token), &["default"]) || is_zone && is_word(Some(token), &["local"]);
            !follows_login && word.value.len() <= limits::IDENTIFIER_BYTES_MAX
        }
        // `standard_conforming_strings` decides what a backslash means, and IntervalStyle how some intervals are read.
        Token::SingleQuotedString(text) => !text.contains('\\') && (!has_interval || is_clear_interval(text)),
        Token::Number(..) | Token::Comma | Token::Minus | Token::Plus => true,
        _ => false,
    };
    let resets =
        matches!(cursor.rest(), [word] if is_word(Some(word), &["default"])) && settings::is_plain(&name);
    let is_plain = !cursor.rest().is_empty() && cursor.rest().iter().all(is_value);
    let sets = is_plain && (settings::is_plain(&name) || name == settings::CLIENT_ENCODING);
    (resets || sets).then_some(PlainSet { name, resets, tag: "SET" })
}

/// The RESET, if it is one of a setting whose SET depends on the text alone. The cursor is behind the name.
fn plain_reset(name: Option<&str>, mut cursor: Cursor<'_>) -> Option<PlainSet> {
    let is_zone = name == Some("time") && cursor.take(&["zone"]);
    let name = if is_zone { "timezone".to_owned() } else { name?.to_ascii_lowercase() };
    let is_plain = cursor.rest().is_empty() && settings::is_plain(&name);
    is_plain.then_some(PlainSet { name, resets: true, tag: "RESET" })
}

/// Whether an interval, such as `+01:00`, is the same in all styles: it has one field.
fn is_clear_interval(text: &str) -> bool {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let mut fields = digits.split(':');
    let is_number = |field: &str| !field.is_empty() && field.bytes().all(|byte| byte.is_ascii_digit());
    fields.clone().count() <= 2 && fields.all(is_number)
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

/// A setting of the gateway with a value, or with its default.
fn set_switch(mut cursor: Cursor<'_>, is_local: bool) -> Option<Analysis> {
    let switch = cursor.take_name().as_deref().and_then(Switch::named)?;
    if !cursor.take(&["to"]) && !take_equals(&mut cursor) {
        return None;
    }
    let [token] = cursor.rest() else { return None };
    let text = match token {
        Token::Word(word) => &word.value,
        Token::SingleQuotedString(text) | Token::Number(text, _) => text,
        _ => return None,
    };
    if matches!(token, Token::Word(_)) && text.eq_ignore_ascii_case("default") {
        return Some(Analysis::Set(SwitchChange { switch, value: None, is_local }));
    }
    Some(match switch.value(text) {
        value @ Some(_) => Analysis::Set(SwitchChange { switch, value, is_local }),
        None => Analysis::SetWrong(switch),
    })
}

pub(crate) fn reset(mut cursor: Cursor<'_>) -> Analysis {
    let name = cursor.take_name();
    match name.as_deref() {
        Some("all") => {
            let cleared = Effect { settings: true, unlisted_settings: true, name: true, ..Effect::NONE };
            resets_all("RESET ALL".to_owned(), cleared)
        }
        Some("application_name") => {
            clears("RESET application_name".to_owned(), Effect { name: true, ..Effect::NONE })
        }
        // The others are not known to be reset: another one may have been set.
        name => {
            if let Some(switch) = name.and_then(Switch::named) {
                return Analysis::Reset(switch);
            }
            let effect = Effect::of_setting(name);
            let command = match name {
                Some("session") => "RESET SESSION AUTHORIZATION",
                _ if effect.role => "RESET ROLE",
                _ if effect.unlisted_settings => "RESET of a custom setting",
                _ => "RESET",
            };
            let effect = Effect { settings: effect.settings, ..Effect::NONE };
            let sets = plain_reset(name, cursor).into_iter().collect();
            Analysis::Pass(Pass { effect, sets, ..Pass::harmless(Reason::Session(command.to_owned())) })
        }
    }
}

pub(crate) fn show(mut cursor: Cursor<'_>) -> Analysis {
    match cursor.take_name().as_deref().and_then(Switch::named) {
        Some(switch) => Analysis::Show(switch),
        None => leaves("SHOW".to_owned(), Effect::NONE),
    }
}
