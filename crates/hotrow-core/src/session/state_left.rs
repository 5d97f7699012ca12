//! Reads what the server says about the state that is left on a connection.

use std::collections::BTreeSet;

use crate::classify::Effect;
use crate::notifications::MARKER_CHANNEL;
use crate::settings::{self, Settings};

/// What the server says about the state that is left on a connection.
#[derive(Debug)]
pub struct StateLeft {
    /// The state, apart from channels and settings.
    pub effect: Effect,
    /// The channels to which the connection listens. None if another connection cannot listen to them.
    pub channels: Option<BTreeSet<String>>,
    /// Whether the connection has the encoding of the shared one.
    pub speaks_utf8: bool,
    /// The settings that differ from those of the login. None if other connections cannot be given these.
    pub settings: Option<Settings>,
    /// Number of statements that are prepared there, if the server has said it.
    pub prepared: Option<usize>,
}

impl StateLeft {
    /// Reads the row of `left_behind.sql`. State about which it says nothing is taken to be there.
    pub fn read(row: &[Option<String>], is_utf8_database: bool, speaks_utf8: bool) -> Self {
        let mut columns = row.iter().map(Option::as_deref);
        let [settings, role, temporary, from_sql, channels, holdable_cursor, advisory_lock, prepared] =
            std::array::from_fn(|_| columns.next().flatten());
        let is_there = |value: Option<&str>| value.is_none_or(|value| value == "t");
        StateLeft {
            effect: Effect {
                role: is_there(role),
                temporary: is_there(temporary),
                prepared: is_there(from_sql),
                holdable_cursor: is_there(holdable_cursor),
                advisory_lock: is_there(advisory_lock),
                ..Effect::NONE
            },
            channels: channels.and_then(|names| read_channels(names, is_utf8_database)),
            speaks_utf8,
            settings: settings.and_then(Settings::read),
            prepared: prepared.and_then(|count| count.parse().ok()),
        }
    }
}

/// Reads names of channels. None if another connection cannot listen to one of them.
fn read_channels(names: &str, is_utf8_database: bool) -> Option<BTreeSet<String>> {
    let read = |digits: &str| {
        let name = String::from_utf8(settings::from_hex(digits)?).ok()?;
        (name != MARKER_CHANNEL && (is_utf8_database || name.is_ascii())).then_some(name)
    };
    names.split_ascii_whitespace().map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A row that says that nothing is left, except in this column.
    fn row(column: usize, value: Option<&str>) -> Vec<Option<String>> {
        let nothing = ["", "f", "f", "f", "", "f", "f", "0"];
        let mut row: Vec<_> = nothing.iter().map(|text| Some((*text).to_owned())).collect();
        row[column] = value.map(str::to_owned);
        row
    }

    #[test]
    fn nothing_is_left_if_the_server_says_so() {
        let found = StateLeft::read(&row(0, Some("")), true, true);
        assert_eq!(found.effect, Effect::NONE);
        assert_eq!(found.channels, Some(BTreeSet::new()));
        assert_eq!(found.settings, Some(Settings::default()));
        assert_eq!(found.prepared, Some(0));
    }

    #[test]
    fn what_the_server_does_not_say_is_taken_to_be_there() {
        let all = Effect {
            role: true,
            temporary: true,
            prepared: true,
            holdable_cursor: true,
            advisory_lock: true,
            ..Effect::NONE
        };
        let found = StateLeft::read(&[], true, true);
        assert_eq!((found.effect, found.channels, found.settings, found.prepared), (all, None, None, None));
        for column in [1, 2, 3, 5, 6] {
            for value in [Some("t"), None] {
                let found = StateLeft::read(&row(column, value), true, true);
                assert!(found.effect.pins(), "column {column} is {value:?}");
            }
        }
    }

    #[test]
    fn each_channel_must_be_one_to_which_another_connection_can_listen() {
        let hex = |name: &str| name.bytes().map(|byte| format!("{byte:02x}")).collect::<String>();
        let names = [hex("orders"), hex("größe")].join(" ");
        let read = |names: &str, is_utf8| StateLeft::read(&row(4, Some(names)), is_utf8, true).channels;
        assert_eq!(read(&names, true), Some(BTreeSet::from(["orders".to_owned(), "größe".to_owned()])));
        assert_eq!(read(&names, false), None, "the shared connection has another encoding");
        assert_eq!(read(&hex(MARKER_CHANNEL), true), None);
        assert_eq!(read("ff", true), None, "not UTF-8");
        assert_eq!(read("zz", true), None);
    }
}
