//! What a packed statement leaves for the next one, and how the session's own connection gets it. No I/O.

use hotrow_mysql_wire::message::{Err as ErrPacket, OK, Ok as OkPacket};

/// Leaves the diagnostics of a statement that changes nothing.
pub const CLEAR: &str = "call hotrow.clear()";

/// What a packed statement leaves for the next one: SHOW WARNINGS, ROW_COUNT().
pub enum Left {
    Rows(u64),
    /// It has returned rows.
    Result,
    Error(ErrPacket),
}

impl Left {
    /// By the first packet of the statement's answer.
    pub fn of(first: &[u8]) -> Self {
        match (ErrPacket::read(first), first.first()) {
            (Ok(error), _) => Left::Error(error),
            (Err(_), Some(&OK)) => Left::Rows(OkPacket::read(first).map_or(0, |ok| ok.affected)),
            _ => Left::Result,
        }
    }

    /// The statements after which a connection is as this one has left it.
    pub fn restoring(&self) -> Vec<String> {
        match self {
            Left::Rows(0) => vec![CLEAR.to_owned()],
            Left::Rows(rows) => vec![format!("call hotrow.restore({rows})")],
            // It has rows, so ROW_COUNT() is -1. FOUND_ROWS() and warnings stay as they are.
            Left::Result => vec![CLEAR.to_owned(), "show privileges".to_owned()],
            Left::Error(ErrPacket { code, sqlstate, message }) => {
                let hex: String = message.bytes().map(|byte| format!("{byte:02x}")).collect();
                vec![format!(
                    "signal sqlstate '{sqlstate}' set mysql_errno = {code}, message_text = x'{hex}'"
                )]
            }
        }
    }
}

/// Whether it shows the warnings or errors of the last statement, and nothing else of the session.
pub fn shows_diagnostics(text: &str) -> bool {
    let mut words = text.split_ascii_whitespace().map(|word| word.trim_end_matches(';'));
    words.next().is_some_and(|word| word.eq_ignore_ascii_case("show"))
        && words
            .next()
            .is_some_and(|word| word.eq_ignore_ascii_case("warnings") || word.eq_ignore_ascii_case("errors"))
}
