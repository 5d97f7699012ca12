//! SHOW HELP: all commands.

use crate::console::{COMMANDS, TOPICS};

use super::answer::{Row, row};

/// The columns.
pub const COLUMNS: [&str; 2] = ["command", "what it does"];

/// One row for each command.
pub fn rows() -> Vec<Row> {
    let topics = TOPICS.iter().map(|(_, word, what)| row![format!("SHOW {word}"), what]);
    topics.chain(COMMANDS.iter().map(|(words, what)| row![words, what])).collect()
}
